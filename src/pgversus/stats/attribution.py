"""How much of a difference its plans account for: from three arms to two parts, each with an interval.

A contender with the baseline's plans stands between the baseline and the contender. Of the times of a transaction,
    whole = T(baseline) / T(contender)
    plans = T(contender with old plans) / T(contender)
    rest = T(baseline) / T(contender with old plans)
so that whole = plans * rest, and the share of the plans is ln(plans) / ln(whole): in seconds, what is undone first
would get the larger part. All follow from two ratios, both against the arm with the old plans, whose intervals hold
together.
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
# On the log scale: what is made of two that are farther away is not a number any more.


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A number with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What the plans of a contender account for, as factors of speed and in seconds for each transaction."""

    whole: Bounded
    """Contender against baseline: above 1 where it is faster. The product of the two parts."""
    plans: Bounded
    rest: Bounded
    share: Bounded | None
    """Of the plans in the whole, on the log scale; above 1 where the rest works against them. None where the whole may
    be nothing."""
    whole_s: Bounded
    """What the contender gains; the sum of the two parts, of which the rest is told on the old plans."""
    plans_s: Bounded
    rest_s: Bounded
    rest_verdict: Verdict
    """The contender with the old plans, against the baseline: what all else makes of it."""
    blocks: int


def attribution(analysis: Analysis, clients: int) -> Attribution | None:
    """The parts, from the analysis of the three arms (study/counterfactual.py); None where one has no interval yet.

    clients: of the load, whose transactions overlap.
    """
    metric = analysis.metric
    d = _log_time(analysis.result_of(BASELINE_AGAIN), metric)
    plans = _log_time(analysis.result_of(CONTENDER_AGAIN), metric)
    level = analysis.levels[CONTENDER_AGAIN].get(metric)
    if d is None or plans is None or level is None:
        return None
    # On the log scale: the arm with the old plans against the contender, and (d) the baseline against that arm.
    a = Bounded(value=-plans.value, low=-plans.high, high=-plans.low)
    box = _Box(a, d)
    # Its time is the unit.
    new_s = clients / level.value if metric is Metric.TPS else level.value
    whole = box.bounds_of(lambda x, y: x + y)
    return Attribution(
        whole=box.bounds_of(lambda x, y: math.exp(x + y)),
        plans=box.bounds_of(lambda x, _: math.exp(x)),
        rest=box.bounds_of(lambda _, y: math.exp(y)),
        share=box.bounds_of(lambda x, y: x / (x + y)) if whole.low > 0 or whole.high < 0 else None,
        whole_s=box.bounds_of(lambda x, y: new_s * math.expm1(x + y)),
        plans_s=box.bounds_of(lambda x, _: new_s * math.expm1(x)),
        rest_s=box.bounds_of(lambda x, y: new_s * math.exp(x) * math.expm1(y)),
        rest_verdict=_turned(analysis.result_of(BASELINE_AGAIN).verdict),
        blocks=min(result.blocks for result in analysis.results),
    )


@dataclass(frozen=True, slots=True)
class _Box:
    """All that the two intervals leave open."""

    a: Bounded
    d: Bounded

    def bounds_of(self, part: Callable[[float, float], float]) -> Bounded:
        """A quantity that rises or falls all the way in each of the two, so that its extremes lie in the corners."""
        corners = [part(x, y) for x, y in product((self.a.low, self.a.high), (self.d.low, self.d.high))]
        return Bounded(value=part(self.a.value, self.d.value), low=min(corners), high=max(corners))


def _log_time(result: ContenderResult, metric: Metric) -> Bounded | None:
    """ln of the arm's time over that of the arm with the old plans."""
    ratio: Estimate | None = result.ratios.get(metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    logs = math.log(ratio.value), math.log(ratio.low), math.log(ratio.high)
    if max(map(abs, logs)) > _FARTHEST:
        return None
    if not metric.more_is_better:
        return Bounded(value=logs[0], low=logs[1], high=logs[2])
    return Bounded(value=-logs[0], low=-logs[2], high=-logs[1])


def _turned(verdict: Verdict) -> Verdict:
    """Of two arms the other one's."""
    return {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(verdict, verdict)
