"""What counters say of each arm and of their ratio: for a transaction where they grow with it, else as they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgversus.stats.confidence import CONFIDENCE, LookRule
from pgversus.stats.counters import COUNTERS
from pgversus.stats.effects import LogEstimate, mean_of_logs
from pgversus.stats.trials import Block, Trial
from pgversus.stats.verdict import interval


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


def counter_levels(blocks: Sequence[Block], arm: int) -> dict[str, float]:
    """Mean over the blocks of each counter of an arm, in its unit for a transaction, or as it is.

    A counter that one of the blocks does not tell is absent; names that are not known are as well.
    """
    trials = [block.trials[arm] for block in blocks if block.has(arm)]
    if not trials:
        return {}
    names = set(trials[0].counters).intersection(*(trial.counters for trial in trials[1:]))
    return {
        name: math.fsum(_value(trial, name) for trial in trials) / len(trials) for name in COUNTERS if name in names
    }


def counter_ratios(blocks: Sequence[Block], baseline: int, contender: int, rule: LookRule) -> dict[str, CounterRatio]:
    """Contender / baseline of each counter that was never zero on either arm, as throughput is compared: by blocks."""
    paired = [(block.trials[baseline], block.trials[contender]) for block in blocks if block.has(baseline, contender)]
    ratios = {}
    for name in COUNTERS:
        logs = _logs(paired, name)
        if logs is not None:
            ratios[name] = _ratio(mean_of_logs(logs), rule)
    return ratios


def _value(trial: Trial, name: str) -> float:
    value = trial.counters[name]
    return value / trial.transactions if COUNTERS[name].per_transaction else value


def _logs(paired: Sequence[tuple[Trial, Trial]], name: str) -> list[float] | None:
    """ln(contender / baseline) of each pair; None where one side lacks it or has nothing."""
    if not paired or any(trial.counters.get(name, 0.0) <= 0 for pair in paired for trial in pair):
        return None
    return [math.log(_value(other, name) / _value(base, name)) for base, other in paired]


def _ratio(estimate: LogEstimate, rule: LookRule) -> CounterRatio:
    bounds = interval(estimate, rule)
    low, high = (math.exp(bound) if math.isfinite(bound) else None for bound in (bounds.low, bounds.high))
    return CounterRatio(value=math.exp(estimate.point), low=low, high=high, n=estimate.n)


def sure_ratios(ratios: Mapping[str, CounterRatio]) -> dict[str, CounterRatio]:
    """Those whose interval excludes one, the largest difference first."""
    sure = {name: ratio for name, ratio in ratios.items() if ratio.is_sure}
    return dict(sorted(sure.items(), key=lambda item: -abs(math.log(item[1].value))))
