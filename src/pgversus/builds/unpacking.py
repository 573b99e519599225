"""Safe unpacking of untrusted archives: a confined child process checks every member.

Python's own filter for tar archives can be bypassed with long chains of links (CVE-2025-4517) and is not relied upon.
Each member is judged by the text of its header before it is written; one bad member rejects the whole archive.

Parsers and decompressors run in a child process without privileges and with limited memory and CPU time. It is forked
without exec: the servers' user may not be allowed to read our Python (e.g. in /root/.venv), but a fork has it in
memory. Archive and directory are opened before privileges are dropped, so the servers' user need not be able to reach
them.
"""

import bz2
import codecs
import gc
import gzip
import io
import json
import lzma
import os
import posixpath
import resource
import signal
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self

from pgversus.host.identity import ServerUser

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_MEMBERS = 100_000
"""PostgreSQL's source has about 10,000 files and directories, a full build about 3,000."""
MOST_BYTES = 2 << 30
"""Unpacked, headers included. PostgreSQL's source has about 200 MB, a build with debug information less than 1 GB."""
MOST_NAME_BYTES = 1000
_MOST_COMPONENT_BYTES = 255
# NAME_MAX, the limit of Linux file systems.
_MOST_DEPTH = 100
# A tree deeper than Python's recursion limit could be written but not removed.
_MOST_MEMORY_BYTES = 1 << 30
# In addition to the memory at start. The largest need is the dictionary of xz, 64 MB at its highest level.
_MOST_CPU_S = 600
# A slow processor unpacks MOST_BYTES of bzip2 in about 200 s.
_MOST_ANSWER_BYTES = 16_384
_MOST_WORDS = 1000
_MOST_SHOWN = 100
_PIECE_BYTES = 1 << 20
_FORMATS: tuple[tuple[bytes, Callable[[Any], Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)


class ArchiveError(Exception):
    """An archive was rejected or could not be unpacked."""


def unpack(archive: Path, target: Path, user: ServerUser, *, inner: str = "") -> None:
    """Unpack an archive to `target`, which must not exist.

    user: the user to unpack as; we own the result.
    inner: for zip archives (wheels, jars), the suffix of the only tar archive inside.
    ArchiveError if the archive is rejected, OSError if it cannot be read or the host cannot store its contents; then
    `target` is not created.
    """
    # The encoding of names in zip archives, which the child may not be able to import.
    codecs.lookup("cp437")
    # A private parent: while the tree belongs to the servers' user, a running server could change it.
    with archive.open("rb") as file, tempfile.TemporaryDirectory(prefix=f"{target.name}-", dir=target.parent) as name:
        tree = Path(name) / "tree"
        tree.mkdir()
        tree.chmod(0o755)
        user.change_owner(tree)
        _in_child(partial(_write_tree, file, inner, parent=os.getpid()), tree, user, archive_fd=file.fileno())
        if not user.is_self:
            take_over(tree, user)
        tree.rename(target)


def take_over(tree: Path, user: ServerUser) -> None:
    """Make us the owner of a tree written by `user`, so that no server can change its own programs.

    Links are not followed. ArchiveError if the user does not own an entry, such as a hard link to another's file.
    """
    for name, directory in _entries(tree):
        if os.stat(name, dir_fd=directory, follow_symlinks=False).st_uid != user.uid:
            raise ArchiveError(f"{_shown(name)} is not owned by {user.name}, the user that unpacked it")
    for name, directory in _entries(tree):
        os.chown(name, os.geteuid(), os.getegid(), dir_fd=directory, follow_symlinks=False)


def _entries(tree: Path) -> Iterator[tuple[str, int]]:
    """Yield the name and the open directory descriptor of every entry in a tree; the tree itself is `.`."""
    for at, directories, files, directory in os.fwalk(tree, follow_symlinks=False):
        yield from ((name, directory) for name in (*directories, *files))
        if at == str(tree):
            yield ".", directory


def _in_child(work: Callable[[], None], directory: Path, user: ServerUser, *, archive_fd: int) -> None:
    """Call `work` in a confined child process; raise its ArchiveError or OSError here."""
    reading, writing = os.pipe()
    with open(reading, "rb") as answers, open(writing, "wb") as written:  # noqa: PTH123 - file descriptors
        child = 0
        try:
            with warnings.catch_warnings():
                # Python warns of fork in a multi-threaded process: locks held by other threads stay locked in the
                # child. The child takes none of them: it does not import, log or print.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                _work_and_exit(work, directory, user, archive_fd, written.fileno())
            written.close()
            answer = answers.read(_MOST_ANSWER_BYTES)
        finally:
            # The child has answered or hangs, or we were interrupted: it is no longer needed.
            if child:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
    if not answer:
        is_slow = os.waitstatus_to_exitcode(status) == -signal.SIGXCPU
        raise ArchiveError(
            f"unpacking it takes more than {_MOST_CPU_S} s of CPU time"
            if is_slow
            else "the process that unpacks it was killed"
        )
    words, number = json.loads(answer)
    if number:
        raise OSError(number, words)
    if words:
        raise ArchiveError(words)


def _work_and_exit(
    work: Callable[[], None], directory: Path, user: ServerUser, archive_fd: int, answer_fd: int
) -> NoReturn:
    """Work and exit without returning to the copied stack. Answer with a message, empty on success, and errno or 0."""
    words, number = "unpacking it was interrupted", 0
    try:
        _confine(directory, user, {archive_fd, answer_fd})
        work()
        words = ""
    except MemoryError:
        words = f"unpacking it takes more than {_MOST_MEMORY_BYTES >> 20} MB of memory"
    except OSError as error:
        words, number = error.strerror or str(error), error.errno or 0
    except Exception as error:  # noqa: BLE001 - the process boundary: any exception becomes a message
        words = str(error) or type(error).__name__
    finally:
        try:
            os.write(answer_fd, json.dumps([words[:_MOST_WORDS], number]).encode())
        finally:
            os._exit(0)


def _confine(directory: Path, user: ServerUser, kept: set[int]) -> None:
    """Give up everything that unpacking does not require: signals, open files, privileges, memory, CPU time."""
    # Ctrl-C reaches only pgversus, which then ends this process.
    os.setpgid(0, 0)
    for interrupt in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(interrupt, signal.SIG_DFL)
    # Do not run finalizers of the parent's objects, which could close our file descriptors.
    gc.freeze()
    null = os.open(os.devnull, os.O_RDWR)
    standard = {0, 1, 2} - kept
    for number in standard:
        os.dup2(null, number)
    for number in {int(path.name) for path in Path("/proc/self/fd").iterdir()} - standard - kept:
        with suppress(OSError):
            os.close(number)
    os.chdir(directory)
    os.umask(0o022)
    if not user.is_self:
        os.setgroups([])
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + _MOST_MEMORY_BYTES)
    _limit(resource.RLIMIT_CPU, _MOST_CPU_S)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    resource.setrlimit(which, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _write_tree(file: IO[bytes], inner: str, *, parent: int) -> None:
    """Write the contents of an archive to the working directory."""
    if not inner:
        _write_members(_bounded(_decompressed(_bounded(file, parent)), parent))
        return
    with zipfile.ZipFile(file) as outer:
        names = [name for name in outer.namelist() if name.endswith(inner)]
        if len(names) != 1:
            raise ArchiveError(f"expected one *{inner} in it, found {len(names)}")
        with outer.open(names[0]) as packed:
            _write_members(_bounded(_decompressed(_bounded(packed, parent)), parent))


def _decompressed(packed: io.BufferedReader) -> IO[bytes]:
    """Return a stream that decompresses a file; the file itself if it is not compressed."""
    beginning = packed.peek(max(len(magic) for magic, _ in _FORMATS))
    return next((opened(packed) for magic, opened in _FORMATS if beginning.startswith(magic)), packed)


def _bounded(stream: IO[bytes], parent: int) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(stream, parent), _PIECE_BYTES)


class _Bounded(io.RawIOBase):
    """A stream that raises an ArchiveError after MOST_BYTES, or when pgversus has been killed."""

    def __init__(self, stream: IO[bytes], parent: int) -> None:
        self._stream = stream
        self._parent = parent
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if os.getppid() != self._parent:
            raise ArchiveError("pgversus has ended")
        piece = self._stream.read(memoryview(buffer).nbytes)
        self._left -= len(piece)
        if self._left < 0:
            raise _too_big()
        memoryview(buffer)[: len(piece)] = piece
        return len(piece)


class _Header(tarfile.TarInfo):
    """The header of a member. tarfile would treat a damaged one as the end of the archive and ignore the rest."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return the member of this header; HeaderError for the zero block that ends an archive."""
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise ArchiveError("this is not a tar archive, or it is truncated or damaged") from error


def _write_members(content: io.BufferedReader) -> None:
    with tarfile.open(fileobj=content, mode="r|", tarinfo=_Header) as archive:
        members = _Members()
        for member in archive:
            members.write(member, archive)
    # Read to the end, where the checksum of a compressed file is verified.
    while content.read(_PIECE_BYTES):
        pass


class _Members:
    """Writes the members of one archive to the working directory.

    No link can lead outside. Its directory is a real one, since no member may be below a link. Its target goes up only
    at the beginning, at most to the root, and then down through directories or links of the same kind.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, bytes] = {}
        self._count = 0
        self._bytes = 0

    def write(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        """Write one member; ArchiveError if it is not permitted."""
        self._write(member, archive)
        self._count += 1
        # Count directories without a header too.
        if max(self._count, len(self._kinds)) > MOST_MEMBERS:
            raise ArchiveError(f"it has more than {MOST_MEMBERS} members")

    def _write(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        name = _checked_name(member.name)
        if member.isdir():
            self._make_directories(name)
            return
        if not name or name in self._kinds:
            raise ArchiveError(f"{_shown(name)} occurs twice")
        self._make_directories(posixpath.dirname(name))
        if member.issym():
            _check_symbolic_link(name, member.linkname)
            Path(name).symlink_to(member.linkname)
            self._kinds[name] = tarfile.SYMTYPE
            return
        if member.islnk():
            target = _checked_name(member.linkname)
            if self._kinds.get(target) != tarfile.REGTYPE:
                raise ArchiveError(f"{_shown(name)} is a hard link to {_shown(target)}, which is not an earlier file")
            os.link(target, name, follow_symlinks=False)
        elif member.isreg() and not member.issparse():
            self._write_file(name, member, archive)
        else:
            raise ArchiveError(f"{_shown(name)} is neither a file, nor a directory, nor a link")
        self._kinds[name] = tarfile.REGTYPE

    def _write_file(self, name: str, member: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
        self._bytes += max(member.size, 0)
        content = archive.extractfile(member)
        if member.size < 0 or content is None:
            raise ArchiveError(f"{_shown(name)} has an invalid size")
        if self._bytes > MOST_BYTES:
            raise _too_big()
        # O_EXCL: no file is replaced, and no link at the end of the path is followed.
        opened = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(opened, "wb") as file:  # noqa: PTH123 - a file descriptor
            while piece := content.read(_PIECE_BYTES):
                file.write(piece)
            file.flush()
            # Without setuid, setgid and sticky bits, and writable only by the owner.
            os.fchmod(file.fileno(), member.mode & 0o755 | 0o600)
            # make compares the times of sources and generated files.
            os.utime(file.fileno(), (int(member.mtime), int(member.mtime)))

    def _make_directories(self, name: str) -> None:
        """Create a directory and its missing parents."""
        above = ""
        for part in name.split("/") if name else ():
            above = posixpath.join(above, part)
            if above not in self._kinds:
                Path(above).mkdir(0o755)
                self._kinds[above] = tarfile.DIRTYPE
            elif self._kinds[above] != tarfile.DIRTYPE:
                raise ArchiveError(f"{_shown(above)} is not a directory, but {_shown(name)} requires one")


def _checked_name(name: str) -> str:
    """Return a member's name relative to the root, empty for the root itself; ArchiveError if it leads outside."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if (
        name.startswith("/")
        or "\0" in name
        or ".." in parts
        or len(parts) > _MOST_DEPTH
        or len(os.fsencode(name)) > MOST_NAME_BYTES
        or any(len(os.fsencode(part)) > _MOST_COMPONENT_BYTES for part in parts)
    ):
        raise ArchiveError(f"the name {_shown(name)} is too long or leads outside of the archive")
    return "/".join(parts)


def _check_symbolic_link(name: str, target: str) -> None:
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((count for count, part in enumerate(parts) if part != ".."), len(parts))
    if (
        target.startswith("/")
        or "\0" in target
        or up > name.count("/")
        or ".." in parts[up:]
        or len(os.fsencode(target)) > MOST_NAME_BYTES
    ):
        raise ArchiveError(f"the link {_shown(name)} to {_shown(target)} may lead outside of the archive")


def _shown(name: str) -> str:
    return repr(name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}...")


def _too_big() -> ArchiveError:
    return ArchiveError(f"it has more than {MOST_BYTES >> 20} MB unpacked")
