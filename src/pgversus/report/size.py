"""Whether the size of a difference is known well enough, and the precision that would measure it."""

import math
from collections.abc import Sequence

from pgversus.answers.answer import Answer
from pgversus.report.advice import Judged, max_blocks_flag, minutes, seconds_of_a_block
from pgversus.stats.analysis import ContenderResult, blocks_for_precision
from pgversus.stats.confidence import DIFFERENT
from pgversus.text.translation import N_, _
from pgversus.text.units import duration, percent

_WIDE = 2
# Quotient of the ends of an interval, as log ratios, above which the size of a difference is not certain.
_PRECISIONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)
# In percent, for advice.
_NEARLY = 1.1
# A precision that is a tenth coarser than needed is advised if it is round.


def open_size(answer: Answer, result: ContenderResult) -> str:
    """Return a sentence if the direction of a difference is certain but its size is not; empty for a certain size."""
    if not _is_size_open(answer, result):
        return ""
    design, bounds = answer.comparison.design, result.interval
    if min(abs(bounds.low), abs(bounds.high)) >= design.log_margin:
        return _("The direction is known, but the size is not.")
    return _(
        "The direction is known, but the size is not: it may be below the margin of {margin}.",
        margin=percent(design.margin),
    )


def size_advice(judged: Sequence[Judged]) -> str:
    """Return advice on the precision that would measure these sizes; empty if none can, or if a precision was set.

    The contexts of a command share the precision, so it is the finest that any of them needs.
    """
    found = [
        (*wanted, answer)
        for answer, result in judged
        if result.verdict in DIFFERENT and _is_size_open(answer, result) and answer.comparison.design.precision is None
        if (wanted := _sensible_precision(answer, result)) is not None
    ]
    if not found:
        return ""
    precision, needed, answer = min(found, key=lambda one: (one[0], -one[1]))
    if answer.is_from_file:
        return _(
            'To measure the size, set precision = "{precision}" in [design] and run again with --new.',
            precision=f"{precision:g}%",
        )
    design, seconds = answer.comparison.design, needed * seconds_of_a_block(answer)
    flags = f"--precision {precision:g}%"
    if needed > design.max_blocks:
        flags += f" {max_blocks_flag(needed)}"
    if minutes(seconds) * 60 > design.budget_s:
        flags += f" --budget {minutes(seconds)}m"
    words = _INSTEAD_OF_BLOCKS if design.stopping_rule.looks_once else _WITH_FLAGS
    return _(words, flags=flags, duration=duration(seconds))


_WITH_FLAGS = N_("To measure the size, run again with {flags} (about {duration}).")
_INSTEAD_OF_BLOCKS = N_("To measure the size, run again with {flags} instead of --blocks (about {duration}).")


def _is_size_open(answer: Answer, result: ContenderResult) -> bool:
    """Return whether the interval of a difference is wide, and no precision was requested and reached.

    It is wide if one end is a difference of more than twice the size of the other (as log ratios, so that exchanging
    the arms changes nothing), or if one end lies inside the margin.
    """
    design, bounds = answer.comparison.design, result.interval
    if design.log_precision is not None and bounds.half_width <= design.log_precision:
        return False
    nearest, farthest = sorted((abs(bounds.low), abs(bounds.high)))
    return nearest < design.log_margin or farthest > _WIDE * nearest


def _sensible_precision(answer: Answer, result: ContenderResult) -> tuple[float, int] | None:
    """Return a precision in percent with the blocks it needs; None if this host is too noisy for any that helps.

    It is the largest round one with which the interval is no longer wide, or the next one that can be reached.
    """
    if result.log_ratio is None:
        return None
    # The ends of an interval that reaches w to each side differ by (p + w) / (p - w), which is _WIDE for this w.
    widest = abs(result.log_ratio.point) * (_WIDE - 1) / (_WIDE + 1)
    fine_enough = [one for one in _PRECISIONS if math.log1p(one / 100) <= _NEARLY * widest]
    for precision in _PRECISIONS[max(0, len(fine_enough) - 1) :]:
        needed = blocks_for_precision(result, answer.rule, precision / 100)
        if math.log1p(precision / 100) < result.interval.half_width and needed is not None:
            return precision, needed
    return None
