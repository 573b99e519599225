"""The kernel's page cache: evict files, verify the eviction, and read files in.

Eviction cannot be forced: the kernel keeps pages that are in use or being written. So the result is measured
afterwards, with mincore(2). Reading with RWF_NOWAIT would instead make the kernel fetch the page, and on fast storage
an uncached page would then look cached.
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
    """Ask the kernel to evict all files below a directory and return the share of pages still cached.

    The share is between 0 and 1, and 0 without files. It is None if unknown: on zfs, which has its own cache, and for
    files that this user neither owns nor may write. Symbolic links are not followed; files that vanish or that this
    user cannot read are skipped. The server should be stopped, since a running one reads its files again.
    """
    # Dirty pages cannot be evicted. One sync for all files: one per file would flush the disk each time.
    run(["sync", "--file-system", str(directory)])
    for file in _open_files(directory):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return _cached_share(directory)


def read_in(directory: Path) -> int:
    """Read every file below a directory once, so that it is cached as far as memory allows; return the bytes read.

    Without this, a reflink copy starts uncached, while a written copy starts fully cached. Symbolic links are not
    followed; files that vanish or that this user cannot read are skipped.
    """
    buffer = bytearray(_READ_BYTES)
    return sum(_read_through(file, buffer) for file in _open_files(directory))


def _read_through(file: int, buffer: bytearray) -> int:
    total = 0
    try:
        while count := os.readv(file, [buffer]):
            total += count
    except OSError:
        # The server reports blocks that cannot be read.
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
            # mmap raises ValueError for a file that was truncated meanwhile.
            continue
        cached += sum(flag & 1 for flag in flags)
        pages += len(flags)
    return cached / pages if pages else 0.0


def _cached_pages(file: int) -> bytes:
    """Return one byte per page of a file, with the lowest bit set if the page is cached; OSError on failure."""
    size = os.fstat(file).st_size
    if size == 0:
        return b""
    flags = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    # A private mapping that is never read or written: ctypes takes the address of writable memory only.
    with mmap.mmap(file, size, access=mmap.ACCESS_COPY) as mapped:
        begin = ctypes.c_char.from_buffer(mapped)
        failed = _LIBRARY.mincore(ctypes.addressof(begin), size, flags)
        del begin
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return flags.raw


def _may_ask(file: int) -> bool:
    """Return whether mincore(2) is truthful: for files of others, Linux 5.2 and later report all pages as cached."""
    return os.fstat(file).st_uid == os.geteuid() or os.access(f"/proc/self/fd/{file}", os.W_OK)


def _open_files(directory: Path) -> Iterator[int]:
    """Yield a descriptor for each regular file below a directory, open until the next iteration."""
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
