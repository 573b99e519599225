"""How much of the spread between blocks comes from their windows, and how much from the starts of the servers.

Inside a block every quad (two mirrored rounds) gives a log ratio of its own. Their standard error is how far the
block's ratio would move if the same servers were measured again without a restart. What blocks differ by beyond that is
start-to-start variation: memory layout, and where processes land on processors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.stats.effects import LogEstimate
from pgversus.stats.trials import Block, Trial, Window

_FEWEST_QUADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseParts:
    """Standard deviations of one block's log ratio."""

    windows: float
    starts: float
    """0 where the windows alone explain the spread."""


def ratio_error(baseline: Trial, contender: Trial) -> float | None:
    """Return the standard error of ln(contender / baseline) in throughput from the windows of one block.

    None with fewer than two whole quads, and for trials that were read back: their windows are gone.
    """
    logs = [
        math.log(there / here)
        for here, there in zip(_quads(baseline.windows), _quads(contender.windows), strict=False)
        if here > 0 and there > 0
    ]
    if len(logs) < _FEWEST_QUADS:
        return None
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    return math.sqrt(variance / len(logs))


def noise_parts(estimate: LogEstimate, blocks: Sequence[Block], contender: int) -> NoiseParts | None:
    """Divide the spread of a contender's blocks; None where a block has no error of its windows, or is the only one.

    Kalibera and Jones, ISMM 2013: the variance between blocks less the mean variance from within.
    """
    errors = [block.trials[contender].ratio_error for block in blocks if contender in block.trials]
    known = [error for error in errors if error is not None]
    if not known or len(known) < len(errors) or math.isnan(estimate.standard_error):
        return None
    within = math.fsum(error**2 for error in known) / len(known)
    between = estimate.standard_error**2 * estimate.n
    return NoiseParts(windows=math.sqrt(within), starts=math.sqrt(max(0.0, between - within)))


def _quads(windows: Sequence[Window]) -> list[float]:
    """Throughput in two rounds each; a last round without its mirror is left out."""
    pairs = zip(windows[::2], windows[1::2], strict=False)
    return [_tps(one, two) for one, two in pairs]


def _tps(one: Window, two: Window) -> float:
    seconds = one.seconds + two.seconds
    return (one.transactions + two.transactions) / seconds if seconds else 0.0
