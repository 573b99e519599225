"""A full disk is told from other failures by numbers and by words, and never from a lack of something else."""

import errno

import pytest

from pgversus.host.full_disk import is_full, words_of_full_disk


def test_a_full_disk_and_a_used_up_quota_are_known_by_number() -> None:
    assert is_full(OSError(errno.ENOSPC, "No space left on device"))
    assert is_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not is_full(OSError(errno.EACCES, "Permission denied"))


@pytest.mark.parametrize(
    "words",
    [
        'psql:a.sql:3: ERROR:  could not extend file "base/5/16385": No space left on device',
        'PANIC:  could not write to file "pg_wal/xlogtemp.77": No space left on device',
        "cp: error writing '/x/base/5/1247': Disk quota exceeded",
    ],
)
def test_programs_that_say_so_are_understood(words: str) -> None:
    assert words_of_full_disk(f"NOTICE:  before\n{words}\nHINT:  Check free disk space.\n") == words


@pytest.mark.parametrize(
    "words",
    [
        'ERROR:  relation "nowhere" does not exist',
        # ENOSPC of the kernel's tables and of /dev/shm; with other settings they do not fail.
        'ERROR:  could not resize shared memory segment "/PostgreSQL.7" to 8388608 bytes: No space left on device',
        "FATAL:  could not create semaphores: No space left on device",
        "",
    ],
)
def test_what_is_no_disk_is_not_taken_for_one(words: str) -> None:
    assert words_of_full_disk(words) == ""
