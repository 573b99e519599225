"""The next step, stated once for all verdicts of a command: verdicts that need more time share its budget."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from pgversus.answers.answer import Answer
from pgversus.stats.analysis import ContenderResult, blocks_needed
from pgversus.stats.confidence import Verdict
from pgversus.study.design import MOST_BLOCKS, StopReason
from pgversus.study.metrics import percentile_name, transactions_for_quantile
from pgversus.text.translation import N_, _, ngettext
from pgversus.text.units import duration, percent

_TOO_NOISY = 3
"""Multiple of the budget above which a quieter host is suggested instead of more time."""
_RESERVE = 1.2
"""A factor for the needed time, because the noise seen so far is itself uncertain."""

NOTHING_TO_DO = N_("No further measurement is needed.")
"""Untranslated."""

Judged = tuple[Answer, ContenderResult]
"""A verdict and the answer it belongs to."""


class _Obstacle(Enum):
    """The reason why a verdict is undecided, or why its interval is wider than the precision."""

    TIME = auto()
    NOISE = auto()
    BLOCK_LIMIT = auto()
    """The study file allows too few blocks."""
    TRANSACTIONS = auto()
    """Blocks have too few transactions for an interval of the percentile."""
    INTERRUPTED = auto()
    FIXED_BLOCKS = auto()
    PRECISION_REACHED = auto()
    """The verdict is undecided, and measuring ended at the precision."""


@dataclass(frozen=True, slots=True)
class UnfinishedGroup:
    """Verdicts that are undecided or miss the precision, and have the same next step."""

    judged: tuple[Judged, ...]
    advice: str
    """One sentence or two."""

    @property
    def count(self) -> str:
        """The number of verdicts in a sentence, in the current language."""
        answer, result = self.judged[0]
        precision = answer.comparison.design.precision
        if precision is None or not misses_precision(answer, result):
            return ngettext("{number} verdict is undecided.", "{number} verdicts are undecided.", len(self.judged))
        return ngettext(
            "{number} interval did not reach the precision of ±{precision}.",
            "{number} intervals did not reach the precision of ±{precision}.",
            len(self.judged),
            precision=percent(precision),
        )


def misses_precision(answer: Answer, result: ContenderResult) -> bool:
    """Return whether the interval is wider than the precision of the design; False for an invalid contender."""
    wanted = answer.comparison.design.log_precision
    return wanted is not None and result.verdict is not Verdict.INVALID and result.interval.half_width > wanted


def is_unfinished(answer: Answer, result: ContenderResult) -> bool:
    """Return whether the verdict is undecided, or misses the precision."""
    return result.verdict is Verdict.UNDECIDED or misses_precision(answer, result)


def unfinished_groups(judged: Sequence[Judged], others_s: float = 0.0) -> list[UnfinishedGroup]:
    """Return the unfinished ones among these verdicts of one command, grouped by their next step.

    others_s: time that contexts without measurements are expected to take from the same budget.
    """
    found: dict[_Obstacle, list[Judged]] = {}
    for answer, result in judged:
        if is_unfinished(answer, result):
            found.setdefault(_obstacle(answer, result), []).append((answer, result))
    return [
        UnfinishedGroup(
            tuple(group), _more_time(group, others_s) if obstacle is _Obstacle.TIME else _ADVICE[obstacle](group)
        )
        for obstacle, group in found.items()
    ]


def repairs(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield advice on invalid and possibly misleading verdicts."""
    if any(result.verdict is Verdict.INVALID for _unused, result in judged):
        yield _("Fix the cause of the failed trials (see the caveats), then run the same command again.")
    if any(answer.needs_check(result) for answer, result in judged):
        yield _("Fix the problems in the caveats, then measure again. Until then, the result may be misleading.")


def seconds_of_a_block(answer: Answer) -> float:
    """Return the mean wall time of a block, with restarts and warm-up."""
    return answer.wall_s / max(1, len(answer.blocks))


def _obstacle(answer: Answer, result: ContenderResult) -> _Obstacle:
    design = answer.comparison.design
    if design.precision is not None and not misses_precision(answer, result):
        return _Obstacle.PRECISION_REACHED
    if answer.stopped is StopReason.INTERRUPTED:
        return _Obstacle.INTERRUPTED
    if design.stopping_rule.looks_once:
        return _Obstacle.FIXED_BLOCKS
    if result.blocks < answer.rule.first_look:
        return _Obstacle.TIME
    ratio = result.ratios.get(design.metric)
    if design.metric.quantile is not None and (ratio is None or ratio.low is None):
        return _Obstacle.TRANSACTIONS
    return _limit(answer, result)


def _limit(answer: Answer, result: ContenderResult) -> _Obstacle:
    """Return the obstacle to the number of blocks that the verdict needs at the present noise."""
    design, needed = answer.comparison.design, blocks_needed(result, answer.comparison, answer.rule)
    if needed is None or (needed - result.blocks) * seconds_of_a_block(answer) > _TOO_NOISY * design.budget_s:
        return _Obstacle.NOISE
    if answer.is_from_file and max(needed, result.blocks + 1) > design.max_blocks:
        return _Obstacle.BLOCK_LIMIT
    return _Obstacle.TIME


