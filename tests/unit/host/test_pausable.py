import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from pgversus.host.commands import CLEAN_ENVIRONMENT
from pgversus.host.pausable import PausableProgram, ProgramEndedError, can_pause

COUNTING = """
import signal, sys, threading, time
signal.signal(signal.SIGALRM, lambda *_: sys.exit(print("over", flush=True)))
threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(int, 1)], daemon=True).start()
file = open(sys.argv[1], "w", buffering=1)
while True:
    file.write(".")
    file.flush()
    time.sleep(0.001)
"""


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[tuple[PausableProgram, Path]]:
    written = tmp_path / "written"
    arguments = [sys.executable, "-c", COUNTING, str(written)]
    program = PausableProgram(arguments, environment=CLEAN_ENVIRONMENT, scratch=tmp_path)
    while not written.exists() or not written.stat().st_size:
        time.sleep(0.01)
    yield program, written
    program.kill()


def test_a_stopped_program_does_not_run_until_resumed(counting: tuple[PausableProgram, Path]) -> None:
    program, written = counting
    for _ in range(3):
        program.stop()
        size = written.stat().st_size
        time.sleep(0.05)
        assert written.stat().st_size == size
        program.resume()
        time.sleep(0.05)
        assert written.stat().st_size > size


@pytest.mark.parametrize(
    "meddle",
    [
        pytest.param((signal.SIGSTOP,), id="stopped"),
        pytest.param((signal.SIGSTOP, signal.SIGCONT), id="stopped for a while"),
    ],
)
def test_a_stop_by_another_process_is_detected(
    counting: tuple[PausableProgram, Path], meddle: tuple[signal.Signals, ...]
) -> None:
    program, written = counting
    program.stop()
    program.resume()
    program.stop()
    program.resume()
    assert not program.was_signalled
    for number in meddle:
        os.kill(program.pid, number)
        time.sleep(0.05)
    program.stop()
    assert program.was_signalled
    program.resume()
    size = written.stat().st_size
    time.sleep(0.1)
    assert written.stat().st_size > size


def test_a_continue_by_another_process_is_detected(counting: tuple[PausableProgram, Path]) -> None:
    program, _ = counting
    program.stop()
    os.kill(program.pid, signal.SIGCONT)
    program.resume()
    assert program.was_signalled


def test_a_continue_by_another_process_after_the_last_stop_is_detected(counting: tuple[PausableProgram, Path]) -> None:
    program, _ = counting
    program.stop()
    os.kill(program.pid, signal.SIGCONT)
    program.finish(signal.SIGTERM, 10)
    assert program.was_signalled


def test_own_signals_are_not_those_of_another_process(counting: tuple[PausableProgram, Path]) -> None:
    program, _ = counting
    program.stop()
    program.resume()
    program.stop()
    program.finish(signal.SIGTERM, 10)
    assert not program.was_signalled


def test_a_stop_undone_by_another_process_is_repeated(counting: tuple[PausableProgram, Path]) -> None:
    """SIGCONT removes a SIGSTOP that has not taken effect yet: waiting for that stop alone would never end."""
    program, written = counting
    ends = time.monotonic() + 0.5

    def continue_it() -> None:
        while time.monotonic() < ends:
            os.kill(program.pid, signal.SIGCONT)

    with ThreadPoolExecutor() as pool:
        meddling = pool.submit(continue_it)
        while not meddling.done():
            program.stop()
            program.resume()
    program.stop()
    size = written.stat().st_size
    time.sleep(0.05)
    assert written.stat().st_size == size
    assert program.was_signalled


def test_a_stopped_program_ends_on_its_signal(counting: tuple[PausableProgram, Path]) -> None:
    program, _ = counting
    program.stop()
    finished = program.finish(signal.SIGALRM, timeout_s=10)
    assert (finished.exit_code, finished.stdout, finished.timed_out) == (0, "over\n", False)
    assert finished.cpu_s > 0


def test_a_program_that_has_ended_cannot_be_stopped_and_keeps_its_output(tmp_path: Path) -> None:
    program = PausableProgram(["/bin/sh", "-c", "echo no >&2; exit 3"], environment=CLEAN_ENVIRONMENT, scratch=tmp_path)
    time.sleep(0.2)
    with pytest.raises(ProgramEndedError):
        program.stop()
    finished = program.ended()
    assert (finished.exit_code, finished.stderr) == (3, "no\n")


def test_a_program_that_does_not_end_on_its_signal_is_killed(tmp_path: Path) -> None:
    deaf = ["/bin/sh", "-c", "trap '' ALRM; while :; do sleep 0.01; done"]
    program = PausableProgram(deaf, environment={}, scratch=tmp_path)
    time.sleep(0.1)
    finished = program.finish(signal.SIGALRM, timeout_s=0.2)
    assert finished.timed_out
    assert finished.exit_code == -signal.SIGKILL


def test_a_stopped_program_can_be_killed(counting: tuple[PausableProgram, Path]) -> None:
    program, _ = counting
    program.stop()
    program.kill()
    assert not psutil.pid_exists(program.pid)


def test_the_kernel_ends_a_stopped_program_with_its_parent(tmp_path: Path) -> None:
    assert can_pause()
    pid_file = tmp_path / "pid"
    parent = f"""
import os, pathlib
from pathlib import Path
from pgversus.host.pausable import PausableProgram
program = PausableProgram(["/bin/sleep", "60"], environment={{}}, scratch=Path("/tmp"))
# Before that, it has not asked the kernel to end it.
while pathlib.Path(f"/proc/{{program.pid}}/comm").read_text() != "sleep\\n":
    pass
program.stop()
pathlib.Path({str(pid_file)!r}).write_text(str(program.pid))
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", parent], check=False)
    pid = int(pid_file.read_text())
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)
