"""Whether something else had the host while a window was measured, by what the host itself tells.

Never by how fast the window was: who measures again what looks slow finds what he looks for.
"""

import math
from collections.abc import Mapping

FOREIGN = 0.10
STEAL = 0.05
"""Shares of all processors of the host."""

OURS = ("server_cpu_user_s", "server_cpu_system_s", "client_cpu_s")
"""What is no work of others in the time that the host's processors worked."""


def is_disturbed(counters: Mapping[str, float], seconds: float, cpus: int) -> bool:
    """Whether other programs or other guests had more of the processors than a comparison can bear.

    counters: of a window of so many seconds. False for a host that does not tell.
    """
    capacity = cpus * seconds
    foreign = counters.get("host_cpu_s", 0.0) - math.fsum(counters.get(name, math.inf) for name in OURS)
    return foreign > FOREIGN * capacity or counters.get("host_steal_s", 0.0) > STEAL * capacity
