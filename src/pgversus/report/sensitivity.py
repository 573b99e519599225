"""How blocks differ, and how small a difference would have been seen, where an interval is promised at all."""

import math
from dataclasses import dataclass

from pgversus.report.answer import Answer
from pgversus.stats.analysis import ContenderResult, smallest_difference, spread_of_blocks
from pgversus.stats.block_model import noise_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Shares; None where there is none."""

    spread_of_blocks: float | None
    spread_of_windows: float | None
    """What blocks would differ by if servers were not restarted between them."""
    spread_of_starts: float | None
    """What they differ by beyond that."""
    smallest_difference: float | None


def sensitivity(answer: Answer, result: ContenderResult) -> Sensitivity:
    """Of one verdict; nothing of an invalid one, and no smallest difference of what has no interval."""
    estimate, ratio = result.log_ratio, result.ratios.get(answer.analysis.metric)
    if estimate is None or ratio is None:
        return Sensitivity(
            spread_of_blocks=None, spread_of_windows=None, spread_of_starts=None, smallest_difference=None
        )
    has_interval = ratio.low is not None and ratio.high is not None
    parts = noise_parts(estimate, answer.blocks, result.contender)
    return Sensitivity(
        spread_of_blocks=spread_of_blocks(estimate),
        spread_of_windows=None if parts is None else math.expm1(parts.windows),
        spread_of_starts=None if parts is None else math.expm1(parts.starts),
        smallest_difference=smallest_difference(estimate, answer.rule) if has_interval else None,
    )
