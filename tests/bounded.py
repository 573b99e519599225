"""Time that something may take: a test of what must be quick ends soon where it is not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SHORT_S = 2.0
"""Of processor time, on any machine and under any load: far more than milliseconds, far less than the square of a long
text."""


@contextmanager
def processor_time(seconds: float = SHORT_S) -> Iterator[None]:
    """AssertionError in the midst of it where it takes longer; the time of other processes does not count."""

    def ended(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
