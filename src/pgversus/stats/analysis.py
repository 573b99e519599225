"""Everything that is said of a comparison, computed once from its blocks; every renderer shows this object."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pgversus.records.trials import Block
from pgversus.stats.confidence import (
    CONFIDENCE,
    FARTHEST,
    UNBOUNDED,
    Interval,
    LookRule,
    Verdict,
    blocks_to_decide,
    interval,
    judge,
    look_rule,
    ratio_bounds,
)
from pgversus.stats.counters import CounterEstimates, CounterRatio, OneSidedCounter, counter_estimates
from pgversus.stats.effects import LogEstimate, Samples, log_level, log_ratio, paired_log_levels, quantile_is_supported
from pgversus.stats.lazy import LazyMapping, LazyValues, Once
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import MOST_BLOCKS
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.study.workload import Operation

POWER = 0.8
_DEVIATIONS = 0.8416
"""The standard normal's quantile of POWER."""
_FARTHEST = math.log(1e6)


def smallest_difference(estimate: LogEstimate, rule: LookRule) -> float | None:
    """The share, 0.03 for 3 %, that as many blocks of the same noise show with this power; None where no look is.

    The interval must leave no difference out although the estimate falls short of the truth: its half width, and 0.84
    standard errors (Cohen's power of 80 %, by the normal distribution).
    """
    if not rule.may_look(estimate.n) or math.isnan(estimate.standard_error):
        return None
    log = (rule.half_widths(estimate.n) + _DEVIATIONS) * estimate.standard_error
    return math.expm1(log) if log < _FARTHEST else None


def spread_of_blocks(estimate: LogEstimate) -> float | None:
    """The standard deviation of the ratios of single blocks, as a share; None of one block, or beyond all bounds."""
    if math.isnan(estimate.standard_error):
        return None
    log = estimate.standard_error * math.sqrt(estimate.n)
    return math.expm1(log) if log < _FARTHEST else None


