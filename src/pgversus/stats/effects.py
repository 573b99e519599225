"""Ratios between two arms and levels of one arm, on the log scale, with their standard errors.

The unit of evidence is the block: a fresh start of every server. Windows are never used as independent samples,
because all windows of one start share that start's luck.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pgversus.stats.histogram import BIN_WIDTH, leave_one_out_log_quantiles
from pgversus.stats.trials import Block, Trial
from pgversus.study.metrics import Metric

LEAST_BLOCKS_FOR_QUANTILE = 8
LEAST_TRANSACTIONS_BEYOND_QUANTILE = 30
# A quantile q needs 30 / (1 - q) transactions of each arm: p95 600, p99 3,000 (docs/statistics.md, "Tail latency").


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEstimate:
    """A mean on the log scale and its standard error over n blocks."""

    point: float
    standard_error: float
    """Not a number while there is only one block."""
    n: int


def log_ratio(blocks: Sequence[Block], metric: Metric, baseline: int, contender: int) -> LogEstimate | None:
    """ln(contender / baseline) of a metric over the blocks that hold both arms.

    Rates and means: the mean of the block log-ratios. Quantiles: the ratio of the pooled distributions, with a
    leave-one-block-out jackknife. None for no blocks, and for the maximum, which has no sensible ratio.
    """
    paired = [block for block in blocks if block.has(baseline, contender)]
    if not paired:
        return None
    if metric.quantile is not None:
        return _quantile_ratio(paired, metric.quantile, baseline, contender)
    value = _VALUES.get(metric)
    if value is None:
        return None
    logs = [_log(value(block.trials[contender])) - _log(value(block.trials[baseline])) for block in paired]
    return _mean(logs)


def log_level(blocks: Sequence[Block], metric: Metric, arm: int) -> LogEstimate | None:
    """ln of one arm's metric over its blocks; for the maximum, the largest of all with no error."""
    trials = [block.trials[arm] for block in blocks if block.has(arm)]
    if not trials:
        return None
    if metric.quantile is not None:
        return _quantile_level(trials, metric.quantile)
    if metric is Metric.LATENCY_MAX:
        largest = max(trial.latency_max_s for trial in trials)
        return LogEstimate(point=_log(largest), standard_error=math.nan, n=len(trials))
    return _mean([_log(_VALUES[metric](trial)) for trial in trials])


def quantile_is_supported(blocks: Sequence[Block], q: float, arm: int) -> bool:
    """Whether enough blocks and transactions of this arm stand behind its quantile q for an interval."""
    trials = [block.trials[arm] for block in blocks if block.has(arm)]
    needed = LEAST_TRANSACTIONS_BEYOND_QUANTILE / (1 - q)
    return len(trials) >= LEAST_BLOCKS_FOR_QUANTILE and sum(trial.transactions for trial in trials) >= needed


_VALUES: dict[Metric, Callable[[Trial], float]] = {
    Metric.TPS: lambda trial: trial.tps,
    Metric.LATENCY_MEAN: lambda trial: trial.latency_mean_s,
}


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _mean(logs: Sequence[float]) -> LogEstimate:
    n = len(logs)
    mean = math.fsum(logs) / n
    if n == 1:
        return LogEstimate(point=mean, standard_error=math.nan, n=1)
    variance = math.fsum((x - mean) ** 2 for x in logs) / (n - 1)
    return LogEstimate(point=mean, standard_error=math.sqrt(variance / n), n=n)


def _quantile_ratio(blocks: Sequence[Block], q: float, baseline: int, contender: int) -> LogEstimate:
    base = leave_one_out_log_quantiles([block.trials[baseline].histogram() for block in blocks], q)
    other = leave_one_out_log_quantiles([block.trials[contender].histogram() for block in blocks], q)
    return _jackknife(other - base)


def _quantile_level(trials: Sequence[Trial], q: float) -> LogEstimate:
    return _jackknife(leave_one_out_log_quantiles([trial.histogram() for trial in trials], q))


def _jackknife(values: npt.NDArray[np.float64]) -> LogEstimate:
    """Point and error from [all, all but one, ...]; the error is never below half a bin of the histograms.

    Source: Efron & Tibshirani, An Introduction to the Bootstrap, ch. 11.
    """
    point, left_out = float(values[0]), values[1:]
    n = len(left_out)
    if n == 0:
        return LogEstimate(point=point, standard_error=math.nan, n=1)
    spread = float(((left_out - left_out.mean()) ** 2).sum())
    error = max(math.sqrt((n - 1) / n * spread), BIN_WIDTH / 2)
    return LogEstimate(point=point, standard_error=error, n=n)
