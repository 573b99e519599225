"""How much of a difference its plans account for: from three arms to two parts, each with an interval.

A contender with the baseline's plans stands between the baseline and the contender. Per transaction,
    whole = T(baseline) - T(contender)
    part of the plans = T(contender with old plans) - T(contender)
    rest = T(baseline) - T(contender with old plans)
All three follow from two ratios of times, both against the arm with the old plans, whose intervals hold together.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from pgversus.stats.analysis import Analysis, ContenderResult, Estimate
from pgversus.stats.verdict import Verdict
from pgversus.study.counterfactual import BASELINE_AGAIN, CONTENDER_AGAIN
from pgversus.study.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A number with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What the plans of a contender account for. Seconds for each transaction, above 0 where the contender gains."""

    whole_s: Bounded
    plans_s: Bounded
    rest_s: Bounded
    share: Bounded | None
    """Of the plans in the whole; above 1 where the rest works against them. None where the whole may be nothing."""
    rest_verdict: Verdict
    """The contender with the old plans, against the baseline: what all else makes of it."""
    blocks: int


def attribution(analysis: Analysis, clients: int) -> Attribution | None:
    """The parts, from the analysis of the three arms (study/counterfactual.py); None where one has no interval yet.

    clients: of the load, whose transactions overlap.
    """
    metric = analysis.metric
    rest = _log_time(analysis.result_of(BASELINE_AGAIN), metric)
    plans = _log_time(analysis.result_of(CONTENDER_AGAIN), metric)
    level = analysis.levels[CONTENDER_AGAIN].get(metric)
    if rest is None or plans is None or level is None:
        return None
    # Its time is 1; a, of the arm with old plans, and d, of the baseline against that, are on the log scale.
    new_s = clients / level.value if metric is Metric.TPS else level.value
    a, d = Bounded(value=-plans.value, low=-plans.high, high=-plans.low), rest
    corners = list(product((a.low, a.high), (d.low, d.high)))
    whole = [math.expm1(x + y) for x, y in corners]
    is_sure = all(one > 0 for one in whole) or all(one < 0 for one in whole)
    return Attribution(
        whole_s=_bounded(new_s * math.expm1(a.value + d.value), (new_s * one for one in whole)),
        plans_s=_bounded(new_s * math.expm1(a.value), (new_s * math.expm1(x) for x, _ in corners)),
        rest_s=_bounded(
            new_s * math.exp(a.value) * math.expm1(d.value), (new_s * math.exp(x) * math.expm1(y) for x, y in corners)
        ),
        # In each of the two it rises or falls all the way, so that its extremes lie in the corners.
        share=_bounded(_share(a.value, d.value), (_share(x, y) for x, y in corners)) if is_sure else None,
        rest_verdict=_turned(analysis.result_of(BASELINE_AGAIN).verdict),
        blocks=min(result.blocks for result in analysis.results),
    )


def _share(a: float, d: float) -> float:
    return math.expm1(a) / math.expm1(a + d)


def _bounded(value: float, corners: Iterable[float]) -> Bounded:
    found = list(corners)
    return Bounded(value=value, low=min(found), high=max(found))


def _log_time(result: ContenderResult, metric: Metric) -> Bounded | None:
    """ln of the arm's time over that of the arm with the old plans."""
    ratio: Estimate | None = result.ratios.get(metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    logs = math.log(ratio.value), math.log(ratio.low), math.log(ratio.high)
    if not metric.more_is_better:
        return Bounded(value=logs[0], low=logs[1], high=logs[2])
    return Bounded(value=-logs[0], low=-logs[2], high=-logs[1])


def _turned(verdict: Verdict) -> Verdict:
    """Of two arms the other one's."""
    return {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}.get(verdict, verdict)
