"""Overview of a study: one row per verdict, their ranking, caveats and error. Every renderer shows these."""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pgversus.answers.answer import Answer, Caveat, StudyAnswer
from pgversus.report.caveats import caveat_text, joint_text
from pgversus.report.sentences import unanswered_text
from pgversus.report.values import uses_factors
from pgversus.report.verdicts import VerdictRow, verdict_row
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import BASELINE
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer
from pgversus.text.translation import _, ngettext
from pgversus.text.units import duration

MOST_ROWS = 100
"""Maximum number of rows of a table for people: a pull request comment is limited to 65,536 characters."""
_MOST_NAMED = 3
_MOST_ARMS = 8
"""Maximum number of arms whose caveats of one kind are shown in full."""
WORST_FIRST = (Verdict.INVALID, Verdict.SLOWER, Verdict.UNDECIDED, Verdict.FASTER, Verdict.EQUIVALENT)


def verdict_rows(answer: StudyAnswer, most: int = sys.maxsize) -> list[VerdictRow]:
    """Return a row for each verdict, in the order of the study.

    most: maximum number of rows; if not all fit, differences take precedence.
    """
    found = [(one, result) for one in answer.answers for result in one.analysis.results]
    as_factors = uses_factors(answer.answers)
    return [
        verdict_row(*found[index], as_factors=as_factors)
        for index in _most_informative([result.verdict for _unused, result in found], most)
    ]


def _most_informative(verdicts: Sequence[Verdict], most: int) -> list[int]:
    """Return the indexes of the `most` most important verdicts, in order."""
    if len(verdicts) <= most:
        return list(range(len(verdicts)))
    ranked = sorted(range(len(verdicts)), key=lambda index: WORST_FIRST.index(verdicts[index]))
    ranked.sort(key=lambda index: verdicts[index] not in (Verdict.FASTER, Verdict.SLOWER))
    return sorted(ranked[:most])


def overview_sentences(answer: StudyAnswer) -> list[str]:
    """Return sentences on the joint error of the verdicts, the measuring time, and the reason why measuring ended."""
    error = [_error(answer)] if answer.answers else []
    return [*error, *_of_running_servers(answer), *_ending(answer)]


def _of_running_servers(answer: StudyAnswer) -> list[str]:
    """Return what the error rate does not include: chance effects of a start that was not repeated."""
    arms = (arm for one in answer.answers for arm in one.comparison.arms)
    if not any(isinstance(arm.server, RunningServer) for arm in arms):
        return []
    return [_("That holds for external servers as they were running: a restart could have changed the result.")]


_ByArm = dict[str, dict[str, Caveat]]
"""Caveats of one slug by the arm, then by the context."""


def shared_caveats(answer: StudyAnswer) -> list[str]:
    """Return each kind of caveat once per arm, with its contexts, the gravest first; if values differ, the first ones.

    If a kind concerns very many arms, the last ones are only named.
    """
    total = len(answer.answers)
    return [line for slug, arms in _caveats_by_slug(answer).items() for line in _caveat_lines(slug, arms, total)]


def joint_caveats(answer: StudyAnswer) -> list[str]:
    """Return each kind of caveat once, with its arms and contexts; if values differ, those of the first context."""
    lines = []
    for slug, arms in _caveats_by_slug(answer).items():
        first = joint_text({arm: next(iter(found.values())) for arm, found in arms.items()})
        texts = {context: caveat_text(caveat) for found in arms.values() for context, caveat in found.items()}
        lines.append(_in_contexts(_("{caveat} ({slug})", caveat=first, slug=slug), texts, len(answer.answers)))
    return lines


def _caveats_by_slug(answer: StudyAnswer) -> dict[str, _ByArm]:
    """Return the caveats by slug, the gravest first."""
    found: dict[str, _ByArm] = {}
    placed = [(one, caveat) for one in answer.answers for caveat in one.caveats]
    for one, caveat in sorted(placed, key=lambda pair: pair[1].rank):
        # Caveats that concern every verdict are listed under the baseline; two with one slug never share a label.
        label = one.comparison.arms[caveat.arm or BASELINE].label
        found.setdefault(caveat.slug, {}).setdefault(label, {})[one.context.label] = caveat
    return found


