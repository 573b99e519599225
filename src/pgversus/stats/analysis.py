"""The analysis of one comparison, computed once from its blocks and shown by all renderers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from pgversus.records.trials import Block
from pgversus.stats.confidence import (
    FARTHEST,
    UNBOUNDED,
    Interval,
    LookRule,
    Verdict,
    blocks_to_end,
    blocks_to_resolve,
    interval,
    judge,
    look_rule,
    ratio_bounds,
)
from pgversus.stats.counters import CounterEstimates, CounterRatio, OneSidedCounter, counter_estimates
from pgversus.stats.effects import LogEstimate, Samples, log_ratio, log_value, paired_log_values, quantile_is_supported
from pgversus.stats.hosts import HostResult, hosts_agree, results_by_host
from pgversus.stats.lazy import LazyMapping, LazyValues
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import MOST_BLOCKS, Design
from pgversus.study.metrics import Metric, Quantity, StepTime

POWER = 0.8
_DEVIATIONS = 0.8416
"""The quantile of the standard normal distribution at POWER."""
_FARTHEST = math.log(1e6)


def smallest_difference(estimate: LogEstimate, rule: LookRule) -> float | None:
    """Return the smallest difference, as a share, that as many blocks detect with POWER; None before the first look.

    The interval must exclude zero even if the estimate is below the true difference, so this is its half width plus
    0.84 standard errors (80 % power according to Cohen, for the normal distribution).
    """
    if not rule.may_look(estimate.n) or math.isnan(estimate.standard_error):
        return None
    log = (rule.critical_value(estimate.n) + _DEVIATIONS) * estimate.standard_error
    return math.expm1(log) if log < _FARTHEST else None


def spread_of_blocks(estimate: LogEstimate) -> float | None:
    """Return the standard deviation of the ratios of single blocks, as a share; None for one block or if too large."""
    if math.isnan(estimate.standard_error):
        return None
    log = estimate.standard_error * math.sqrt(estimate.n)
    return math.expm1(log) if log < _FARTHEST else None


_METRICS = tuple(Metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its interval. Ratios are plain (1.05 is 5 % more); values are in the metric's base unit."""

    value: float
    low: float | None
    """None if no bound is valid: too few blocks, or a maximum."""
    high: float | None
    n: int
    """Number of blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimResult:
    """The result of a contender after some blocks, for the metric of the verdict, as needed at every look."""

    verdict: Verdict
    log_ratio: LogEstimate | None
    """None until a block holds both arms."""
    interval: Interval
    blocks: int
    """Number of blocks that hold both arms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderResult:
    """The result of a contender compared with the baseline."""

    contender: int
    verdict: Verdict
    log_ratio: LogEstimate | None
    """For the metric of the verdict; None until a block holds both arms."""
    interval: Interval
    """Interval of this log ratio."""
    ratios: Mapping[Quantity, Estimate]
    """Contender / baseline for each quantity that has a ratio; empty for an invalid contender. Percentiles have none
    if a block has too few transactions for them."""
    paired_values: Mapping[Quantity, tuple[float, float]]
    """Values of baseline and contender in blocks that hold both, whose quotient is the ratio. `Analysis.arm_values`
    uses all blocks of an arm; a baseline may have more if another contender needed them."""
    counters: Mapping[str, CounterRatio]
    """Contender / baseline for each counter that was never zero."""
    one_sided: Mapping[str, OneSidedCounter]
    """Counters that were always zero on one side and never on the other."""
    blocks: int
    seconds_measured: float
    """Load of both arms in these blocks, in seconds."""
    hosts: tuple[HostResult, ...]
    """The result on each host of a fleet; empty for fewer than two hosts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The values of all arms and the results of all contenders."""

    metric: Metric
    """The metric of the verdicts."""
    arm_values: tuple[Mapping[Quantity, Estimate], ...]
    """Per arm, in order."""
    counters: tuple[Mapping[str, float], ...]
    """Per arm, in order: per transaction, or absolute (study/counters.py). Counters of data blocks are in bytes if the
    block sizes of the arms differ."""
    results: tuple[ContenderResult, ...]
    """Per contender, in order."""

    def result_of(self, contender: int) -> ContenderResult:
        """Return the result of a contender. contender: index of its arm."""
        return self.results[contender - 1]


