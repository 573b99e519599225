"""Lost time is detected, and not confused with a busy host."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from pgversus.host import lost_time
from pgversus.host.lost_time import LostTime, Moment, clocks_disagree, now, stopped_among

BEGAN = Moment(1000.0, 5000.0, 1.7e9)


@pytest.mark.parametrize(
    ("monotonic_s", "boot_s", "real_s", "disagree"),
    [
        (1.0, 1.0, 1.0, False),
        (3600.0, 3600.0, 3600.0, False),
        # NTP slews by at most 0.0005 of the time.
        (3600.0, 3600.0, 3601.8, False),
        # Suspended.
        (0.5, 0.9, 0.9, True),
        (1.0, 3600.0, 3600.0, True),
        # Clock set.
        (1.0, 1.0, 1.1, True),
        (1.0, 1.0, 0.9, True),
        (1.0, 1.0, -3599.0, True),
    ],
)
def test_suspends_and_clock_changes_are_detected(
    monotonic_s: float, boot_s: float, real_s: float, *, disagree: bool
) -> None:
    ended = Moment(BEGAN.monotonic_s + monotonic_s, BEGAN.boot_s + boot_s, BEGAN.real_s + real_s)
    assert clocks_disagree(BEGAN, ended) is disagree


def test_the_clocks_of_this_host_agree() -> None:
    began = now()
    assert not clocks_disagree(began, now())


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "3600"])
    yield process
    process.kill()
    process.wait()


def test_stopped_processes_are_distinguished_from_others(child: "subprocess.Popen[bytes]") -> None:
    others = [os.getpid(), 2**22 + 1]
    assert stopped_among([child.pid, *others]) == set()
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    assert stopped_among([child.pid, *others]) == {child.pid}


def test_a_temporarily_stopped_child_is_detected(child: "subprocess.Popen[bytes]") -> None:
    with LostTime(None) as undisturbed:
        time.sleep(1)
    with LostTime(None) as stopped:
        child.send_signal(signal.SIGSTOP)
        time.sleep(1)
        child.send_signal(signal.SIGCONT)
    assert (undisturbed.was_lost, stopped.was_lost) == (False, True)


def test_a_stopped_child_of_the_server_is_detected() -> None:
    server = subprocess.Popen(["sh", "-c", "sleep 3600 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    backend = int(server.stdout.readline())
    try:
        os.kill(backend, signal.SIGSTOP)
        with LostTime(None) as unseen:
            time.sleep(0.6)
        with LostTime(server.pid) as seen:
            time.sleep(0.6)
        assert (unseen.was_lost, seen.was_lost) == (False, True)
    finally:
        os.kill(backend, signal.SIGKILL)
        server.kill()
        server.communicate()


def test_a_clock_change_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    with LostTime(None) as time_of_block:
        # A test must not set the clock of the host.
        monkeypatch.setattr(lost_time, "now", lambda: Moment(now().monotonic_s, now().boot_s, now().real_s + 3600))
    assert time_of_block.was_lost


def test_a_program_detects_that_it_was_stopped() -> None:
    program = """
import time
from pgversus.host.lost_time import LostTime
with LostTime(None) as time_of_block:
    print(flush=True)
    time.sleep(1)
print(time_of_block.was_lost)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGSTOP)
    time.sleep(1)
    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=10)[0] == "True\n"
