"""Private directories of a run, removed at its end: data and logs in the cache, sockets in a short path."""

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
    """The directories of one run for clusters, logs and sockets."""

    root: Path
    sockets: Path
    user: ServerUser
    log_prefix: str = ""
    """Prefix for the names of logs: arms of another study have different servers."""

    def snapshot_directory(self, number: int) -> Path:
        """Return the directory for one snapshot's cluster; the caller of initdb creates it.

        Data directories lie two levels below the root.
        """
        return self.root / f"snapshot-{number}"

    def copy_directory(self, server_set: int, arm: int) -> Path:
        """Return the data directory for one arm's load; its parent is created here and remains ours."""
        parent = self.root / f"copies-{server_set}"
        make_directory(parent, PRIVATE_DIRECTORY)
        self.user.grant_access(parent)
        return parent / f"arm-{arm}"

    def server_log(self, arm: int) -> Path:
        """Return the log of one arm's server, which exists once the server has been started."""
        return self.root / f"{self.log_prefix}arm-{arm}.log"

    def settings_directory(self) -> Path:
        """Create a directory for the empty configuration used to query settings; the servers' user can enter it."""
        directory = self.root / "settings"
        make_directory(directory, PRIVATE_DIRECTORY)
        self.user.grant_access(directory)
        return directory

    def server_logs(self) -> list[Path]:
        """Return the logs of all servers that have been started."""
        return sorted(self.root.glob("*arm-*.log"))

    def socket_directory(self, arm: int) -> Path:
        """Return the socket directory of one arm's server, creating it if needed."""
        directory = self.sockets / str(arm)
        make_private(self.user, directory)
        return directory


@contextmanager
def run_directory(cache: Cache, user: ServerUser) -> Iterator[RunDirectory]:
    """Create the directories of one run and remove them at its end, even if it is killed.

    Servers must be stopped before the context ends; after kill -9 the guard waits for them.
    """
    root = cache.runs / run_name()
    sockets = socket_directory()
    lock = private_lock(lock_file(root))
    # First, so that everything created from here on is removed, whenever we are killed.
    guard = Guard([root, sockets, lock_file(root)])
    try:
        lock.acquire()
        make_directory(root, PRIVATE_DIRECTORY)
        user.grant_access(root)
        # Recorded before it is created, so that a sweep finds it.
        remember_socket_directory(root, sockets)
        # Fails if it exists, since another process created it then.
        sockets.mkdir(mode=PRIVATE_DIRECTORY)
        user.change_owner(sockets)
        yield RunDirectory(root=root, sockets=sockets, user=user)
    finally:
        guard.close()
        lock.release()
