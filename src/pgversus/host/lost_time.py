"""Detection of lost time during measurements: stopped programs, suspends of the machine, changes of the clock.

No counter of the host reports lost time; the window only looks slow. It is never inferred from slowness, because then
a slower arm would be measured again more often. The evidence is the same for every arm: kernel clocks that should
agree, the delay of our own wake-ups, and processes that the kernel reports as stopped.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pgversus.host.processes import BackgroundThread

LATE_S = 0.25
"""The delay from which a wake-up counts as late: a busy host delays it less, a person stopping a program more."""
_LOOK_S = 0.25
_DISAGREE_S, _DISAGREE_SHARE = 0.05, 0.001
# NTP slews a clock by at most 0.0005 of the elapsed time (adjtimex(2)).
_STOPPED = frozenset({"T", "t"})
# Stopped by a signal or by a debugger (proc_pid_stat(5)).


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment read from three clocks, in seconds."""

    monotonic_s: float
    """Stops while the machine is suspended (CLOCK_MONOTONIC)."""
    boot_s: float
    """Continues while the machine is suspended (CLOCK_BOOTTIME)."""
    real_s: float
    """The time of day, which can be set (CLOCK_REALTIME)."""


def now() -> Moment:
    """Return the current moment."""
    return Moment(
        monotonic_s=time.monotonic(),
        boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        real_s=time.time(),
    )


def clocks_disagree(began: Moment, ended: Moment) -> bool:
    """Return whether the machine was suspended or its clock was set between two moments."""
    elapsed_s = ended.boot_s - began.boot_s
    slept_s = elapsed_s - (ended.monotonic_s - began.monotonic_s)
    set_by_s = ended.real_s - began.real_s - elapsed_s
    return max(slept_s, abs(set_by_s)) > _DISAGREE_S + _DISAGREE_SHARE * elapsed_s


class LostTime(BackgroundThread):
    """Watch the clocks, our own wake-ups and the participating programs while a block of code runs."""

    def __init__(self, server: int | None) -> None:
        """server: process id of the postmaster, None for an external server; our own children are always watched."""
        super().__init__("pgversus-lost-time")
        self._server = server
        self._was_seen = False
        self._began = now()

    @property
    def was_lost(self) -> bool:
        """Whether time was lost; final when the block has ended."""
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
            # Also after the last wait: the block may end while we are stopped.
            is_late = time.monotonic() - looked > _LOOK_S + LATE_S
            self._was_seen = is_late or (not is_over and bool(stopped_among(self._programs())))

    def _programs(self) -> Iterator[int]:
        yield from _children("self")
        if self._server is not None:
            yield self._server
            yield from _children(str(self._server))


def stopped_among(pids: Iterable[int]) -> set[int]:
    """Return the subset of these processes that is currently stopped."""
    return set(filter(_is_stopped, pids))


def _is_stopped(pid: int) -> bool:
    """Return whether a process is stopped; False if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # The name before the state may contain anything, but no parenthesis follows it.
    return text.rpartition(")")[2].split()[0] in _STOPPED


def _children(process: str) -> list[int]:
    """Return the ids of the child processes; empty if the kernel does not list them (proc_pid_task(5))."""
    # Listed per parent thread. Scanning all processes of the host would be too expensive.
    try:
        lists = [file.read_text(encoding="ascii") for file in Path(f"/proc/{process}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(pid) for text in lists for pid in text.split()]
