"""What counters say of each arm and of their ratio: for a transaction where they grow with it, else as they are.

All counters of an arm are one table, a row for each block: a study has hundreds of thousands of ratios.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt

from pgversus.stats.confidence import CONFIDENCE, LookRule
from pgversus.stats.counters import COUNTERS
from pgversus.stats.effects import LogEstimate
from pgversus.stats.trials import Block
from pgversus.stats.verdict import interval, ratio_bounds

_NAMES = tuple(COUNTERS)
_PER_TRANSACTION = np.array([counter.per_transaction for counter in COUNTERS.values()])


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRatio:
    """A counter of a contender over that of the baseline, with its interval."""

    value: float
    low: float | None
    """None where no bound is promised yet."""
    high: float | None
    n: int
    """Blocks behind it."""
    confidence: float = CONFIDENCE

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes that both are the same."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEstimates:
    """All that is said of counters in one comparison."""

    levels: tuple[Mapping[str, float], ...]
    """For each arm, in order: the mean over its blocks, in the counter's unit for a transaction, or as it is. A counter
    that one of the blocks does not tell is absent."""
    ratios: tuple[Mapping[str, CounterRatio], ...]
    """For each contender, in order, by blocks, as throughput is compared. A counter that was zero or not told in a
    block of either arm is absent: nothing has no ratio."""


def counter_estimates(blocks: Sequence[Block], arms: int, rule: LookRule) -> CounterEstimates:
    """Levels and ratios of all counters. arms: how many there are, the first the baseline."""
    baseline, *contenders = tables = [_table(blocks, arm) for arm in range(arms)]
    return CounterEstimates(
        levels=tuple(_levels(table) for table in tables),
        ratios=tuple(_ratios(baseline, contender, rule) for contender in contenders),
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """The counters of one arm."""

    values: npt.NDArray[np.float64]
    """A row for each block, a column for each counter; nan for what was not told."""
    measured: npt.NDArray[np.bool_]
    """Whether a block holds the arm."""


def _table(blocks: Sequence[Block], arm: int) -> _Table:
    trials = [block.trials.get(arm) for block in blocks]
    told = [{} if trial is None else dict(trial.counters.items()) for trial in trials]
    rows = [list(map(one.get, _NAMES, repeat(math.nan))) for one in told]
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(_NAMES))
    transactions = np.array([math.nan if trial is None else trial.transactions for trial in trials], dtype=np.float64)
    return _Table(
        values=np.where(_PER_TRANSACTION, values / transactions[:, np.newaxis], values),
        measured=np.array([trial is not None for trial in trials], dtype=np.bool_),
    )


def _levels(table: _Table) -> dict[str, float]:
    if not table.measured.any():
        return {}
    means = table.values[table.measured].mean(axis=0).tolist()
    return {name: mean for name, mean in zip(_NAMES, means, strict=True) if not math.isnan(mean)}


def _ratios(baseline: _Table, contender: _Table, rule: LookRule) -> dict[str, CounterRatio]:
    paired = baseline.measured & contender.measured
    n = int(paired.sum())
    if not n:
        return {}
    bases, others = baseline.values[paired], contender.values[paired]
    told = ((bases > 0) & (others > 0)).all(axis=0)
    logs = np.log(others[:, told] / bases[:, told])
    points = logs.mean(axis=0)
    errors = logs.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full_like(points, math.nan)
    estimates = (
        LogEstimate(point=point, standard_error=error, n=n)
        for point, error in zip(points.tolist(), errors.tolist(), strict=True)
    )
    names = (_NAMES[column] for column in np.flatnonzero(told))
    return {name: _ratio(estimate, rule) for name, estimate in zip(names, estimates, strict=True)}


def _ratio(estimate: LogEstimate, rule: LookRule) -> CounterRatio:
    low, high = ratio_bounds(interval(estimate, rule))
    return CounterRatio(value=math.exp(estimate.point), low=low, high=high, n=estimate.n)


def sure_ratios(ratios: Mapping[str, CounterRatio]) -> dict[str, CounterRatio]:
    """Those whose interval excludes one, the largest difference first."""
    sure = {name: ratio for name, ratio in ratios.items() if ratio.is_sure}
    return dict(sorted(sure.items(), key=lambda item: -abs(math.log(item[1].value))))
