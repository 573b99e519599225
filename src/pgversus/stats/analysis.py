"""Everything that is said of a comparison, computed once from its blocks; every renderer shows this object."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pgversus.stats.confidence import CONFIDENCE, LookRule, look_rule
from pgversus.stats.counter_estimates import CounterRatio, counter_levels, counter_ratios
from pgversus.stats.effects import LogEstimate, log_level, log_ratio, quantile_is_supported
from pgversus.stats.forecast import blocks_to_decide
from pgversus.stats.trials import Block
from pgversus.stats.verdict import UNBOUNDED, Interval, Verdict, interval, judge
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import MOST_BLOCKS
from pgversus.study.metrics import Metric


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
class Standing:
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
    ratios: Mapping[Metric, Estimate]
    """Contender / baseline, for each metric that has a ratio; none for an invalid contender."""
    counters: Mapping[str, CounterRatio]
    """Contender / baseline, for each counter that was never zero."""
    blocks: int
    seconds_measured: float
    """Load of both arms in the blocks that count."""
    blocks_needed: int | None
    """Blocks at which today's noise would let the verdict be known; None when more than any design may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Levels of every arm and results of every contender."""

    metric: Metric
    """The one that carries the verdicts."""
    levels: tuple[Mapping[Metric, Estimate], ...]
    """For each arm, in order."""
    counters: tuple[Mapping[str, float], ...]
    """For each arm, in order: for a transaction, or as they are (stats/counters.py)."""
    results: tuple[ContenderResult, ...]
    """For each contender, in order."""

    def result_of(self, contender: int) -> ContenderResult:
        """The result of one contender, by its arm's index."""
        return self.results[contender - 1]


def standing(blocks: Sequence[Block], comparison: Comparison, rule: LookRule, contender: int) -> Standing:
    """How a contender stands after these blocks; the rule says whether one may look at all."""
    metric, paired = comparison.design.metric, _paired(blocks, contender)
    estimate = log_ratio(paired, metric, BASELINE, contender)
    if estimate is None:
        return Standing(verdict=Verdict.UNDECIDED, log_ratio=None, interval=UNBOUNDED, blocks=0)
    bounds = _bounds(estimate, paired, metric, rule, (BASELINE, contender))
    return Standing(
        verdict=judge(bounds, metric, comparison.design.log_margin),
        log_ratio=estimate,
        interval=bounds,
        blocks=len(paired),
    )


def analyse(
    blocks: Sequence[Block], comparison: Comparison, rule: LookRule, invalid: frozenset[int] = frozenset()
) -> Analysis:
    """All levels, ratios and verdicts after these blocks.

    invalid: contenders whose trials failed so often that nothing is claimed of them.
    """
    return Analysis(
        metric=comparison.design.metric,
        levels=tuple(_levels(blocks, arm.index, rule) for arm in comparison.arms),
        counters=tuple(counter_levels(blocks, arm.index) for arm in comparison.arms),
        results=tuple(
            _contender(blocks, comparison, rule, arm.index, is_invalid=arm.index in invalid)
            for arm in comparison.contenders
        ),
    )


def _contender(
    blocks: Sequence[Block], comparison: Comparison, rule: LookRule, contender: int, *, is_invalid: bool
) -> ContenderResult:
    paired, stands = _paired(blocks, contender), standing(blocks, comparison, rule, contender)
    ratios = {}
    for metric in () if is_invalid else Metric:
        ratio = log_ratio(paired, metric, BASELINE, contender)
        if ratio is not None and math.isfinite(ratio.point):
            ratios[metric] = _estimate(ratio, _bounds(ratio, paired, metric, rule, (BASELINE, contender)))
    return ContenderResult(
        contender=contender,
        verdict=Verdict.INVALID if is_invalid else stands.verdict,
        log_ratio=stands.log_ratio,
        ratios=ratios,
        counters={} if is_invalid else counter_ratios(paired, BASELINE, contender, rule),
        blocks=stands.blocks,
        seconds_measured=sum(block.trials[arm].seconds for block in paired for arm in (BASELINE, contender)),
        blocks_needed=None if stands.log_ratio is None else _blocks_needed(stands.log_ratio, comparison, rule),
    )


def _paired(blocks: Sequence[Block], contender: int) -> list[Block]:
    return [block for block in blocks if block.has(BASELINE, contender)]


def _blocks_needed(estimate: LogEstimate, comparison: Comparison, rule: LookRule) -> int | None:
    """As if the design had the highest cap: its own may be what kept the verdict open."""
    highest = replace(comparison.design, max_blocks=MOST_BLOCKS, fixed_blocks=None)
    return blocks_to_decide(estimate, look_rule(highest, rule.comparisons), highest.log_margin)


def _levels(blocks: Sequence[Block], arm: int, rule: LookRule) -> Mapping[Metric, Estimate]:
    levels = {}
    for metric in Metric:
        level = log_level(blocks, metric, arm)
        if level is not None and math.isfinite(level.point):
            levels[metric] = _estimate(level, _bounds(level, blocks, metric, rule, (arm,)))
    return levels


def _bounds(
    estimate: LogEstimate, blocks: Sequence[Block], metric: Metric, rule: LookRule, arms: tuple[int, ...]
) -> Interval:
    q = metric.quantile
    if q is not None and not all(quantile_is_supported(blocks, q, arm) for arm in arms):
        return UNBOUNDED
    return interval(estimate, rule)


def _estimate(log: LogEstimate, bounds: Interval) -> Estimate:
    low, high = (math.exp(bound) if math.isfinite(bound) else None for bound in (bounds.low, bounds.high))
    return Estimate(value=math.exp(log.point), low=low, high=high, n=log.n)
