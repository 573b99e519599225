"""The kernel's cache of files: asking it to forget some, and looking whether it did; reading some in.

Nothing here can be forced: the kernel keeps pages that are in use or being written. So the answer is what was seen
afterwards. It is seen by mincore(2): reading with RWF_NOWAIT instead makes the kernel fetch the page, and when that
is quick a page that was not cached looks as if it had been.
"""

import ctypes
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pgversus.host.commands import run
from pgversus.host.facts import mount_of

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KEEPS_ITS_OWN_CACHE = frozenset({"zfs"})

_READ_BYTES = 1024**2

_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def evict(directory: Path) -> float | None:
    """The share of pages of the files below a directory that are still cached after asking the kernel to drop them.

    From 0 to 1; 0 where there is nothing. None where it cannot be seen: on zfs, which has a cache of its own, and for
    files that this user neither owns nor may write. Symbolic links are not followed; files that vanish or that this
    user cannot read are passed over. Meant for a stopped server: a running one reads its files again.
    """
    # Pages that are not on disk yet cannot be dropped. For all files at once: one by one, each would flush the disk.
    run(["sync", "--file-system", str(directory)])
    for file in _open_files(directory):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return _cached_share(directory)


def read_in(directory: Path) -> int:
    """Read every file below a directory once, so that all of it is cached as far as memory allows; the bytes read.

    A copy that shares its blocks begins with nothing of it in memory, one that was written with all of it. Symbolic
    links are not followed; files that vanish or that this user cannot read are passed over.
    """
    buffer = bytearray(_READ_BYTES)
    return sum(_read_through(file, buffer) for file in _open_files(directory))


def _read_through(file: int, buffer: bytearray) -> int:
    total = 0
    try:
        while count := os.readv(file, [buffer]):
            total += count
    except OSError:
        # A block that cannot be read is the server's to complain of.
        pass
    return total


def _cached_share(directory: Path) -> float | None:
    mount = mount_of(directory)
    if mount is not None and mount.fstype in _KEEPS_ITS_OWN_CACHE:
        return None
    cached, pages = 0, 0
    for file in _open_files(directory):
        if not _may_ask(file):
            return None
        try:
            flags = _cached_pages(file)
        except (OSError, ValueError):
            # mmap says ValueError of a file that has become shorter meanwhile.
            continue
        cached += sum(flag & 1 for flag in flags)
        pages += len(flags)
    return cached / pages if pages else 0.0


def _cached_pages(file: int) -> bytes:
    """A byte for each page of a file, with its lowest bit set where the page is cached; OSError when it cannot be."""
    size = os.fstat(file).st_size
    if size == 0:
        return b""
    flags = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    # A private copy in which nothing is ever read or written: ctypes takes the address of writable memory alone.
    with mmap.mmap(file, size, access=mmap.ACCESS_COPY) as mapped:
        begin = ctypes.c_char.from_buffer(mapped)
        failed = _LIBRARY.mincore(ctypes.addressof(begin), size, flags)
        del begin
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return flags.raw


def _may_ask(file: int) -> bool:
    """Whether the kernel answers truly: of files of others it says that all is cached (mincore(2), since Linux 5.2)."""
    return os.fstat(file).st_uid == os.geteuid() or os.access(f"/proc/self/fd/{file}", os.W_OK)


def _open_files(directory: Path) -> Iterator[int]:
    """A descriptor for each regular file below a directory, open until the next is asked for."""
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                file = os.open(Path(folder) / name, _OPEN)
            except OSError:
                continue
            try:
                if stat.S_ISREG(os.fstat(file).st_mode):
                    yield file
            finally:
                os.close(file)
