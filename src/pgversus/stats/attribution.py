"""The share of a difference that plan changes account for: two parts with intervals, from three arms.

The contender with the baseline's plans lies between the baseline and the contender. For times per transaction,
    whole = T(baseline) / T(contender)
    plans = T(contender with old plans) / T(contender)
    rest = T(baseline) / T(contender with old plans)
so that whole = plans * rest, and the share of the plans is ln(plans) / ln(whole). Shares in seconds would favor the
part that is removed first. Everything follows from two ratios, both relative to the arm with the old plans, whose
intervals hold simultaneously.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from pgversus.stats.analysis import Analysis, ContenderResult, Estimate
from pgversus.stats.confidence import Verdict
from pgversus.study.counterfactual import BASELINE_AGAIN, CONTENDER_AGAIN
from pgversus.study.metrics import Metric

_FARTHEST = 300.0
# On the log scale: products of ratios farther away overflow.


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedValue:
    """A value with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The contribution of plan changes, as factors of speed and in seconds per transaction."""

    whole: BoundedValue
    """Contender relative to baseline, above 1 if it is faster. The product of the two parts."""
    plans: BoundedValue
    rest: BoundedValue
    share: BoundedValue | None
    """Share of the plans in the whole, on the log scale; above 1 if the rest counteracts them. None if the whole may be
    zero."""
    whole_s: BoundedValue
    """Time saved by the contender; the sum of the two parts, with the rest measured with the old plans."""
    plans_s: BoundedValue
    rest_s: BoundedValue
    share_of_time: BoundedValue | None
    """Share of the plans in the time saved. Here the order matters: the plans are the second step, after other changes.
    None if the share is None."""
    rest_verdict: Verdict
    """The verdict for the contender with the old plans against the baseline: the effect of other changes."""
    blocks: int


def attribution(analysis: Analysis, clients: int) -> Attribution | None:
    """Return the parts from the analysis of the three arms (study/counterfactual.py); None without both intervals.

    clients: number of clients of the load, whose transactions overlap.
    """
    metric = analysis.metric
    d = _log_time(analysis.result_of(BASELINE_AGAIN), metric)
    plans = _log_time(analysis.result_of(CONTENDER_AGAIN), metric)
    contender_value = analysis.arm_values[CONTENDER_AGAIN].get(metric)
    if d is None or plans is None or contender_value is None:
        return None
    # On the log scale: a is the arm with old plans over the contender, d the baseline over that arm.
    a = BoundedValue(value=-plans.value, low=-plans.high, high=-plans.low)
    box = _Box(a, d)
    # The contender's time is the unit.
    new_s = clients / contender_value.value if metric is Metric.TPS else contender_value.value
    whole = box.bounds_of(lambda x, y: x + y)
    is_sure = whole.low > 0 or whole.high < 0
    return Attribution(
        whole=box.bounds_of(lambda x, y: math.exp(x + y)),
        plans=box.bounds_of(lambda x, _: math.exp(x)),
        rest=box.bounds_of(lambda _, y: math.exp(y)),
        share=box.bounds_of(lambda x, y: x / (x + y)) if is_sure else None,
        whole_s=box.bounds_of(lambda x, y: new_s * math.expm1(x + y)),
        plans_s=box.bounds_of(lambda x, _: new_s * math.expm1(x)),
        rest_s=box.bounds_of(lambda x, y: new_s * math.exp(x) * math.expm1(y)),
        share_of_time=box.bounds_of(lambda x, y: math.expm1(x) / math.expm1(x + y)) if is_sure else None,
        rest_verdict=_turned(analysis.result_of(BASELINE_AGAIN).verdict),
        blocks=min(result.blocks for result in analysis.results),
    )


@dataclass(frozen=True, slots=True)
class _Box:
    """The region covered by the two intervals."""

    a: BoundedValue
    d: BoundedValue

    def bounds_of(self, part: Callable[[float, float], float]) -> BoundedValue:
        """Return the bounds of a function that is monotonic in both values, so that its extremes are at corners."""
        corners = [part(x, y) for x, y in product((self.a.low, self.a.high), (self.d.low, self.d.high))]
        return BoundedValue(value=part(self.a.value, self.d.value), low=min(corners), high=max(corners))


def _log_time(result: ContenderResult, metric: Metric) -> BoundedValue | None:
    """Return ln of the arm's time over that of the arm with the old plans."""
    ratio: Estimate | None = result.ratios.get(metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    logs = math.log(ratio.value), math.log(ratio.low), math.log(ratio.high)
    if max(map(abs, logs)) > _FARTHEST:
        return None
    if not metric.more_is_better:
        return BoundedValue(value=logs[0], low=logs[1], high=logs[2])
    return BoundedValue(value=-logs[0], low=-logs[2], high=-logs[1])


def _turned(verdict: Verdict) -> Verdict:
    """Return the verdict with the arms swapped."""
    return {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(verdict, verdict)