def not_measured(answer: StudyAnswer) -> list[str]:
    """Return contexts without blocks and skipped treatments, with reasons, limited to the first ones."""
    whole = _("the comparison")
    lines = [f"{one.context.label or whole}: {unanswered_text(one)}" for one in answer.unanswered]
    lines += [f"{one.label}: {one.reason}" for one in answer.study.skipped]
    rest = len(lines) - MOST_ROWS
    return lines[:MOST_ROWS] + ([_("{rest} more", rest=rest)] if rest > 0 else [])


def _error(answer: StudyAnswer) -> str:
    looks_once = all(one.comparison.design.stopping_rule.looks_once for one in answer.answers)
    if answer.study.verdicts == 1:
        if looks_once:
            return _(
                "The chance that the verdict is wrong is at most 1 in 20, with one check after a fixed number of "
                "blocks."
            )
        return _("The chance that the verdict is wrong is at most 1 in 20, over all checks.")
    if looks_once:
        return _(
            "The chance that any of the {verdicts} verdicts is wrong is at most 1 in 20, with one check after a fixed "
            "number of blocks.",
            verdicts=answer.study.verdicts,
        )
    return _(
        "The chance that any of the {verdicts} verdicts is wrong is at most 1 in 20, over all checks.",
        verdicts=answer.study.verdicts,
    )


def _ending(answer: StudyAnswer) -> Iterator[str]:
    wall_s = sum(one.wall_s for one in answer.answers)
    blocks = sum(len(one.blocks) for one in answer.answers)
    yield ngettext(
        "{number} block, {duration}, seed {seed}.",
        "{number} blocks, {duration}, seed {seed}.",
        blocks,
        duration=duration(wall_s),
        seed=answer.study.seed,
    )
    if answer.stopped is StopReason.BUDGET:
        yield _("Stopped by the budget.")
    elif answer.stopped is StopReason.INTERRUPTED:
        yield _("Interrupted.")


def _caveat_lines(slug: str, arms: _ByArm, total: int) -> Iterator[str]:
    """Yield the lines of one kind of caveat."""
    for found in islice(arms.values(), _MOST_ARMS):
        texts = {context: caveat_text(caveat) for context, caveat in found.items()}
        yield _in_contexts(_("{caveat} ({slug})", caveat=next(iter(texts.values())), slug=slug), texts, total)
    if rest := list(arms)[_MOST_ARMS:]:
        yield _("the same for {arms} ({slug})", arms=", ".join(rest), slug=slug)


def _in_contexts(caveat: str, texts: Mapping[str, str], total: int) -> str:
    """Return the caveat with its contexts. texts: by context."""
    first, *others = texts
    if len(set(texts.values())) > 1:
        return ngettext(
            "{caveat} [{first}; similar in {number} other context (of {total})]",
            "{caveat} [{first}; similar in {number} other contexts (of {total})]",
            len(others),
            caveat=caveat,
            first=first,
            total=total,
        )
    if total == 1 or len(texts) == total:
        return caveat
    if len(texts) <= _MOST_NAMED:
        return f"{caveat} [{', '.join(texts)}]"
    return _("{caveat} [in {some} of {total} contexts]", caveat=caveat, some=len(texts), total=total)


_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedVerdict:
    """A verdict with its answer and label."""

    answer: Answer
    result: ContenderResult
    label: str
    """The context, the contender, or both; unique in the study."""

    @property
    def speed(self) -> float:
        """ln of the contender's speed relative to the baseline; 0 if unknown."""
        ratio = self.result.log_ratio
        if ratio is None or not math.isfinite(ratio.point):
            return 0.0
        return ratio.point if self.answer.analysis.metric.more_is_better else -ratio.point


def worst_first(answer: StudyAnswer) -> list[RankedVerdict]:
    """Return every verdict once, the worst first."""
    is_single = len(answer.answers) == 1
    has_several = any(len(one.comparison.arms) > _PAIR for one in answer.answers)
    found = [
        RankedVerdict(
            answer=one, result=result, label=_label(one, result, is_single=is_single, has_several=has_several)
        )
        for one in answer.answers
        for result in one.analysis.results
    ]
    return sorted(found, key=lambda one: (WORST_FIRST.index(one.result.verdict), one.speed))


def _label(one: Answer, result: ContenderResult, *, is_single: bool, has_several: bool) -> str:
    arms = one.comparison.arms
    contender = arms[result.contender].label
    if is_single:
        return f"{one.context.label}  {contender} / {arms[0].label}".strip()
    return f"{one.context.label}  {contender}" if has_several else one.context.label
