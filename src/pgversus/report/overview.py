"""A study at a glance: one row for each verdict, and sentences over all of them. Every renderer shows these."""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import metric_words, needs_check
from pgversus.report.values import level_text
from pgversus.report.verdicts import verdict_word
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import BASELINE
from pgversus.study.design import StopReason
from pgversus.text.translation import _, listed, ngettext
from pgversus.text.units import change, change_interval, duration

MARKS = {Verdict.EQUIVALENT: "~", Verdict.UNDECIDED: "?", Verdict.INVALID: "!"}
"""Shown instead of a change where none is claimed."""
MOST_ROWS = 100
"""Of one table for people: more nobody reads on a terminal, and a comment on a pull request holds 65,536 characters."""
_MOST_NAMED = 3
_MOST_ARMS = 8
"""Whose caveats of one kind are told in full."""
WORST_FIRST = (Verdict.INVALID, Verdict.SLOWER, Verdict.UNDECIDED, Verdict.FASTER, Verdict.EQUIVALENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One verdict as it is shown; every number is text already."""

    context: str
    baseline: str
    contender: str
    metric: str
    baseline_level: str
    contender_level: str
    change: str
    """The change, or the mark of a verdict that claims none."""
    interval: str
    verdict: Verdict
    blocks: str
    check: str
    """CHECK where a caveat says that the number may mean something else than it seems to; else empty."""


def verdict_rows(answer: StudyAnswer, most: int = sys.maxsize) -> list[VerdictRow]:
    """A row for each verdict, in the order of the study.

    most: rows that are wanted; where not all can be shown, differences come before anything else.
    """
    found = [(one, result) for one in answer.answers for result in one.analysis.results]
    return [_row(*found[index]) for index in _most_telling([result.verdict for _unused, result in found], most)]


def _most_telling(verdicts: Sequence[Verdict], most: int) -> list[int]:
    """Where at most so many of them stand, in their order."""
    if len(verdicts) <= most:
        return list(range(len(verdicts)))
    ranked = sorted(range(len(verdicts)), key=lambda index: WORST_FIRST.index(verdicts[index]))
    ranked.sort(key=lambda index: verdicts[index] not in (Verdict.FASTER, Verdict.SLOWER))
    return sorted(ranked[:most])


def overview_sentences(answer: StudyAnswer) -> list[str]:
    """How many verdicts of which kind, how sure they are together, and why nothing more was measured."""
    error = [_error(answer)] if answer.answers else []
    return [_counts(answer), *error, *_ending(answer)]


def shared_caveats(answer: StudyAnswer) -> list[str]:
    """Each kind of caveat once for each arm, with the contexts that it concerns; of differing figures the first.

    Of a kind that concerns very many arms the last ones are only named.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for one in answer.answers:
        for caveat in one.caveats:
            # One that concerns every verdict may be of the baseline alone: two of a slug never stand under one name.
            arms = found.setdefault(caveat.slug, {})
            arms.setdefault(one.comparison.arms[caveat.arm or BASELINE].label, {})[one.context.label] = caveat.text
    return [line for slug, arms in found.items() for line in _caveat_lines(slug, arms, len(answer.answers))]


def not_measured(answer: StudyAnswer) -> list[str]:
    """What has no block, with the reason: contexts, and treatments that were left out; of many only the first."""
    whole = _("the comparison")
    lines = [f"{one.context.label or whole}: {one.words}" for one in answer.unanswered]
    lines += [
        _("{treatment}, skipped: {reason}", treatment=one.label, reason=one.reason) for one in answer.study.skipped
    ]
    rest = len(lines) - MOST_ROWS
    return lines[:MOST_ROWS] + ([_("{rest} more", rest=rest)] if rest > 0 else [])


def _row(one: Answer, result: ContenderResult) -> VerdictRow:
    comparison, metric = one.comparison, one.analysis.metric
    ratio, levels = result.ratios.get(metric), result.levels.get(metric)
    baseline_level, contender_level = (level_text(metric, level) for level in levels) if levels else ("", "")
    return VerdictRow(
        context=one.context.label,
        baseline=comparison.baseline.label,
        contender=comparison.arms[result.contender].label,
        metric=metric_words(metric),
        baseline_level=baseline_level,
        contender_level=contender_level,
        change=MARKS.get(result.verdict) or (change(ratio.value) if ratio else ""),
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
        verdict=result.verdict,
        blocks=str(result.blocks),
        check=_("CHECK") if needs_check(one, result) else "",
    )


def _counts(answer: StudyAnswer) -> str:
    verdicts = Counter(result.verdict for one in answer.answers for result in one.analysis.results)
    parts = [
        _("{count} {verdict}", count=verdicts[verdict], verdict=verdict_word(verdict))
        for verdict in WORST_FIRST
        if verdicts[verdict]
    ]
    return ngettext(
        "{number} verdict: {parts}.",
        "{number} verdicts: {parts}.",
        verdicts.total(),
        parts=listed(parts) or _("none"),
    )


def _error(answer: StudyAnswer) -> str:
    fixed = all(one.comparison.design.fixed_blocks is not None for one in answer.answers)
    if answer.study.verdicts == 1:
        if fixed:
            return _(
                "The chance that the verdict is wrong is at most 1 in 20, with one check after a fixed number of "
                "blocks."
            )
        return _("The chance that the verdict is wrong is at most 1 in 20, over all checks.")
    if fixed:
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
    # A comparison of the command line, which has no title, is not gone on with.
    if answer.stopped is StopReason.BUDGET:
        again = _("The budget was used up. Run the same command with a larger --budget to resume.")
        yield again if answer.study.title else _("The budget was used up.")
    elif answer.stopped is StopReason.INTERRUPTED:
        again = _("Interrupted. Run the same command again to resume.")
        yield again if answer.study.title else _("Interrupted.")


def _caveat_lines(slug: str, arms: Mapping[str, Mapping[str, str]], total: int) -> Iterator[str]:
    """Of one kind. arms: its texts by context, for each arm."""
    for texts in islice(arms.values(), _MOST_ARMS):
        yield _in_contexts(_("{caveat} ({slug})", caveat=_first(texts), slug=slug), texts, total)
    if rest := list(arms)[_MOST_ARMS:]:
        yield _("the same for {arms} ({slug})", arms=", ".join(rest), slug=slug)


def _first(texts: Mapping[str, str]) -> str:
    return next(iter(texts.values()))


def _in_contexts(caveat: str, texts: Mapping[str, str], total: int) -> str:
    """The caveat with where it holds. texts: of it, by context."""
    first, *others = texts
    if len(set(texts.values())) > 1:
        return _(
            "{caveat} [{first}; similar in {others} more of {total} contexts]",
            caveat=caveat,
            first=first,
            others=len(others),
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
    """A verdict and where it belongs."""

    answer: Answer
    result: ContenderResult
    label: str
    """What tells it from the others: its context, its contender, or both; of no other verdict of the study."""

    @property
    def speed(self) -> float:
        """ln of how many times as fast the contender is; 0 where nothing is known of it."""
        ratio = self.result.log_ratio
        if ratio is None or not math.isfinite(ratio.point):
            return 0.0
        return ratio.point if self.answer.analysis.metric.more_is_better else -ratio.point


def worst_first(answer: StudyAnswer) -> list[RankedVerdict]:
    """Every verdict once."""
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
