"""How small a difference a comparison could have seen, and how much its blocks differ from one another."""

import math

from pgversus.stats.confidence import LookRule
from pgversus.stats.effects import LogEstimate

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
