"""A run killed at any point while its directories are created leaves no files."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgversus.host.directories import Cache
from pgversus.host.guard import lock_file
from pgversus.host.identity import server_user
from pgversus.host.run_directory import run_directory

# pgversus is killed at one of the calls of run_directory(), each in turn.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from pgversus.host import directories
from pgversus.host.identity import server_user
from pgversus.host import run_directory as made

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
def test_a_killed_run_leaves_no_files(tmp_path: Path, moment: str) -> None:
    killed = subprocess.run([sys.executable, "-c", PROGRAM, moment, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 20
    while left := [*(tmp_path / "cache" / "runs").iterdir(), *(tmp_path / "sockets").iterdir()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_the_servers_user_can_enter_a_run_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    user = server_user()
    cache = Cache(root=tmp_path / "cache")
    cache.runs.mkdir(parents=True)
    monkeypatch.setattr("pgversus.host.directories._SOCKET_ROOT", tmp_path)
    before = os.umask(umask)
    try:
        with run_directory(cache, user) as directory:
            entered = 0o700 if user.is_self else 0o710
            copies = directory.copy_directory(1, 0).parent
            for path in (directory.root, directory.settings_directory(), copies):
                found = path.stat()
                assert (stat.S_IMODE(found.st_mode), found.st_gid) == (entered, user.gid)
            for path in (directory.sockets, directory.socket_directory(0)):
                assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_uid) == (0o700, user.uid)
            assert stat.S_IMODE(lock_file(directory.root).stat().st_mode) == 0o600
    finally:
        os.umask(before)
