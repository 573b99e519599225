"""A fake server that counts connections and asks every client for a password."""

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_ENCRYPTION = (80877103, 80877104)
# Request codes with which a client first asks for TLS or GSSAPI.
_PASSWORD_PLEASE = b"R" + struct.pack("!ii", 8, 3)


class Listener:
    """A fake server and the connections and passwords it has received."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.passwords: list[bytes] = []

    @property
    def uri(self) -> str:
        """The URI of this server, without a password."""
        return f"postgresql://somebody@127.0.0.1:{self.socket.getsockname()[1]}/app?sslmode=disable"

    def listen(self) -> None:
        """Accept connections until the socket is closed."""
        with suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                self.connections += 1
                with client, suppress(OSError, struct.error):
                    self._ask(client)

    def _ask(self, client: socket.socket) -> None:
        client.settimeout(10)
        while True:
            (length,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
            rest = client.recv(length - 4, socket.MSG_WAITALL)
            if struct.unpack("!i", rest[:4])[0] not in _ENCRYPTION:
                break
            client.sendall(b"N")
        client.sendall(_PASSWORD_PLEASE)
        if client.recv(1) == b"p":
            (length,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
            self.passwords.append(client.recv(length - 4, socket.MSG_WAITALL).rstrip(b"\0"))


@contextmanager
def listening() -> Iterator[Listener]:
    """Run a fake server within the block."""
    listener = Listener()
    thread = Thread(target=listener.listen)
    thread.start()
    try:
        yield listener
    finally:
        # Closing the socket does not end a pending accept().
        with suppress(OSError):
            listener.socket.shutdown(socket.SHUT_RDWR)
        listener.socket.close()
        thread.join()
