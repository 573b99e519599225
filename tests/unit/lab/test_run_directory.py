"""A run that is killed while its directories are made leaves nothing, wherever that is."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# The moments are what run_directory() calls, one after the other; at one of them pgversus is killed.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from pgversus.host import directories
from pgversus.host.identity import server_user
from pgversus.lab import run_directory as made

moment, place = sys.argv[1], Path(sys.argv[2])
cache = directories.Cache(root=place / "cache")
cache.runs.mkdir(parents=True)
directories._SOCKET_ROOT = place / "sockets"
directories._SOCKET_ROOT.mkdir()

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if moment != "inside":
    setattr(made, moment, die)
with made.run_directory(cache, server_user()) as directory:
    assert directory.root.is_dir() and directory.sockets.is_dir()
    die()
"""


@pytest.mark.parametrize("moment", ["Guard", "make_directory", "remember_socket_directory", "RunDirectory", "inside"])
def test_a_run_that_is_killed_leaves_nothing_behind(tmp_path: Path, moment: str) -> None:
    killed = subprocess.run([sys.executable, "-c", PROGRAM, moment, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while left := [*(tmp_path / "cache" / "runs").iterdir(), *(tmp_path / "sockets").iterdir()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