_NOTHING_KNOWN: Mapping[int, InterimResult] = MappingProxyType({})


def interim_result(samples: Samples, comparison: Comparison, rule: LookRule, contender: int) -> InterimResult:
    """Return the result of a contender after these blocks; the rule decides whether a look is allowed."""
    metric = comparison.design.metric
    estimate = log_ratio(samples, metric, BASELINE, contender)
    if estimate is None:
        return InterimResult(verdict=Verdict.UNDECIDED, log_ratio=None, interval=UNBOUNDED, blocks=0)
    bounds = bounds_of(estimate, samples, metric, rule, (BASELINE, contender))
    margin = comparison.design.log_margin
    verdict = judge(bounds, metric, margin)
    if verdict is not Verdict.UNDECIDED:
        hosts = results_by_host(samples, metric, rule, contender, margin)
        verdict = verdict if hosts_agree(verdict, hosts, metric, margin) else Verdict.UNDECIDED
    return InterimResult(
        verdict=verdict,
        log_ratio=estimate,
        interval=bounds,
        blocks=estimate.n,
    )


def analyze(
    samples: Samples,
    comparison: Comparison,
    rule: LookRule,
    invalid: frozenset[int] = frozenset(),
    known: Mapping[int, InterimResult] = _NOTHING_KNOWN,
    block_bytes: Sequence[int | None] = (),
) -> Analysis:
    """Compute all values, ratios and verdicts after these blocks.

    invalid: contenders without claims, because their trials failed too often.
    known: results of contenders after the same blocks; missing ones are computed.
    block_bytes: the size of data blocks on each arm, None if unknown; empty if all have the usual size.
    """
    counted = cache(lambda: counter_estimates(samples.blocks, len(comparison.arms), rule, block_bytes))
    return Analysis(
        metric=comparison.design.metric,
        arm_values=tuple(_arm_values(samples, quantities_of(comparison), rule, arm.index) for arm in comparison.arms),
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
    """Return the quantities of trials: every metric, and the time of each step of an operation with several."""
    steps = comparison.workload.steps
    return (*_METRICS, *(StepTime(step.name) for step in steps)) if len(steps) > 1 else _METRICS


def times_of(comparison: Comparison) -> tuple[Quantity, ...]:
    """Return the times of an operation: the total time, then the time of each step if it has several."""
    return (Metric.TIME, *(one for one in quantities_of(comparison) if isinstance(one, StepTime)))


def blocks_needed(result: ContenderResult, comparison: Comparison, rule: LookRule) -> int | None:
    """Return the number of blocks that a verdict or the precision of the design needs at the present noise.

    The limit of the design itself is ignored, because it may be the reason for an open verdict. None beyond the limit
    of any design.
    """
    return None if result.log_ratio is None else blocks_to_end(result.log_ratio, _longest(rule), comparison.design)


def blocks_for_precision(result: ContenderResult, rule: LookRule, precision: float) -> int | None:
    """Return the number of blocks that a precision, ratio minus one, needs; None as for blocks_needed()."""
    return (
        None if result.log_ratio is None else blocks_to_resolve(result.log_ratio, _longest(rule), math.log1p(precision))
    )


def _longest(rule: LookRule) -> LookRule:
    return look_rule(Design(max_blocks=MOST_BLOCKS), rule.verdicts)


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

    def paired_values_of(quantity: Quantity) -> tuple[float, float] | None:
        logs = paired_log_values(samples, quantity, BASELINE, contender)
        if logs is None or not all(map(math.isfinite, logs)):
            return None
        if not _is_supported(samples, quantity, (BASELINE, contender)):
            return None
        return math.exp(logs[0]), math.exp(logs[1])

    paired = [block for block in samples.blocks if block.has(BASELINE, contender)]
    return ContenderResult(
        contender=contender,
        verdict=Verdict.INVALID if is_invalid else interim.verdict,
        log_ratio=interim.log_ratio,
        interval=interim.interval,
        ratios=LazyValues(() if is_invalid else quantities_of(comparison), ratio_of),
        paired_values=LazyValues(quantities_of(comparison), paired_values_of),
        counters=LazyMapping(lambda: {} if is_invalid else counted().ratios[contender - 1]),
        one_sided=LazyMapping(lambda: {} if is_invalid else counted().one_sided[contender - 1]),
        blocks=interim.blocks,
        seconds_measured=sum(block.trials[arm].seconds for block in paired for arm in (BASELINE, contender)),
        hosts=results_by_host(samples, comparison.design.metric, rule, contender, comparison.design.log_margin),
    )


def _arm_values(
    samples: Samples, quantities: Sequence[Quantity], rule: LookRule, arm: int
) -> Mapping[Quantity, Estimate]:
    def arm_value_of(quantity: Quantity) -> Estimate | None:
        return _estimate(log_value(samples, quantity, arm), samples, quantity, rule, (arm,))

    return LazyValues(quantities, arm_value_of)


def _counters(counted: Callable[[], CounterEstimates], arm: int) -> Mapping[str, float]:
    return LazyMapping(lambda: counted().arm_means[arm])


def bounds_of(
    estimate: LogEstimate, samples: Samples, quantity: Quantity, rule: LookRule, arms: tuple[int, ...]
) -> Interval:
    """Return the interval of an estimate for these arms; unbounded with too few blocks or transactions."""
    return interval(estimate, rule) if _is_supported(samples, quantity, arms) else UNBOUNDED


def _is_supported(samples: Samples, quantity: Quantity, arms: tuple[int, ...]) -> bool:
    """Return whether every block with these arms has enough transactions for the quantity."""
    return quantity.quantile is None or quantile_is_supported(samples, quantity.quantile, arms)


def _estimate(
    log: LogEstimate | None, samples: Samples, quantity: Quantity, rule: LookRule, arms: tuple[int, ...]
) -> Estimate | None:
    if log is None or not abs(log.point) < FARTHEST:
        # Nothing was measured, or the value is too small for a float.
        return None
    if not _is_supported(samples, quantity, arms):
        # One or two transactions would decide it.
        return None
    low, high = ratio_bounds(interval(log, rule))
    return Estimate(value=math.exp(log.point), low=low, high=high, n=log.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The arm with the best estimate, and all arms that are not shown to be worse by more than the margin."""

    best: int
    arms: tuple[int, ...]
    """Indexes, in the given order, with the best arm among them."""


def plateau(
    blocks: Iterable[Block], metric: Metric, rule: LookRule, arms: Sequence[int], log_margin: float
) -> Plateau | None:
    """Return the plateau of these arms, which include the baseline; None unless each has a ratio to the baseline.

    Arms are ordered by their ratios to the baseline, as in the verdicts: each ratio comes from blocks that hold both
    arms, while arms that were decided early have fewer blocks. Comparisons with the baseline use the interval of the
    verdict. All others use an interval that covers every pair of arms, because the best arm is chosen from the same
    blocks as the differences. The rule has one verdict per contender, and n arms have n / 2 pairs per contender.
    """
    samples = Samples(blocks)
    strict = rule.shared_by(max(1, math.ceil(len(arms) / 2)))
    sign = 1 if metric.more_is_better else -1
    ratios = {arm: log_ratio(samples, metric, BASELINE, arm) for arm in arms}
    points = {arm: sign * found.point for arm, found in ratios.items() if found and math.isfinite(found.point)}
    if BASELINE not in points or len(points) < len(arms):
        return None
    best = max(points, key=points.__getitem__)

    def is_worse(arm: int) -> bool:
        found = log_ratio(samples, metric, best, arm)
        if found is None:
            return False
        bounds = bounds_of(found, samples, metric, rule if BASELINE in (best, arm) else strict, (best, arm))
        return (bounds.high if metric.more_is_better else -bounds.low) < -log_margin

    return Plateau(best=best, arms=tuple(arm for arm in arms if arm == best or not is_worse(arm)))
