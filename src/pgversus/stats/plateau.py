"""Which levels of an amount cannot be told apart from the best one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.stats.confidence import LookRule
from pgversus.stats.effects import log_ratio
from pgversus.stats.samples import Samples
from pgversus.stats.verdict import interval
from pgversus.study.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Plateau:
    """The best arm, and the arms next to it, on both sides, of which none is shown to be worse."""

    best: int
    first: int
    last: int
    """Arms, in the order of their amounts; the best one alone where it is told apart from both its neighbours."""


def plateau(samples: Samples, metric: Metric, rule: LookRule, arms: Sequence[int]) -> Plateau | None:
    """The plateau around the best of these arms, which stand in the order of their amounts; None without values.

    Which arm is best is seen in the same blocks, so that every pair of arms is allowed for: rule is that of the
    verdicts, of which there is one for each contender; of pairs there are half as many times more as there are arms.
    """
    strict = rule.shared_by(max(1, math.ceil(len(arms) / 2)))
    levels = {arm: _mean(samples, metric, arm) for arm in arms}
    if any(level is None for level in levels.values()):
        return None
    sign = 1 if metric.more_is_better else -1
    best = max(arms, key=lambda arm: sign * (levels[arm] or 0.0))
    place = list(arms).index(best)
    first = _reach(samples, metric, strict, best, list(arms[:place])[::-1])
    last = _reach(samples, metric, strict, best, arms[place + 1 :])
    return Plateau(best=best, first=first, last=last)


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
    if found is None or found.n < rule.first_look:
        return False
    bounds = interval(found, rule)
    return bounds.low > 0 or bounds.high < 0


def _mean(samples: Samples, metric: Metric, arm: int) -> float | None:
    logs = [log for log in samples.logs(metric, arm) if log is not None and math.isfinite(log)]
    return math.fsum(logs) / len(logs) if logs else None
