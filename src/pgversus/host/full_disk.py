"""Distinguish a full disk, which is temporary and says nothing about the measured servers, from other failures."""

import errno
import os
import re
from pathlib import Path

from pgversus.errors import HostError

_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
_WORDS = re.compile(r"^.*(?:No space left on device|Disk quota exceeded).*$", re.MULTILINE)
# ENOSPC for these is not about a disk, as PostgreSQL adds to its message.
_NO_DISK = re.compile(r"shared memory|semaphores?")
WHAT_IS_KEPT = (
    "the blocks measured so far are stored: repeat the pgversus run command to resume. pgversus compare cannot resume; "
    "pgversus report shows its results so far"
)
"""Advice for host errors in the middle of a run."""
_LEAST_BYTES = 64 * 1024
# With less than this, programs cannot even write their error messages.


def is_full(error: OSError) -> bool:
    """Return whether a system call failed because a disk is full or a quota is exceeded."""
    return error.errno in _ERRORS


def full_disk_text(words: str) -> str:
    """Return the line of a program's output that reports a full disk; empty without one."""
    lines = (match[0].strip() for match in _WORDS.finditer(words))
    return next((line for line in lines if not _NO_DISK.search(line)), "")


def has_no_room(directory: Path) -> bool:
    """Return whether the file system of a directory reports no free space."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LEAST_BYTES


def full_disk(where: Path | str, found: str) -> HostError:
    """Return the error that ends a run on a full disk; the blocks measured so far are saved."""
    return HostError(
        "a disk is full",
        slug="host-disk-full",
        where=str(where),
        found=found,
        expected="space for the data of all arms, their writes, and pgbench's log of each window",
        to_do=f"free space, or set PGVERSUS_CACHE to a directory on another file system; {WHAT_IS_KEPT}",
    )
