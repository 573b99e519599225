"""What a program prints, of which the first and the last part are enough when it is long.

A script may raise a notice in each of a million transactions, and a server log every statement.
"""

from typing import IO

_KEPT_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024


class Output:
    """A stream of bytes that is taken in piece by piece: all of it, or its first and last 64 kB."""

    def __init__(self, *, is_abridged: bool = False) -> None:
        self._is_abridged = is_abridged
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Take in the next piece."""
        if not self._is_abridged:
            self._first += chunk
            return
        room = _KEPT_BYTES - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        # Cut seldom, since what is left is moved each time.
        if len(self._last) > 2 * _KEPT_BYTES:
            self._cut()

    def add_file(self, file: IO[bytes]) -> None:
        """Take in a file, from where it stands to its end."""
        while chunk := file.read(_CHUNK_BYTES):
            self.add(chunk)

    def text(self) -> str:
        """Return it decoded; what is no text becomes U+FFFD. Where it was cut a line says how much is missing."""
        return bytes(self).decode(errors="replace")

    def __bytes__(self) -> bytes:
        """Return what was kept, whole lines where there are any."""
        self._cut()
        if not self._left_out:
            return bytes(self._first + self._last)
        first = self._first[: self._first.rfind(b"\n") + 1] or self._first
        last = self._last[self._last.find(b"\n") + 1 :]
        left_out = self._left_out + len(self._first) - len(first) + len(self._last) - len(last)
        return bytes(first) + f"... {left_out} bytes left out ...\n".encode() + bytes(last)

    def _cut(self) -> None:
        surplus = max(0, len(self._last) - _KEPT_BYTES)
        del self._last[:surplus]
        self._left_out += surplus
