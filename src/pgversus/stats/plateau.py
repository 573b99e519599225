"""Which levels of an amount cannot be told apart from the best one."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgversus.stats.analysis import bounds_of
from pgversus.stats.confidence import LookRule
from pgversus.stats.effects import log_ratio
from pgversus.stats.samples import Samples
from pgversus.stats.trials import Block
from pgversus.study.metrics import Metric


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
