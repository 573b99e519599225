"""The rule that turns an interval into a verdict.

One interval carries all claims: a wrong sign, a difference that is none and an equivalence that is none all mean
that it missed the truth, so together they happen at most 5 % of the time.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from pgversus.stats.confidence import LookRule
from pgversus.stats.effects import LogEstimate
from pgversus.study.metrics import Metric


class Verdict(StrEnum):
    """What can be said of a contender against the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    INVALID = "invalid"


DIFFERENT = frozenset({Verdict.FASTER, Verdict.SLOWER})
"""Verdicts that claim a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds on the log scale; infinite while nothing is promised."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of its length."""
        return (self.high - self.low) / 2


FARTHEST = 700.0
# exp() of more is no double any more.

UNBOUNDED = Interval(low=-math.inf, high=math.inf)


def interval(estimate: LogEstimate, rule: LookRule) -> Interval:
    """The interval of an estimate after its n blocks; unbounded where the rule allows no look or n is 1."""
    if not rule.may_look(estimate.n) or math.isnan(estimate.standard_error):
        return UNBOUNDED
    half = rule.half_widths(estimate.n) * estimate.standard_error
    return Interval(low=estimate.point - half, high=estimate.point + half)


def ratio_bounds(bounds: Interval) -> tuple[float | None, float | None]:
    """The bounds as plain ratios; None for one that is not promised, or so far away that no number holds it."""
    low, high = (math.exp(bound) if abs(bound) < FARTHEST else None for bound in (bounds.low, bounds.high))
    return low, high


def judge(bounds: Interval, metric: Metric, log_margin: float) -> Verdict:
    """faster, slower, equivalent or (not yet) undecided, by where the interval lies.

    Asked in this order: wholly inside the margin is equivalent, even when zero is outside; then the side of zero.
    bounds: of ln(contender / baseline) of the metric itself; for latencies a negative one is faster.
    """
    if -log_margin < bounds.low and bounds.high < log_margin:
        return Verdict.EQUIVALENT
    if bounds.low > 0:
        return Verdict.FASTER if metric.more_is_better else Verdict.SLOWER
    if bounds.high < 0:
        return Verdict.SLOWER if metric.more_is_better else Verdict.FASTER
    return Verdict.UNDECIDED
