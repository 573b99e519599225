"""Telling a full disk from everything else that can fail: it says nothing of what is measured, and it passes."""

import errno
import os
import re
from pathlib import Path

from pgversus.errors import HostError

_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
_WORDS = re.compile(r"^.*(?:No space left on device|Disk quota exceeded).*$", re.MULTILINE)
# The kernel says ENOSPC of these as well, and PostgreSQL then adds that it is not about a disk.
_NO_DISK = re.compile(r"shared memory|semaphores?")
WHAT_IS_KEPT = (
    "what was measured is kept: the same pgversus run goes on from there, and of a pgversus compare, which would begin "
    "anew, pgversus report shows it"
)
"""For errors in the middle of a run that are the host's."""
_LEAST_BYTES = 64 * 1024
# With less than this programs fail to write what they were about to say.


def is_full(error: OSError) -> bool:
    """Whether a system call failed because a disk is full, or the quota of its user."""
    return error.errno in _ERRORS


def words_of_full_disk(words: str) -> str:
    """The line in which a program says that a disk is full; empty where none does."""
    lines = (match[0].strip() for match in _WORDS.finditer(words))
    return next((line for line in lines if not _NO_DISK.search(line)), "")


def has_no_room(directory: Path) -> bool:
    """Whether nothing more can be written to the file system of this directory, as far as it tells."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LEAST_BYTES


def full_disk(where: Path | str, found: str) -> HostError:
    """The error that ends a run; what was measured until then is kept."""
    return HostError(
        "a disk is full",
        slug="host-disk-full",
        where=str(where),
        found=found,
        expected="room for the data of all arms, what they write, and pgbench's log of each window",
        to_do=f"make room, or name another file system in PGVERSUS_CACHE; {WHAT_IS_KEPT}",
    )
