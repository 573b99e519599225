"""Ratios between two arms and levels of one arm, on the log scale, with their standard errors.

The unit of evidence is the block: a fresh start of every server. Windows are never used as independent samples,
because all windows of one start share that start's luck. The same holds for percentiles: each block gives one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.stats.histogram import BIN_WIDTH
from pgversus.stats.trials import Block, Trial
from pgversus.study.metrics import Metric

_TRANSACTIONS_BEYOND_QUANTILE = 5
# With fewer transactions beyond it, the percentile of a block is decided by one or two of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEstimate:
    """A mean on the log scale and its standard error over n blocks."""

    point: float
    standard_error: float
    """Not a number while there is only one block, and for a maximum."""
    n: int


def log_ratio(blocks: Sequence[Block], metric: Metric, baseline: int, contender: int) -> LogEstimate | None:
    """ln(contender / baseline) of a metric: the mean of the log-ratios of the blocks that hold both arms.

    None for no such block, and for the maximum, which has no sensible ratio.
    """
    paired = [block for block in blocks if block.has(baseline, contender)]
    if not paired or metric is Metric.LATENCY_MAX:
        return None
    return _estimate(
        [_log_value(b.trials[contender], metric) - _log_value(b.trials[baseline], metric) for b in paired], metric
    )


def log_level(blocks: Sequence[Block], metric: Metric, arm: int) -> LogEstimate | None:
    """ln of one arm's metric: the mean over its blocks; for the maximum, the largest of all with no error."""
    trials = [block.trials[arm] for block in blocks if block.has(arm)]
    if not trials:
        return None
    if metric is Metric.LATENCY_MAX:
        largest = max(trial.latency_max_s for trial in trials)
        return LogEstimate(point=_log(largest), standard_error=math.nan, n=len(trials))
    return _estimate([_log_value(trial, metric) for trial in trials], metric)


def quantile_is_supported(blocks: Sequence[Block], q: float, arm: int) -> bool:
    """Whether enough transactions of this arm stand behind the quantile q of each of its blocks for an interval."""
    needed = transactions_for_quantile(q)
    fewest = min((block.trials[arm].transactions for block in blocks if block.has(arm)), default=0)
    return fewest >= needed


def transactions_for_quantile(q: float) -> int:
    """How many transactions of an arm each block must hold for an interval of its quantile q: p95 100, p99 500."""
    return round(_TRANSACTIONS_BEYOND_QUANTILE / (1 - q))


def _log_value(trial: Trial, metric: Metric) -> float:
    if metric.quantile is not None:
        # Inside its bin a quantile may be read a little above the largest latency there was.
        return _log(min(trial.histogram.quantile(metric.quantile), trial.latency_max_s))
    return _log(trial.tps if metric is Metric.TPS else trial.latency_mean_s)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _estimate(logs: Sequence[float], metric: Metric) -> LogEstimate:
    n = len(logs)
    mean = math.fsum(logs) / n
    if n == 1:
        return LogEstimate(point=mean, standard_error=math.nan, n=1)
    variance = math.fsum((x - mean) ** 2 for x in logs) / (n - 1)
    # A percentile is known to within a bin: without this, latencies that all fall into one would agree exactly.
    least = BIN_WIDTH / 2 if metric.quantile is not None else 0.0
    return LogEstimate(point=mean, standard_error=max(math.sqrt(variance / n), least), n=n)
