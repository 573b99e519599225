"""The guard ends only the servers of its run, whatever files the servers' user has written."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from pgversus.host import guard
from pgversus.host.guard import (
    Guard,
    clean_up,
    end_processes_in,
    lock_file,
    processes_in,
    remember_socket_directory,
    run_name,
    sweep,
)

NOBODY = 65534
# A server whose shutdown hangs. SIGQUIT is ignored if the tests run in the background of a shell.
HANGING = ("env", "--default-signal=QUIT", "--ignore-signal=INT", "sh", "-c", "echo; exec sleep 3600")


def start(directory: Path, user: int = os.geteuid()) -> "subprocess.Popen[str]":
    """A process whose working directory is this directory."""
    process = subprocess.Popen(
        HANGING,
        cwd=directory,
        user=user,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory that contains a server's data directory, writable by the servers' user."""
    data = tmp_path / "run" / "copies-0" / "arm-0"
    data.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(data, NOBODY, NOBODY)
    return tmp_path / "run"


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes ended after the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def server_user() -> int:
    return NOBODY if os.geteuid() == 0 else os.geteuid()


@pytest.mark.parametrize("content", ["{pid}", "-1", "0", "-{pid}", "1", "+{pid}", "{pid} {pid}", "", "x", "9" * 30])
def test_a_forged_postmaster_pid_has_no_effect(
    run: Path, processes: list["subprocess.Popen[str]"], tmp_path: Path, content: str
) -> None:
    unrelated = start(tmp_path)
    processes.append(unrelated)
    (run / "copies-0" / "arm-0" / "postmaster.pid").write_text(content.format(pid=unrelated.pid) + "\n")
    began = time.monotonic()
    clean_up([run])
    assert unrelated.poll() is None
    assert not run.exists()
    assert time.monotonic() - began < 5, "nothing of the run was there to be waited for"


def test_a_process_of_another_user_in_the_run_is_left_alone(
    run: Path, processes: list["subprocess.Popen[str]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = start(run / "copies-0" / "arm-0")
    processes.append(other)
    if os.geteuid() != 0:
        # As if the data directory belonged to another user.
        monkeypatch.setattr("pgversus.host.guard._servers_user", lambda *_: os.geteuid() + 1)
    assert processes_in(run) == []
    end_processes_in(run)
    clean_up([run])
    assert other.poll() is None


def test_a_server_that_does_not_stop_is_killed(
    run: Path, processes: list["subprocess.Popen[str]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_SHUTDOWN_S", 0.5)
    server = start(run / "copies-0" / "arm-0", server_user())
    processes.append(server)
    assert server.pid in [process.pid for process in processes_in(run)]
    clean_up([run])
    assert server.wait(timeout=10) == -signal.SIGQUIT
    assert not run.exists()


def test_symbolic_links_in_the_run_are_not_followed(run: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (run / "copies-0" / "arm-0" / "link").symlink_to(tmp_path / "kept")
    (run / "link").symlink_to(tmp_path / "kept")
    clean_up([run, run / "link"])
    assert (tmp_path / "kept" / "file").exists()
    assert not run.exists()


def test_the_guard_survives_the_end_of_its_session(run: Path) -> None:
    waiting = Guard([run])
    pid = waiting._process.pid
    deadline = time.monotonic() + 10
    while not ignores(pid, signal.SIGTERM):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pid, number)
    time.sleep(0.1)
    assert run.exists()
    waiting.close()
    assert not run.exists()


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in status if line.startswith("SigIgn:"))
    return bool(int(mask, 16) & 1 << number - 1)


def test_the_guard_finds_the_modules_of_its_parent(tmp_path: Path) -> None:
    """Also if pgversus is found only through the parent's sys.path."""
    program = """
import sys
from pathlib import Path
from pgversus.host.guard import Guard
Path(sys.argv[1]).mkdir()
Guard([Path(sys.argv[1])]).close()
print(Path(sys.argv[1]).exists())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(guard.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_a_run_whose_guard_was_killed_cleans_up_itself(run: Path) -> None:
    killed = Guard([run])
    killed._process.kill()
    killed.close()
    assert not run.exists()


NO_PROCESS = 2**30
"""Beyond any process id."""


def make_run(runs: Path, name: str) -> Path:
    directory = runs / name
    directory.mkdir()
    lock_file(directory).touch()
    remember_socket_directory(directory, Path("/nowhere"))
    return directory


def test_a_dead_run_is_swept(tmp_path: Path) -> None:
    directory = make_run(tmp_path, run_name())
    assert sweep(tmp_path) == [directory.name]
    assert list(tmp_path.iterdir()) == []


def test_a_living_run_is_left_alone(tmp_path: Path) -> None:
    directory = make_run(tmp_path, run_name())
    with FileLock(lock_file(directory)):
        assert sweep(tmp_path) == []
    assert directory.exists()


def test_a_run_that_died_right_after_its_start_is_swept(tmp_path: Path) -> None:
    lock_alone, with_directory = (tmp_path / f"run-20260101T000000-{NO_PROCESS + n}" for n in (1, 2))
    lock_file(lock_alone).touch()
    lock_file(with_directory).touch()
    with_directory.mkdir()
    assert sweep(tmp_path) == [lock_alone.name, with_directory.name]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_just_started_keeps_its_lock(tmp_path: Path) -> None:
    lock_file(tmp_path / run_name()).touch()
    held = tmp_path / f"run-20260101T000000-{NO_PROCESS}"
    with FileLock(lock_file(held)):
        assert sweep(tmp_path) == []
        assert len(list(tmp_path.iterdir())) == 2


def test_other_directories_are_left_alone(tmp_path: Path) -> None:
    make_run(tmp_path, "experiment")
    without_lock = make_run(tmp_path, "run-20260101T000000-1")
    lock_file(without_lock).unlink()
    without_note = make_run(tmp_path, "run-20260101T000000-2")
    (without_note / "sockets").rename(without_note / "theirs")
    before = sorted(tmp_path.rglob("*"))
    assert sweep(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before
