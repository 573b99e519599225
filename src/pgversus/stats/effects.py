"""Ratios between two arms and levels of one arm, on the log scale, with their standard errors.

The unit of evidence is the block: a fresh start of every server. Windows are never used as independent samples,
because all windows of one start share that start's luck. The same holds for percentiles: each block gives one.

A study needs the same trials again and again: at every look, for levels and for ratios. So their values are computed
once, and samples grow by blocks.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgversus.records.trials import BIN_WIDTH, Block, value_of
from pgversus.study.metrics import Metric, Quantity, transactions_for_quantile


class Samples:
    """Blocks, and what they say of each arm."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = list(blocks)
        self._logs: dict[tuple[Quantity, int], list[float | None]] = {}

    def add(self, block: Block) -> None:
        """One more block."""
        self.blocks.append(block)

    def logs(self, quantity: Quantity, arm: int) -> list[float | None]:
        """ln of a quantity of an arm for each block, -inf for nothing; None where the block does not tell."""
        known = self._logs.setdefault((quantity, arm), [])
        of = value_of(quantity)
        for block in self.blocks[len(known) :]:
            trial = block.trials.get(arm)
            value = None if trial is None else of(trial)
            known.append(None if value is None else math.log(value) if value > 0 else -math.inf)
        return known

    def fewest_transactions(self, arms: Iterable[int]) -> int:
        """The fewest transactions of any of these arms in a block that holds them all; 0 when there is none."""
        wanted = tuple(arms)
        found = [
            min(block.trials[arm].transactions for arm in wanted)
            for block in self.blocks
            if all(arm in block.trials for arm in wanted)
        ]
        return min(found, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEstimate:
    """A mean on the log scale and its standard error over n blocks."""

    point: float
    standard_error: float
    """Not a number while there is only one block, and for a maximum."""
    n: int


def log_ratio(samples: Samples, quantity: Quantity, baseline: int, contender: int) -> LogEstimate | None:
    """ln(contender / baseline) of a quantity: the mean of the log-ratios of the blocks that hold both arms.

    None for no such block, and for the maximum, which has no sensible ratio.
    """
    if quantity is Metric.LATENCY_MAX:
        return None
    logs = [other - base for base, other in _pairs(samples, quantity, baseline, contender)]
    return _estimate(logs, quantity) if logs else None


def log_level(samples: Samples, quantity: Quantity, arm: int) -> LogEstimate | None:
    """ln of one arm's quantity: the mean over its blocks; for the maximum, the largest of all with no error."""
    logs = [log for log in samples.logs(quantity, arm) if log is not None]
    if not logs:
        return None
    if quantity is Metric.LATENCY_MAX:
        return LogEstimate(point=max(logs), standard_error=math.nan, n=len(logs))
    return _estimate(logs, quantity)


def paired_log_levels(
    samples: Samples, quantity: Quantity, baseline: int, contender: int
) -> tuple[float, float] | None:
    """The points of both arms' levels in the blocks that hold both: the ratio is theirs. None for no such block."""
    pairs = _pairs(samples, quantity, baseline, contender)
    if not pairs:
        return None
    ours, theirs = zip(*pairs, strict=True)
    if quantity is Metric.LATENCY_MAX:
        return max(ours), max(theirs)
    return math.fsum(ours) / len(pairs), math.fsum(theirs) / len(pairs)


def quantile_is_supported(samples: Samples, q: float, arms: Iterable[int]) -> bool:
    """Whether every block that holds these arms has enough transactions of each for an interval of the quantile q."""
    return samples.fewest_transactions(arms) >= transactions_for_quantile(q)


def _pairs(samples: Samples, quantity: Quantity, baseline: int, contender: int) -> list[tuple[float, float]]:
    both = zip(samples.logs(quantity, baseline), samples.logs(quantity, contender), strict=True)
    return [(ours, theirs) for ours, theirs in both if ours is not None and theirs is not None]


def _estimate(logs: Sequence[float], quantity: Quantity) -> LogEstimate:
    # A percentile is known to within a bin: without this, latencies that all fall into one would agree exactly.
    return mean_of_logs(logs, least_error=BIN_WIDTH / 2 if quantity.quantile is not None else 0.0)


def mean_of_logs(logs: Sequence[float], *, least_error: float = 0.0) -> LogEstimate:
    """Their mean, one for each block, and its standard error, which is at least `least_error`."""
    n = len(logs)
    if not all(map(math.isfinite, logs)):
        # A block in which one of the two is nothing.
        return LogEstimate(point=math.nan, standard_error=math.nan, n=n)
    mean = math.fsum(logs) / n
    if n == 1:
        return LogEstimate(point=mean, standard_error=math.nan, n=1)
    variance = math.fsum((x - mean) ** 2 for x in logs) / (n - 1)
    return LogEstimate(point=mean, standard_error=max(math.sqrt(variance / n), least_error), n=n)
