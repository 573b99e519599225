"""What counters say of each arm and of their ratio: for a transaction where they grow with it, else as they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgversus.stats.confidence import CONFIDENCE, LookRule
from pgversus.stats.effects import LogEstimate, mean_of_logs
from pgversus.stats.trials import Block, Trial
from pgversus.stats.verdict import interval, ratio_bounds
from pgversus.study.counters import COUNTERS


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
    return None if logs is None else _ratio(mean_of_logs(logs), rule)


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
