"""A full disk is recognized by errno or message and distinguished from other exhausted resources."""

import errno

import pytest

from pgversus.host.full_disk import full_disk_text, is_full


def test_a_full_disk_and_an_exceeded_quota_are_recognized_by_errno() -> None:
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
def test_a_full_disk_is_recognized_in_messages_of_programs(words: str) -> None:
    assert full_disk_text(f"NOTICE:  before\n{words}\nHINT:  Check free disk space.\n") == words


@pytest.mark.parametrize(
    "words",
    [
        'ERROR:  relation "nowhere" does not exist',
        # ENOSPC for kernel tables and /dev/shm, which depends on settings, not on a disk.
        'ERROR:  could not resize shared memory segment "/PostgreSQL.7" to 8388608 bytes: No space left on device',
        "FATAL:  could not create semaphores: No space left on device",
        "",
    ],
)
def test_other_exhausted_resources_are_not_a_full_disk(words: str) -> None:
    assert full_disk_text(words) == ""
