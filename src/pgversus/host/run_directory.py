"""The run's private directories: data and logs in the cache, sockets in a short path; gone when the run is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgversus.host.directories import Cache, make_directory, socket_directory
from pgversus.host.guard import Guard, lock_file, remember_socket_directory, run_name
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import PRIVATE_DIRECTORY, make_private, private_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """Where one run keeps its clusters, logs and sockets."""

    root: Path
    sockets: Path
    user: ServerUser
    log_prefix: str = ""
    """Before the names of logs: arms of another study are other servers."""

    def snapshot_directory(self, number: int) -> Path:
        """For the cluster of one snapshot; made by initdb's caller. Data directories lie two levels below the root."""
        return self.root / f"snapshot-{number}"

    def copy_directory(self, server_set: int, arm: int) -> Path:
        """For the data directory that one arm's load runs on; its parent is made here, and stays ours."""
        parent = self.root / f"copies-{server_set}"
        make_directory(parent, PRIVATE_DIRECTORY)
        self.user.let_through(parent)
        return parent / f"arm-{arm}"

    def server_log(self, arm: int) -> Path:
        """What one arm's server says; there once it has been started."""
        return self.root / f"{self.log_prefix}arm-{arm}.log"

    def settings_directory(self) -> Path:
        """An empty configuration, for asking a server's program about settings; the servers' user can enter it."""
        directory = self.root / "settings"
        make_directory(directory, PRIVATE_DIRECTORY)
        self.user.let_through(directory)
        return directory

    def server_logs(self) -> list[Path]:
        """The logs of all servers that were started."""
        return sorted(self.root.glob("*arm-*.log"))

    def socket_directory(self, arm: int) -> Path:
        """For the socket of one arm's server; made when first asked for."""
        directory = self.sockets / str(arm)
        make_private(self.user, directory)
        return directory


@contextmanager
def run_directory(cache: Cache, user: ServerUser) -> Iterator[RunDirectory]:
    """Directories for one run, removed at its end, however it ends.

    Servers must be stopped before this is left; after kill -9 the guard waits for them.
    """
    root = cache.runs / run_name()
    sockets = socket_directory()
    lock = private_lock(lock_file(root))
    # First of all: whatever is made from here on goes, wherever we are killed.
    guard = Guard([root, sockets, lock_file(root)])
    try:
        lock.acquire()
        make_directory(root, PRIVATE_DIRECTORY)
        user.let_through(root)
        # Before they are there: a sweep finds them by this note.
        remember_socket_directory(root, sockets)
        # An error where it is there already: then somebody else has made it.
        sockets.mkdir(mode=PRIVATE_DIRECTORY)
        user.give(sockets)
        yield RunDirectory(root=root, sockets=sockets, user=user)
    finally:
        guard.close()
        lock.release()
