"""How many blocks more an answer would need, and what difference the present noise lets one see."""

import math

from pgversus.stats.confidence import LookRule, critical_value
from pgversus.stats.effects import LogEstimate


def blocks_to_decide(estimate: LogEstimate, rule: LookRule, log_margin: float) -> int | None:
    """The smallest number of blocks at which the interval, at today's noise, would give an answer.

    It must exclude zero or lie inside the margin. None when more than the rule's last look would be needed.
    """
    return blocks_to_resolve(estimate, rule, deciding_half_width(estimate.point, log_margin))


def deciding_half_width(point: float, log_margin: float) -> float:
    """The half width below which the interval around this point excludes zero or lies inside the margin."""
    return max(abs(point), log_margin - abs(point))


def blocks_to_resolve(estimate: LogEstimate, rule: LookRule, half_width: float) -> int | None:
    """The smallest number of blocks whose interval has at most this half width; None beyond the rule's last look."""
    if math.isnan(estimate.standard_error):
        return None
    spread = estimate.standard_error * math.sqrt(estimate.n)
    for n in range(max(estimate.n, rule.first_look), rule.last_look + 1):
        if critical_value(n, rule.level) * spread / math.sqrt(n) < half_width:
            return n
    return None
