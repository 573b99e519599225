"""A caveat where an arm does not keep up with the rate that was asked of it (`-R`).

pgbench then begins transactions later and later, and a latency counts from the scheduled start.
"""

import math
from collections.abc import Iterator

from pgversus.lab.gates.measured import Measured
from pgversus.records.preparation import Caveat
from pgversus.study.comparison import Comparison
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.translation import tell
from pgversus.text.units import significant

_REACHED = 0.95
"""Share of the rate, over all windows together."""
_CHANCE = 3.5
"""Standard deviations of how many transactions pgbench schedules, which is Poisson's: their root."""


def rate_caveats(comparison: Comparison, one: Measured) -> Iterator[Caveat]:
    """Whether this arm finished fewer transactions than its rate asks for. Nothing of a load without a rate."""
    workload = one.arm.workload
    if not isinstance(workload, PgbenchWorkload) or workload.rate is None:
        return
    # One that failed was begun all the same.
    begun = sum(trial.transactions + trial.failed for trial in one.trials)
    asked = workload.rate * one.seconds
    # A window lasts until its last transactions have ended, and none is scheduled then: one for each client at most.
    last = workload.clients * comparison.design.rounds * len(one.trials)
    if begun < _REACHED * asked and asked - begun > last + _CHANCE * math.sqrt(asked):
        yield Caveat(
            slug="rate-not-reached",
            arm=one.arm.index or None,
            text=tell(
                "{arm} reached {reached} of {rate} transactions per second: its latencies then measure the queue, "
                "which grows as long as a window lasts",
                arm=one.arm.label,
                reached=significant(begun / one.seconds, 4),
                rate=significant(workload.rate, 4),
            ),
        )
