"""What counters say of each arm and of their ratio: for a transaction where they grow with it, else as they are.

Some sixty are looked at beside each verdict, so each is judged as strictly as if it were one of so many verdicts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgversus.stats.confidence import CONFIDENCE, LookRule
from pgversus.stats.effects import LogEstimate, mean_of_logs
from pgversus.stats.trials import Block, Trial
from pgversus.stats.verdict import interval, ratio_bounds
from pgversus.study.counters import COUNTERS, CounterUnit


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
class OneSided:
    """A counter that was zero in every block of one arm and in none of the other: there is no ratio to be told."""

    baseline: float
    """Mean over the blocks, as counter_level() gives it."""
    contender: float
    n: int
    """Blocks behind it."""
    is_sure: bool
    """Whether the interval of their difference excludes that both are the same."""


def counter_level(blocks: Sequence[Block], name: str, arm: int) -> float | None:
    """Mean over the blocks of a counter of an arm, in its unit for a transaction, or as it is.

    None for a counter that one of the blocks does not tell.
    """
    trials = [block.trials[arm] for block in blocks if block.has(arm)]
    if not trials or any(name not in trial.counters for trial in trials):
        return None
    return math.fsum(_value(trial, name) for trial in trials) / len(trials)


def counter_ratio(
    blocks: Sequence[Block], name: str, baseline: int, contender: int, rule: LookRule
) -> CounterRatio | None:
    """Contender / baseline of a counter, by blocks, as throughput is compared.

    None for one that was zero or not told in a block of either arm: nothing has no ratio.
    """
    paired = [(block.trials[baseline], block.trials[contender]) for block in blocks if block.has(baseline, contender)]
    logs = _logs(paired, name)
    return None if logs is None else _ratio(mean_of_logs(logs), rule.shared_by(len(COUNTERS)))


def one_sided(blocks: Sequence[Block], name: str, baseline: int, contender: int, rule: LookRule) -> OneSided | None:
    """A counter that happened on one arm only, in every block; None for any other."""
    paired = [(block.trials[baseline], block.trials[contender]) for block in blocks if block.has(baseline, contender)]
    if not paired or any(name not in trial.counters for pair in paired for trial in pair):
        return None
    for zero, other in ((0, 1), (1, 0)):
        trials = [pair[other] for pair in paired]
        if all(pair[zero].counters[name] == 0 < pair[other].counters[name] for pair in paired):
            values = [_value(trial, name) for trial in trials]
            mean = math.fsum(values) / len(values)
            return OneSided(
                baseline=mean if other == 0 else 0.0,
                contender=mean if other == 1 else 0.0,
                n=len(values),
                is_sure=_excludes_zero(values, _events(trials, name), rule.shared_by(len(COUNTERS))),
            )
    return None


def _excludes_zero(values: Sequence[float], events: float, rule: LookRule) -> bool:
    """Whether an interval of their mean does. events: in all of them; their root is the least uncertainty there is."""
    n = len(values)
    if n < 2 or not rule.may_look(n):  # noqa: PLR2004 - one value has no spread
        return False
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return mean > rule.half_widths(n) * max(spread, mean / math.sqrt(events))


def _events(trials: Sequence[Trial], name: str) -> float:
    """How many single things were counted: pages of 8 kB, steps of the processors' clock, or what counts itself."""
    return math.fsum(trial.counters[name] for trial in trials) / _SMALLEST[COUNTERS[name].unit]


_SMALLEST = {CounterUnit.BYTES: 8192.0, CounterUnit.SECONDS: 0.01, CounterUnit.COUNT: 1.0}


def _value(trial: Trial, name: str) -> float:
    value = trial.counters[name]
    return value / trial.transactions if COUNTERS[name].per_transaction else value


def _logs(paired: Sequence[tuple[Trial, Trial]], name: str) -> list[float] | None:
    """ln(contender / baseline) of each pair; None where one side lacks it or has nothing."""
    if not paired or any(trial.counters.get(name, 0.0) <= 0 for pair in paired for trial in pair):
        return None
    return [math.log(_value(other, name) / _value(base, name)) for base, other in paired]


def _ratio(estimate: LogEstimate, rule: LookRule) -> CounterRatio:
    low, high = ratio_bounds(interval(estimate, rule))
    return CounterRatio(value=math.exp(estimate.point), low=low, high=high, n=estimate.n)


def sure_ratios(ratios: Mapping[str, CounterRatio]) -> dict[str, CounterRatio]:
    """Those whose interval excludes one, the largest difference first."""
    sure = {name: ratio for name, ratio in ratios.items() if ratio.is_sure}
    return dict(sorted(sure.items(), key=lambda item: -abs(math.log(item[1].value))))