def _more_time(group: Sequence[Judged], others_s: float) -> str:
    """Return how much longer the command must run for all of them: contenders of one context share its blocks."""
    more_s: dict[int, float] = {}
    for answer, result in group:
        seconds = (_blocks(answer, result) - len(answer.blocks)) * seconds_of_a_block(answer)
        more_s[answer.context.number] = max(more_s.get(answer.context.number, 0.0), seconds)
    answer, most = group[0][0], max(_blocks(*one) for one in group)
    all_s = math.fsum(more_s.values()) + others_s
    flags = f"--budget {minutes(answer.study_wall_s + all_s)}m"
    if most >= answer.comparison.design.max_blocks and not answer.is_from_file:
        flags = f"{max_blocks_flag(most)} {flags}"
    if answer.comparison.design.precision is not None:
        return ngettext(
            "Reaching the precision takes about {duration} more. Run again with {flags}.",
            "Narrowing {number} intervals takes about {duration} more in total. Run again with {flags}.",
            len(group),
            duration=duration(all_s),
            flags=flags,
        )
    return ngettext(
        "A verdict takes about {duration} more. Run again with {flags}.",
        "The verdicts need about {duration} more in total. Run again with {flags}.",
        len(group),
        duration=duration(all_s),
        flags=flags,
    )


def minutes(seconds: float) -> int:
    """Return a budget in minutes for a predicted time, with a reserve."""
    return math.ceil(seconds * _RESERVE / 60)


def max_blocks_flag(needed: int) -> str:
    """Return --max-blocks for a predicted number of blocks, with a reserve."""
    return f"--max-blocks {min(MOST_BLOCKS, math.ceil(_RESERVE * needed))}"


def _blocks(answer: Answer, result: ContenderResult) -> int:
    """Return the number of blocks after which a verdict is expected; it is larger than the number so far."""
    needed = blocks_needed(result, answer.comparison, answer.rule) or 0
    return max(needed, answer.rule.first_look, len(answer.blocks) + 1)


def _less_noise(group: Sequence[Judged]) -> str:
    (answer, _unused), *_others = group
    design = answer.comparison.design
    share, option = (design.margin, "--margin") if design.precision is None else (design.precision, "--precision")
    return _(_NOISY_OF_FILE if answer.is_from_file else _NOISY_OF_FLAGS, share=percent(share), option=option)


_NOISY_OF_FILE = N_("This host is currently too noisy for ±{share}. Stop other jobs or use a quieter machine.")
_NOISY_OF_FLAGS = N_(
    "This host is currently too noisy for ±{share}. Stop other jobs, use a quieter machine, or use a larger "
    "value of {option}."
)


def _more_blocks(group: Sequence[Judged]) -> str:
    answer, _unused = group[0]
    is_of_precision = answer.comparison.design.precision is not None
    return _(
        _BLOCKS_FOR_PRECISION if is_of_precision else _BLOCKS_FOR_VERDICT,
        needed=max(_blocks(*one) for one in group),
        most=answer.comparison.design.max_blocks,
    )


_BLOCKS_FOR_VERDICT = N_("A verdict takes about {needed} blocks, but this study ends after {most}.")
_BLOCKS_FOR_PRECISION = N_("Reaching the precision takes about {needed} blocks, but this study ends after {most}.")


def _smaller_precision(group: Sequence[Judged]) -> str:
    precision = group[0][0].comparison.design.precision
    assert precision is not None  # noqa: S101 - the condition of this obstacle
    return _(
        "The precision of ±{precision} was reached without a verdict. Specify a smaller precision, or a larger "
        "margin, to get a verdict.",
        precision=percent(precision),
    )


def _more_transactions(group: Sequence[Judged]) -> str:
    answer, _unused = group[0]
    quantile = answer.comparison.design.metric.quantile
    assert quantile is not None  # noqa: S101 - only percentiles have this obstacle
    return _(
        _LONGER_OF_FILE if answer.is_from_file else _LONGER_OF_FLAGS,
        percentile=percentile_name(quantile),
        needed=transactions_for_quantile(quantile),
    )


_LONGER_OF_FILE = N_(
    "An interval for {percentile} needs {needed} transactions of each arm in every block. Use more clients or longer "
    "windows."
)
_LONGER_OF_FLAGS = N_(
    "An interval for {percentile} needs {needed} transactions of each arm in every block. Use more clients or a longer "
    "--window."
)


def _resumption(group: Sequence[Judged]) -> str:
    # A study can be resumed; a comparison of the command line starts again.
    again = _("Run the same command again to resume.")
    return again if group[0][0].is_from_file else _("Run the comparison again without interrupting it.")


def _other_design(group: Sequence[Judged]) -> str:
    return _(_OTHER_OF_FILE if group[0][0].is_from_file else _OTHER_OF_FLAGS)


_OTHER_OF_FILE = N_(
    "Run the study again with more blocks, or with a larger margin if such a small difference does not matter."
)
_OTHER_OF_FLAGS = N_(
    "Run the comparison again with more blocks, or with a larger margin if such a small difference does not matter."
)


_ADVICE = {
    _Obstacle.NOISE: _less_noise,
    _Obstacle.BLOCK_LIMIT: _more_blocks,
    _Obstacle.TRANSACTIONS: _more_transactions,
    _Obstacle.INTERRUPTED: _resumption,
    _Obstacle.FIXED_BLOCKS: _other_design,
    _Obstacle.PRECISION_REACHED: _smaller_precision,
}
