"""Whoever uses a directory keeps it from being removed, and no longer than he lives."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgversus.host.in_use import in_use, unused

KILLED = """
import os, signal, sys
from pathlib import Path
from pgversus.host.in_use import in_use
with in_use([Path(sys.argv[1])]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_unused(directory: Path) -> bool:
    with unused(directory) as is_free:
        return is_free


def test_what_many_use_is_unused_when_the_last_of_them_has_ended(tmp_path: Path) -> None:
    with in_use([tmp_path]):
        with in_use([tmp_path]):
            assert not is_unused(tmp_path)
        assert not is_unused(tmp_path)
    assert is_unused(tmp_path)


def test_a_kill_leaves_nothing_in_use(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False).returncode == -signal.SIGKILL
    assert is_unused(tmp_path)


def test_what_is_gone_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), in_use([tmp_path / "gone"]):
        pass
