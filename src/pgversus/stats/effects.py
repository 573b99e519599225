"""Ratios between two arms and values of one arm, on the log scale, with standard errors.

The unit of evidence is the block: a fresh start of every server. Windows are never used as independent samples,
because all windows of one start share its start-to-start variation. The same applies to percentiles: each block yields
one.

Every look needs the same trials for values and for ratios, so values are computed once, and samples grow by blocks.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgversus.records.trials import BIN_WIDTH, Block, value_of
from pgversus.study.metrics import Metric, Quantity, transactions_for_quantile


class Samples:
    """Blocks, with cached values of each arm."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = list(blocks)
        self._logs: dict[tuple[Quantity, int], list[float | None]] = {}

    def add(self, block: Block) -> None:
        """Add a block."""
        self.blocks.append(block)

    def logs(self, quantity: Quantity, arm: int) -> list[float | None]:
        """Return ln of an arm's quantity per block, -inf for zero; None where a block has no value."""
        known = self._logs.setdefault((quantity, arm), [])
        of = value_of(quantity)
        for block in self.blocks[len(known) :]:
            trial = block.trials.get(arm)
            value = None if trial is None else of(trial)
            known.append(None if value is None else math.log(value) if value > 0 else -math.inf)
        return known

    def fewest_transactions(self, arms: Iterable[int]) -> int:
        """Return the minimum number of transactions of these arms in any block that holds them all; 0 without one."""
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
    """NaN for a single block, and for a maximum."""
    n: int
    least_error: float = 0.0
    """The standard error of a percentile never falls below this, its resolution, however many blocks there are."""


def log_ratio(samples: Samples, quantity: Quantity, baseline: int, contender: int) -> LogEstimate | None:
    """Return ln(contender / baseline) of a quantity: the mean log ratio of blocks that hold both arms.

    None without such a block, and for the maximum, whose ratio is not meaningful.
    """
    if quantity is Metric.LATENCY_MAX:
        return None
    logs = [other - base for base, other in paired_logs(samples, quantity, baseline, contender)]
    return _estimate(logs, quantity) if logs else None


def log_value(samples: Samples, quantity: Quantity, arm: int) -> LogEstimate | None:
    """Return ln of one arm's quantity: the mean over its blocks; for the maximum, the largest value, without error."""
    logs = [log for log in samples.logs(quantity, arm) if log is not None]
    if not logs:
        return None
    if quantity is Metric.LATENCY_MAX:
        return LogEstimate(point=max(logs), standard_error=math.nan, n=len(logs))
    return _estimate(logs, quantity)


def paired_log_values(
    samples: Samples, quantity: Quantity, baseline: int, contender: int
) -> tuple[float, float] | None:
    """Return both values on the log scale from blocks that hold both arms, like the ratio; None without such blocks."""
    pairs = paired_logs(samples, quantity, baseline, contender)
    if not pairs:
        return None
    ours, theirs = zip(*pairs, strict=True)
    if quantity is Metric.LATENCY_MAX:
        return max(ours), max(theirs)
    return math.fsum(ours) / len(pairs), math.fsum(theirs) / len(pairs)


def quantile_is_supported(samples: Samples, q: float, arms: Iterable[int]) -> bool:
    """Return whether every block with these arms has enough transactions of each for the quantile q."""
    return samples.fewest_transactions(arms) >= transactions_for_quantile(q)


def paired_logs(samples: Samples, quantity: Quantity, baseline: int, contender: int) -> list[tuple[float, float]]:
    """Return ln of both values for each block that holds both."""
    both = zip(samples.logs(quantity, baseline), samples.logs(quantity, contender), strict=True)
    return [(ours, theirs) for ours, theirs in both if ours is not None and theirs is not None]


def _estimate(logs: Sequence[float], quantity: Quantity) -> LogEstimate:
    # The resolution of a percentile is one bin. Without this, latencies in the same bin would have no error.
    return mean_of_logs(logs, least_error=BIN_WIDTH / 2 if quantity.quantile is not None else 0.0)


def mean_of_logs(logs: Sequence[float], *, least_error: float = 0.0) -> LogEstimate:
    """Return the mean over blocks and its standard error, which is at least `least_error`."""
    n = len(logs)
    if not all(map(math.isfinite, logs)):
        # One of the two values of a block is zero.
        return LogEstimate(point=math.nan, standard_error=math.nan, n=n)
    mean = math.fsum(logs) / n
    if n == 1:
        return LogEstimate(point=mean, standard_error=math.nan, n=1)
    variance = math.fsum((x - mean) ** 2 for x in logs) / (n - 1)
    error = max(math.sqrt(variance / n), least_error)
    return LogEstimate(point=mean, standard_error=error, n=n, least_error=least_error)
