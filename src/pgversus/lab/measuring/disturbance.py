"""Whether something else had the host while a window was measured, by what the host itself tells.

Never by how fast the window was: who measures again what looks slow finds what he looks for.
"""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

FOREIGN = 0.10
STEAL = 0.05
"""Shares of all processors of the host."""

_TICKS_S = 0.05
"""Host and processes count in steps of 0.01 s, each clock for itself: of less nothing can be said."""

Amount = TypeVar("Amount", float, npt.NDArray[np.float64])


def foreign_cpu_s(told: Callable[[str], Amount]) -> Amount:
    """Processor time that programs other than servers and pgbench spent in their own code; nan where it is not told.

    Time in the kernel is left out: its threads encrypt, compress and write back for whichever arm has asked for it, and
    taken for work of others it would be held against the arm that moves more data. The clocks of host and processes
    tick apart, so that in a short window it may be a little below 0.

    told: a counter by its name, of one window or of each trial; nan where it is not told.
    """
    return told("host_cpu_user_s") - told("server_cpu_user_s") - told("client_cpu_user_s")


def is_disturbed(counters: Mapping[str, float], seconds: float, cpus: int) -> bool:
    """Whether other programs or other guests had more of the processors than a comparison can bear.

    counters: of a window of so many seconds. False for a host that does not tell.
    """
    capacity = cpus * seconds
    # What is not told compares as false.
    foreign = foreign_cpu_s(lambda name: counters.get(name, math.nan))
    steal = counters.get("host_steal_s", 0.0)
    return foreign > max(FOREIGN * capacity, _TICKS_S) or steal > max(STEAL * capacity, _TICKS_S)
