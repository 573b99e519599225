"""A limit on CPU time, so that a test of a fast operation fails soon if the operation is slow."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SHORT_S = 2.0
"""CPU seconds, independent of machine and load: far more than the expected milliseconds, far less than quadratic time
on a long text."""


@contextmanager
def processor_time(seconds: float = SHORT_S) -> Iterator[None]:
    """Raise AssertionError in the body if it exceeds this CPU time; other processes do not count."""

    def ended(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {seconds} s of processor time")

    before = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
