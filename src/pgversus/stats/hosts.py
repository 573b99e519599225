"""A comparison on each host of a fleet, and whether the hosts agree.

Each ratio compares two arms on one host, so that hosts may differ. The verdict is about the mean over the hosts that
measured, weighted by their numbers of blocks. The spread of blocks includes the differences between hosts, so these
never make the interval too narrow. A mean may hide that hosts contradict each other, so a verdict needs the support of
every host.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pgversus.records.trials import Block
from pgversus.stats.confidence import Interval, LookRule, Verdict, interval, judge
from pgversus.stats.effects import LogEstimate, Samples, log_ratio, quantile_is_supported
from pgversus.study.comparison import BASELINE
from pgversus.study.design import FIRST_LOOK
from pgversus.study.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResult:
    """The result of a contender on one host of several."""

    host: str
    verdict: Verdict
    log_ratio: LogEstimate
    interval: Interval
    """The intervals of all hosts, over all verdicts of the study, hold together with 95 % confidence."""


def results_by_host(
    samples: Samples, metric: Metric, rule: LookRule, contender: int, log_margin: float
) -> tuple[HostResult, ...]:
    """Return the result of a contender on each host with both arms, by name; empty for fewer than two hosts."""
    blocks = _blocks_by_host(samples, contender)
    if len(blocks) < 2:  # noqa: PLR2004 - two hosts can differ
        return ()
    strict = rule.shared_by(len(blocks))
    # A fixed number of blocks is that of all hosts together.
    strict = replace(strict, first_look=min(strict.first_look, FIRST_LOOK))
    found = []
    for host in sorted(blocks):
        own = Samples(blocks[host])
        estimate = log_ratio(own, metric, BASELINE, contender)
        if estimate is None:
            continue
        bounds = interval(estimate, strict)
        verdict = judge(bounds, metric, log_margin)
        if metric.quantile is not None and not quantile_is_supported(own, metric.quantile, (BASELINE, contender)):
            verdict = Verdict.UNDECIDED
        found.append(HostResult(host=host, verdict=verdict, log_ratio=estimate, interval=bounds))
    return tuple(found)


def hosts_agree(verdict: Verdict, results: tuple[HostResult, ...], metric: Metric, log_margin: float) -> bool:
    """Return whether every host supports the verdict on the mean of all.

    No host has a different verdict. If a host has enough blocks for an interval, its own estimate is on the same side,
    or inside the margin for equivalence: a mean inside the margin may come from hosts that differ in direction.
    """
    return all(_supports(one, verdict, metric, log_margin) for one in results)


def _supports(one: HostResult, verdict: Verdict, metric: Metric, log_margin: float) -> bool:
    if one.verdict is not Verdict.UNDECIDED:
        return one.verdict is verdict
    if math.isinf(one.interval.half_width):
        return True
    gain = one.log_ratio.point if metric.more_is_better else -one.log_ratio.point
    match verdict:
        case Verdict.FASTER:
            return gain > 0
        case Verdict.SLOWER:
            return gain < 0
        case _:
            return abs(gain) < log_margin


def _blocks_by_host(samples: Samples, contender: int) -> Mapping[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for block in samples.blocks:
        if block.has(BASELINE, contender):
            found.setdefault(block.host, []).append(block)
    return found
