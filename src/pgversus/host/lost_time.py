"""Whether time was lost while something was measured: a program was stopped, the machine slept, the clock was set.

No counter of the host reports it, and the window only looks slow. So it is never concluded from how slow a window was:
a slower arm would be measured again more often. What is looked at is the same for every arm: clocks of the kernel that
should agree, how late we wake up ourselves, and processes that the kernel reports as stopped.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pgversus.host.processes import BackgroundThread

LATE_S = 0.25
"""By how much a wake-up must be late to count: a busy host delays it by less, a person who stops a program by more."""
_LOOK_S = 0.25
_DISAGREE_S, _DISAGREE_SHARE = 0.05, 0.001
# A clock that NTP slews gains at most 0.0005 of the time that passes (adjtimex(2)).
_STOPPED = frozenset({"T", "t"})
# By a signal, and by a debugger (proc_pid_stat(5)).


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment by three clocks, in seconds."""

    monotonic_s: float
    """Stands still while the machine is suspended (CLOCK_MONOTONIC)."""
    boot_s: float
    """Goes on while it is (CLOCK_BOOTTIME)."""
    real_s: float
    """The time of day, which can be set (CLOCK_REALTIME)."""


def now() -> Moment:
    """Return this moment."""
    return Moment(
        monotonic_s=time.monotonic(),
        boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        real_s=time.time(),
    )


def clocks_disagree(began: Moment, ended: Moment) -> bool:
    """Return whether the machine was suspended, or its clock set, between two moments."""
    elapsed_s = ended.boot_s - began.boot_s
    slept_s = elapsed_s - (ended.monotonic_s - began.monotonic_s)
    set_by_s = ended.real_s - began.real_s - elapsed_s
    return max(slept_s, abs(set_by_s)) > _DISAGREE_S + _DISAGREE_SHARE * elapsed_s


class LostTime(BackgroundThread):
    """Looks while a block of code runs: at the clocks, at ourselves, and at the programs that take part in it."""

    def __init__(self, server: int | None) -> None:
        """server: the postmaster's process id, None where it is not ours; our own children are always looked at."""
        super().__init__("pgversus-lost-time")
        self._server = server
        self._was_seen = False
        self._began = now()

    @property
    def was_lost(self) -> bool:
        """Whether time was lost; asked when the block has ended."""
        return self._was_seen

    def __enter__(self) -> Self:
        self._began = now()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._was_seen = self._was_seen or clocks_disagree(self._began, now())

    def _run(self) -> None:
        is_over = False
        while not (self._was_seen or is_over):
            looked = time.monotonic()
            is_over = self._is_over_within(_LOOK_S)
            # Also at the end: while we are stopped the block may end.
            is_late = time.monotonic() - looked > _LOOK_S + LATE_S
            self._was_seen = is_late or (not is_over and bool(stopped_among(self._programs())))

    def _programs(self) -> Iterator[int]:
        yield from _children("self")
        if self._server is not None:
            yield self._server
            yield from _children(str(self._server))


def stopped_among(pids: Iterable[int]) -> set[int]:
    """Return those of these processes that are stopped at this moment."""
    return set(filter(_is_stopped, pids))


def _is_stopped(pid: int) -> bool:
    """False when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # The name before the state may have anything in it, but no parenthesis comes after it.
    return text.rpartition(")")[2].split()[0] in _STOPPED


def _children(process: str) -> list[int]:
    """Return the process ids of a process' children; none where the kernel does not list them (proc_pid_task(5))."""
    # Listed by the thread that started them. A walk through all processes of the host would cost more than it tells.
    try:
        lists = [file.read_text(encoding="ascii") for file in Path(f"/proc/{process}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(pid) for text in lists for pid in text.split()]