_METRICS = tuple(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its interval. Ratios are plain (1.05 is 5 % more); levels are in the metric's base unit."""

    value: float
    low: float | None
    """None where no bound is promised: too few blocks, too few transactions, or a maximum."""
    high: float | None
    n: int
    """Blocks behind it."""
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimResult:
    """How a contender stands after some blocks, by the metric that carries the verdict: what every look asks."""

    verdict: Verdict
    log_ratio: LogEstimate | None
    """None while no block holds both arms."""
    interval: Interval
    blocks: int
    """That hold both arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderResult:
    """What is known of one contender against the baseline."""

    contender: int
    verdict: Verdict
    log_ratio: LogEstimate | None
    """Of the metric that carries the verdict; None while no block holds both arms."""
    ratios: Mapping[Quantity, Estimate]
    """Contender / baseline, for each quantity that has a ratio; none for an invalid contender."""
    levels: Mapping[Quantity, tuple[float, float]]
    """Of baseline and contender in the blocks that hold both, whose quotient the ratio is. Those of an arm
    (`Analysis.levels`) are of all its blocks: of a baseline more, where another contender was open for longer."""
    counters: Mapping[str, CounterRatio]
    """Contender / baseline, for each counter that was never zero."""
    one_sided: Mapping[str, OneSidedCounter]
    """Each counter that was always zero on one of the two and never on the other."""
    blocks: int
    seconds_measured: float
    """Load of both arms in the blocks that count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Levels of every arm and results of every contender."""

    metric: Metric
    """The one that carries the verdicts."""
    levels: tuple[Mapping[Quantity, Estimate], ...]
    """For each arm, in order."""
    counters: tuple[Mapping[str, float], ...]
    """For each arm, in order: for a transaction, or as they are (study/counters.py)."""
    results: tuple[ContenderResult, ...]
    """For each contender, in order."""

    def result_of(self, contender: int) -> ContenderResult:
        """The result of one contender, by its arm's index."""
        return self.results[contender - 1]


_NOTHING_KNOWN: Mapping[int, InterimResult] = MappingProxyType({})


def interim_result(samples: Samples, comparison: Comparison, rule: LookRule, contender: int) -> InterimResult:
    """How a contender stands after these blocks; the rule says whether one may look at all."""
    metric = comparison.design.metric
    estimate = log_ratio(samples, metric, BASELINE, contender)
    if estimate is None:
        return InterimResult(verdict=Verdict.UNDECIDED, log_ratio=None, interval=UNBOUNDED, blocks=0)
    bounds = bounds_of(estimate, samples, metric, rule, (BASELINE, contender))
    return InterimResult(
        verdict=judge(bounds, metric, comparison.design.log_margin),
        log_ratio=estimate,
        interval=bounds,
        blocks=estimate.n,
    )


def analyse(
    samples: Samples,
    comparison: Comparison,
    rule: LookRule,
    invalid: frozenset[int] = frozenset(),
    known: Mapping[int, InterimResult] = _NOTHING_KNOWN,
) -> Analysis:
    """All levels, ratios and verdicts after these blocks.

    invalid: contenders whose trials failed so often that nothing is claimed of them. known: how contenders stand after
    these very blocks; where it is not known, it is computed.
    """
    counted = Once(lambda: counter_estimates(samples.blocks, len(comparison.arms), rule))
    return Analysis(
        metric=comparison.design.metric,
        levels=tuple(_levels(samples, quantities_of(comparison), rule, arm.index) for arm in comparison.arms),
        counters=tuple(_counters(counted, arm.index) for arm in comparison.arms),
        results=tuple(
            _contender(
                samples,
                comparison,
                rule,
                known.get(arm.index) or interim_result(samples, comparison, rule, arm.index),
                arm.index,
                counted,
                is_invalid=arm.index in invalid,
            )
            for arm in comparison.contenders
        ),
    )


def quantities_of(comparison: Comparison) -> tuple[Quantity, ...]:
    """What its trials may have: every metric, and the time of each step where an operation has several."""
    workload = comparison.workload
    if not isinstance(workload, Operation) or len(workload.steps) == 1:
        return _METRICS
    return (*_METRICS, *(StepTime(step.name) for step in workload.steps))


def blocks_needed(result: ContenderResult, comparison: Comparison, rule: LookRule) -> int | None:
    """Blocks at which today's noise would let the verdict be known; None when more than any design may have.

    As if the design had the highest cap: its own may be what kept the verdict open.
    """
    if result.log_ratio is None:
        return None
    highest = replace(comparison.design, max_blocks=MOST_BLOCKS, fixed_blocks=None)
    return blocks_to_decide(result.log_ratio, look_rule(highest, rule.comparisons), highest.log_margin)


def _contender(
    samples: Samples,
    comparison: Comparison,
    rule: LookRule,
    interim: InterimResult,
    contender: int,
    counted: Callable[[], CounterEstimates],
    *,
    is_invalid: bool,
) -> ContenderResult:
    def ratio_of(quantity: Quantity) -> Estimate | None:
        is_judged = quantity is comparison.design.metric
        ratio = interim.log_ratio if is_judged else log_ratio(samples, quantity, BASELINE, contender)
        return _estimate(ratio, samples, quantity, rule, (BASELINE, contender))

    def levels_of(quantity: Quantity) -> tuple[float, float] | None:
        logs = paired_log_levels(samples, quantity, BASELINE, contender)
        if logs is None or not all(map(math.isfinite, logs)):
            return None
        return math.exp(logs[0]), math.exp(logs[1])

    paired = [block for block in samples.blocks if block.has(BASELINE, contender)]
    return ContenderResult(
        contender=contender,
        verdict=Verdict.INVALID if is_invalid else interim.verdict,
        log_ratio=interim.log_ratio,
        ratios=LazyValues(() if is_invalid else quantities_of(comparison), ratio_of),
        levels=LazyValues(quantities_of(comparison), levels_of),
        counters=LazyMapping(lambda: {} if is_invalid else counted().ratios[contender - 1]),
        one_sided=LazyMapping(lambda: {} if is_invalid else counted().one_sided[contender - 1]),
        blocks=interim.blocks,
        seconds_measured=sum(block.trials[arm].seconds for block in paired for arm in (BASELINE, contender)),
    )


def _levels(samples: Samples, quantities: Sequence[Quantity], rule: LookRule, arm: int) -> Mapping[Quantity, Estimate]:
    def level_of(quantity: Quantity) -> Estimate | None:
        return _estimate(log_level(samples, quantity, arm), samples, quantity, rule, (arm,))

    return LazyValues(quantities, level_of)


def _counters(counted: Callable[[], CounterEstimates], arm: int) -> Mapping[str, float]:
    return LazyMapping(lambda: counted().levels[arm])


def bounds_of(
    estimate: LogEstimate, samples: Samples, quantity: Quantity, rule: LookRule, arms: tuple[int, ...]
) -> Interval:
    """The interval of an estimate on these arms; unbounded where none is promised: too few blocks, or transactions."""
    if not rule.may_look(estimate.n):
        return UNBOUNDED
    q = quantity.quantile
    if q is not None and not quantile_is_supported(samples, q, arms):
        return UNBOUNDED
    return interval(estimate, rule)


def _estimate(
    log: LogEstimate | None, samples: Samples, quantity: Quantity, rule: LookRule, arms: tuple[int, ...]
) -> Estimate | None:
    if log is None or not abs(log.point) < FARTHEST:
        # Nothing was measured, or so little that no number holds it.
        return None
    bounds = bounds_of(log, samples, quantity, rule, arms)
    low, high = ratio_bounds(bounds)
    return Estimate(value=math.exp(log.point), low=low, high=high, n=log.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The best arm, and the arms next to it, on both sides, of which none is shown to be worse."""

    best: int
    first: int
    last: int
    """Arms, in the order of their amounts; the best one alone where it is told apart from both its neighbours."""


def plateau(blocks: Iterable[Block], metric: Metric, rule: LookRule, arms: Sequence[int]) -> Plateau | None:
    """The plateau around the best of these arms, which stand in the order of their amounts.

    None while no block holds them all: only in such blocks are their means those of the same minutes. Which arm is best
    is seen in the same blocks as the differences, so that every pair of arms is allowed for: rule is that of the
    verdicts, of which there is one for each contender; of pairs there are half as many times more as there are arms.
    """
    samples = Samples(block for block in blocks if block.has(*arms))
    means = {arm: _mean(samples, metric, arm) for arm in arms}
    if not means or any(math.isnan(mean) for mean in means.values()):
        return None
    strict = rule.shared_by(max(1, math.ceil(len(arms) / 2)))
    sign = 1 if metric.more_is_better else -1
    best = max(arms, key=lambda arm: sign * means[arm])
    place = list(arms).index(best)
    return Plateau(
        best=best,
        first=_reach(samples, metric, strict, best, list(arms[:place])[::-1]),
        last=_reach(samples, metric, strict, best, arms[place + 1 :]),
    )


def _reach(samples: Samples, metric: Metric, rule: LookRule, best: int, others: Sequence[int]) -> int:
    """The farthest of them, one after the other, that is not shown to differ."""
    reached = best
    for arm in others:
        if _differs(samples, metric, rule, best, arm):
            break
        reached = arm
    return reached


def _differs(samples: Samples, metric: Metric, rule: LookRule, one: int, other: int) -> bool:
    found = log_ratio(samples, metric, one, other)
    if found is None:
        return False
    bounds = bounds_of(found, samples, metric, rule, (one, other))
    return bounds.low > 0 or bounds.high < 0


def _mean(samples: Samples, metric: Metric, arm: int) -> float:
    """On the log scale; not a number where a block does not tell it, or there is none."""
    logs = [math.nan if log is None or not math.isfinite(log) else log for log in samples.logs(metric, arm)]
    return math.fsum(logs) / len(logs) if logs else math.nan
