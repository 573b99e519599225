"""Directories of pgversus: one cache per user, one directory per run, and one for its sockets.

CACHE/
    builds/     PostgreSQL binaries, unpacked and verified, or built on this host
    sources/    tarballs of PostgreSQL's source
    index/      lists of released versions
    staging/    unfinished downloads and builds
    logs/       logs of failed builds
    ccache/     compiled objects, if ccache is installed, which limits its own size
    client/     copies of the bundled pgbench and psql, if the servers' user cannot enter the installation
    snapshots/  loaded data, reused by later runs
    runs/       data directories and logs of running comparisons, removed when the run ends
"""

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from pgversus.errors import HostError

_SYSTEM_CACHE = Path("/var/cache/pgversus")
_SOCKET_ROOT = Path("/tmp")  # noqa: S108 - see socket_directory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The cache directory and its subdirectories."""

    root: Path

    @property
    def builds(self) -> Path:
        """Unpacked binaries."""
        return self.root / "builds"

    @property
    def sources(self) -> Path:
        """Source tarballs."""
        return self.root / "sources"

    @property
    def ccache(self) -> Path:
        """Compiled objects, managed by ccache; those of a separate servers' user in a subdirectory named after it."""
        return self.root / "ccache"

    @property
    def client(self) -> Path:
        """Copies of the client programs, by version."""
        return self.root / "client"

    @property
    def logs(self) -> Path:
        """Logs of failed builds."""
        return self.root / "logs"

    @property
    def index(self) -> Path:
        """Lists of released versions."""
        return self.root / "index"

    @property
    def staging(self) -> Path:
        """Unfinished downloads and builds."""
        return self.root / "staging"

    @property
    def snapshots(self) -> Path:
        """Loaded data, stored for later runs."""
        return self.root / "snapshots"

    @property
    def runs(self) -> Path:
        """Data of running comparisons."""
        return self.root / "runs"

    @property
    def places(self) -> tuple[Path, ...]:
        """The directories that open_cache() creates."""
        return self.builds, self.sources, self.index, self.staging, self.runs, *self.private_places

    @property
    def private_places(self) -> tuple[Path, ...]:
        """Directories closed to other users, including the servers' user."""
        return self.logs, self.snapshots


def open_cache() -> Cache:
    """Open the user's cache, creating it if missing: PGVERSUS_CACHE, else /var/cache for root, else the user's own.

    HostError if it cannot be written, if another user could change its contents, or if servers that run as another
    user could not reach it.
    """
    override = os.environ.get("PGVERSUS_CACHE")
    is_root = os.geteuid() == 0
    if override:
        root = Path(override).resolve()
    else:
        root = _SYSTEM_CACHE if is_root else platformdirs.user_cache_path("pgversus")
    cache = Cache(root=root)
    try:
        if is_root:
            _check_reachable(root)
        for directory in (root, *cache.places):
            # Servers that run as another user must be able to enter.
            is_open = is_root and directory not in cache.private_places
            make_directory(directory, 0o755 if is_open else 0o700)
            _check_trusted(directory)
        for parent in root.parents:
            _check_not_replaceable(parent)
    except OSError as error:
        raise HostError(
            "the cache directory could not be created",
            slug="host-cache-unwritable",
            where=str(root),
            found=error.strerror or str(error),
            expected="a directory writable by this user",
            to_do="set the environment variable PGVERSUS_CACHE to another directory",
        ) from error
    return cache


def make_directory(directory: Path, mode: int) -> None:
    """Create a directory and its missing parents with this mode; existing directories keep theirs. OSError on failure.

    The umask is ignored: with 077 the servers' user could not enter directories created by root.
    """
    for path in reversed([path for path in (directory, *directory.parents) if not path.is_dir()]):
        path.mkdir(mode, exist_ok=True)
        path.chmod(mode)


def socket_directory() -> Path:
    """Return the path of a new directory for sockets, not yet created, so that it can be recorded first.

    Not in $TMPDIR, which is often long: the path of a socket is limited to 107 bytes.
    """
    return _SOCKET_ROOT / f"pgv-{secrets.token_hex(8)}"


def _check_trusted(directory: Path) -> None:
    """Reject a directory that other users may write to: programs in the cache are run, and its data are trusted."""
    state = directory.stat()
    if state.st_uid not in {0, os.geteuid()}:
        raise _not_trusted(directory, f"owned by user id {state.st_uid}", f"chown {os.geteuid()} {directory}")
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"mode {stat.S_IMODE(state.st_mode):o}, writable by others"
        raise _not_trusted(directory, found, f"chmod go-w {directory}")


def _check_not_replaceable(parent: Path) -> None:
    """Reject a parent directory in which other users could replace the cache.

    Its owner always can; users with write permission can unless it is sticky, as /tmp is.
    """
    state = parent.stat()
    mode = stat.S_IMODE(state.st_mode)
    if state.st_uid not in {0, os.geteuid()}:
        raise _not_trusted(parent, f"owned by user id {state.st_uid}", f"chown {os.geteuid()} {parent}")
    is_of_others = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and state.st_gid not in {0, os.getegid()})
    if is_of_others and not mode & stat.S_ISVTX:
        raise _not_trusted(parent, f"mode {mode:o}, writable by others", f"chmod go-w {parent}")


def _not_trusted(directory: Path, found: str, command: str) -> HostError:
    return HostError(
        "other users can write to the cache directory, from which pgversus runs programs",
        slug="host-cache-untrusted",
        where=str(directory),
        found=found,
        expected="a directory owned by this user or root, writable only by its owner",
        to_do=f"remove files that others may have put there and run {command}, or set PGVERSUS_CACHE to a different "
        "directory",
    )


def _check_reachable(root: Path) -> None:
    for parent in (path for path in (root, *root.parents) if path.exists()):
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise HostError(
                "servers run as an unprivileged user, and that user cannot enter the cache directory",
                slug="host-cache-unreachable",
                where=str(root),
                found=f"{parent} has mode {stat.S_IMODE(parent.stat().st_mode):o}",
                expected="mode o+x on the cache directory and every directory above it",
                to_do="set PGVERSUS_CACHE to a directory elsewhere, or unset it to use /var/cache/pgversus",
            )


@contextmanager
def in_use(directories: Iterable[Path]) -> Iterator[None]:
    """Hold shared locks on directories, so that `unused` yields False for them; OSError if one no longer exists."""
    with ExitStack() as stack:
        for directory in directories:
            stack.enter_context(_locked(directory, fcntl.LOCK_SH))
        yield


@contextmanager
def scratch_directory(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new directory, removed at the end, after removing those of killed processes; the caller holds a lock."""
    for old in parent.glob(f"{prefix}*"):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as directory:
        yield Path(directory)


@contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """Yield whether a directory is not in use; if so, hold it locked against new users."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(directory, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            is_free = False
        else:
            is_free = True
        yield is_free


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, how)
        # The directory may have been removed or replaced while we waited for the lock.
        if not os.path.samestat(os.fstat(file), directory.stat()):
            raise FileNotFoundError(directory)
        yield
    finally:
        os.close(file)
