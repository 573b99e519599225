"""Time that was lost while something was measured is noticed by the clocks of the kernel."""

import os
import signal
import subprocess
import sys
import time

import pytest

from pgversus.host.clocks import Moment, now, time_was_lost

BEGAN = Moment(1000.0, 5000.0, 1.7e9)


@pytest.mark.parametrize(
    ("monotonic", "boot", "real", "lost"),
    [
        (1.0, 1.0, 1.0, False),
        (1.2, 1.2, 1.2, False),
        (1.0, 1.0, 1.001, False),
        # Stopped.
        (3.0, 3.0, 3.0, True),
        # Suspended, even where what was measured is no longer than it should be.
        (0.5, 0.9, 0.9, True),
        (1.0, 3600.0, 3600.0, True),
        # The clock was set.
        (1.0, 1.0, 1.1, True),
        (1.0, 1.0, -3599.0, True),
    ],
)
def test_lost_time_is_told_from_a_late_wake_up(monotonic: float, boot: float, real: float, *, lost: bool) -> None:
    ended = Moment(BEGAN.monotonic_s + monotonic, BEGAN.boot_s + boot, BEGAN.real_s + real)
    assert time_was_lost(BEGAN, ended, 1.0) is lost


def test_a_program_that_is_stopped_notices_it() -> None:
    program = """
import time
from pgversus.host.clocks import now, time_was_lost
began = now()
print(flush=True)
time.sleep(0.2)
print(time_was_lost(began, now(), 0.2))
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1)
    os.kill(process.pid, signal.SIGCONT)
    assert process.communicate(timeout=10)[0] == "True\n"


def test_the_clocks_of_this_host_agree() -> None:
    began = now()
    assert not time_was_lost(began, now(), 0.0)
