"""Whether time passed as it should while something was measured.

A program that was stopped, a machine that slept and a clock that was set all make a window longer or shorter than it
says. No counter of the host reports them; the clocks of the kernel do, by how far they disagree.
"""

import time
from dataclasses import dataclass

_TOLERANCE_S = 0.25
"""More than a busy host delays a wake-up, less than a person can stop a program for."""
_SET_S = 0.05
"""A clock that NTP slews gains at most 0.5 ms in a second."""


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


def time_was_lost(began: Moment, ended: Moment, longest_s: float) -> bool:
    """Return whether less than all of the time between two moments was measured.

    It took longer than longest_s, as when a program was stopped; or the machine was suspended, or its clock set.
    """
    elapsed_s = ended.boot_s - began.boot_s
    slept_s = elapsed_s - (ended.monotonic_s - began.monotonic_s)
    set_by_s = ended.real_s - began.real_s - elapsed_s
    return elapsed_s > longest_s + _TOLERANCE_S or slept_s > _SET_S or abs(set_by_s) > _SET_S
