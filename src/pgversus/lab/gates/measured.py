"""What was measured of one arm, as caveats ask for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.records.trials import Block, Trial
from pgversus.stats.counters import CounterTable, counter_table
from pgversus.study.comparison import Arm


@dataclass(frozen=True, slots=True)
class Measured:
    """The finished trials of an arm."""

    arm: Arm
    trials: Sequence[Trial]
    counters: CounterTable
    seconds: float
    """Of all windows."""


def measured_of(arm: Arm, blocks: Sequence[Block]) -> Measured:
    """Of all blocks that hold the arm."""
    trials = [block.trials[arm.index] for block in blocks if arm.index in block.trials]
    return Measured(arm, trials, counter_table(trials), math.fsum(trial.seconds for trial in trials))
