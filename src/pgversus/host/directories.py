"""Where pgversus keeps what it keeps: one cache for each user, one directory for each run, one for its sockets.

CACHE/
    builds/     PostgreSQL binaries, unpacked and checked, or built here
    sources/    tarballs of PostgreSQL's source
    index/      lists of released versions
    staging/    downloads and builds that are not finished
    logs/       of builds that failed
    ccache/     what was compiled, where ccache is installed; it keeps to a size of its own
    client/     the pgbench and psql that come with pgversus, where the servers' user cannot enter the installation
    snapshots/  loaded data that later runs may begin with
    runs/       data directories and logs of running comparisons; a run that ends removes its own
"""

import fcntl
import os
import secrets
import stat
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
    """The cache directory and the places in it."""

    root: Path

    @property
    def builds(self) -> Path:
        """Unpacked binaries."""
        return self.root / "builds"

    @property
    def sources(self) -> Path:
        """Tarballs of source."""
        return self.root / "sources"

    @property
    def ccache(self) -> Path:
        """What was compiled; ccache's own, of the servers' user in a directory of that name."""
        return self.root / "ccache"

    @property
    def client(self) -> Path:
        """Copies of the client, by version."""
        return self.root / "client"

    @property
    def logs(self) -> Path:
        """Of builds that failed."""
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
        """Loaded data, kept for later runs."""
        return self.root / "snapshots"

    @property
    def runs(self) -> Path:
        """Data of running comparisons."""
        return self.root / "runs"

    @property
    def places(self) -> tuple[Path, ...]:
        """All of these."""
        return self.builds, self.sources, self.index, self.staging, self.runs, *self.private_places

    @property
    def private_places(self) -> tuple[Path, ...]:
        """Those in which no program of another user has anything to look for."""
        return self.logs, self.snapshots


def open_cache() -> Cache:
    """The cache of this user, made when missing: PGVERSUS_CACHE, else /var/cache for root, else the user's own.

    HostError when it cannot be written, when another user could change what is in it, or when servers that run as
    another user could not reach it.
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
            # Where servers run as another user, that one must get in.
            is_open = is_root and directory not in cache.private_places
            make_directory(directory, 0o755 if is_open else 0o700)
            _check_trusted(directory)
        for parent in root.parents:
            _check_not_replaceable(parent)
    except OSError as error:
        raise HostError(
            "the cache directory cannot be made",
            slug="host-cache-unwritable",
            where=str(root),
            found=error.strerror or str(error),
            expected="a directory that this user may write",
            to_do="name another one in the environment variable PGVERSUS_CACHE",
        ) from error
    return cache


def make_directory(directory: Path, mode: int) -> None:
    """Make a directory, and those above it that are missing, all with this mode; those that are there keep theirs.

    The umask has no say: under 077 the servers' user could not enter what root has made. OSError when it cannot be.
    """
    for path in reversed([path for path in (directory, *directory.parents) if not path.is_dir()]):
        path.mkdir(mode, exist_ok=True)
        path.chmod(mode)


def socket_directory() -> Path:
    """A path for a new directory, short enough for sockets; nothing is made yet, so that it can be noted before.

    Not in $TMPDIR: a socket's path may have 107 bytes, and TMPDIR is often long.
    """
    return _SOCKET_ROOT / f"pgv-{secrets.token_hex(8)}"


def _check_trusted(directory: Path) -> None:
    """Programs in the cache are run, and data in it are believed: nobody but us and root may put anything there."""
    state = directory.stat()
    if state.st_uid not in {0, os.geteuid()}:
        raise _not_trusted(directory, f"it belongs to user id {state.st_uid}", f"chown {os.geteuid()} {directory}")
    if state.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"mode {stat.S_IMODE(state.st_mode):o}, in which others may write"
        raise _not_trusted(directory, found, f"chmod go-w {directory}")


def _check_not_replaceable(parent: Path) -> None:
    """Who may write to a directory above the cache can put another one in its place, unless it is like /tmp.

    Its owner can in any case.
    """
    state = parent.stat()
    mode = stat.S_IMODE(state.st_mode)
    if state.st_uid not in {0, os.geteuid()}:
        raise _not_trusted(parent, f"it belongs to user id {state.st_uid}", f"chown {os.geteuid()} {parent}")
    is_of_others = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and state.st_gid not in {0, os.getegid()})
    if is_of_others and not mode & stat.S_ISVTX:
        raise _not_trusted(parent, f"mode {mode:o}, in which others may write", f"chmod go-w {parent}")


def _not_trusted(directory: Path, found: str, command: str) -> HostError:
    return HostError(
        "other users can change the cache directory, and programs in it are run",
        slug="host-cache-untrusted",
        where=str(directory),
        found=found,
        expected="a directory of this user or of root, which nobody else may write to",
        to_do=f"remove what others may have put there and {command}, or name another one in PGVERSUS_CACHE",
    )


def _check_reachable(root: Path) -> None:
    for parent in (path for path in (root, *root.parents) if path.exists()):
        if not parent.stat().st_mode & stat.S_IXOTH:
            raise HostError(
                "servers run as an unprivileged user, and that user cannot enter the cache directory",
                slug="host-cache-unreachable",
                where=str(root),
                found=f"{parent} has mode {stat.S_IMODE(parent.stat().st_mode):o}",
                expected="every directory above the cache open to all (o+x)",
                to_do="name a cache outside of it in PGVERSUS_CACHE, or leave it unset for /var/cache/pgversus",
            )


@contextmanager
def in_use(directories: Iterable[Path]) -> Iterator[None]:
    """While this lasts, nobody gets hold of these with `unused`; OSError when one is no longer there."""
    with ExitStack() as stack:
        for directory in directories:
            stack.enter_context(_locked(directory, fcntl.LOCK_SH))
        yield


@contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """Whether nobody uses it; while this lasts, nobody begins to."""
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
        # What was removed while we waited is still locked, and no use to anybody.
        if not os.path.samestat(os.fstat(file), directory.stat()):
            raise FileNotFoundError(directory)
        yield
    finally:
        os.close(file)
