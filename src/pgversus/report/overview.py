"""A study at a glance: one row for each verdict, and sentences over all of them. Every renderer shows these."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.quantities import level_text
from pgversus.report.sentences import METRIC_WORDS, needs_check
from pgversus.report.units import change, change_interval, count, duration
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.verdict import Verdict
from pgversus.study.comparison import BASELINE
from pgversus.study.design import StopReason

MARKS = {Verdict.EQUIVALENT: "~", Verdict.UNDECIDED: "?", Verdict.INVALID: "!"}
"""Shown instead of a change where none is claimed."""
MOST_ROWS = 100
"""Of one table for people: more nobody reads on a terminal, and a comment on a pull request holds 65,536 characters."""
_MOST_NAMED = 3
_MOST_ARMS = 8
"""Whose caveats of one kind are told in full."""
_WORST_FIRST = (Verdict.INVALID, Verdict.SLOWER, Verdict.UNDECIDED, Verdict.FASTER, Verdict.EQUIVALENT)


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
    return [_row(*found[index]) for index in _most_telling([result.verdict for _, result in found], most)]


def _most_telling(verdicts: Sequence[Verdict], most: int) -> list[int]:
    """Where at most so many of them stand, in their order."""
    if len(verdicts) <= most:
        return list(range(len(verdicts)))
    ranked = sorted(range(len(verdicts)), key=lambda index: _WORST_FIRST.index(verdicts[index]))
    ranked.sort(key=lambda index: verdicts[index] not in (Verdict.FASTER, Verdict.SLOWER))
    return sorted(ranked[:most])


def overview_sentences(answer: StudyAnswer) -> list[str]:
    """How many verdicts of which kind, how sure they are together, and why nothing more was measured."""
    return [_counts(answer), _error(answer), *_ending(answer)]


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
    lines = [f"{one.context.label or 'the comparison'}: {one.words}" for one in answer.unanswered]
    lines += [f"{one.label}, left out: {one.reason}" for one in answer.study.skipped]
    rest = len(lines) - MOST_ROWS
    return lines[:MOST_ROWS] + ([f"{rest} more"] if rest > 0 else [])


def _row(one: Answer, result: ContenderResult) -> VerdictRow:
    comparison, metric = one.comparison, one.analysis.metric
    ratio, levels = result.ratios.get(metric), result.levels.get(metric)
    baseline_level, contender_level = (level_text(metric, level) for level in levels) if levels else ("", "")
    return VerdictRow(
        context=one.context.label,
        baseline=comparison.baseline.label,
        contender=comparison.arms[result.contender].label,
        metric=METRIC_WORDS[metric],
        baseline_level=baseline_level,
        contender_level=contender_level,
        change=MARKS.get(result.verdict) or (change(ratio.value) if ratio else ""),
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
        verdict=result.verdict,
        blocks=str(result.blocks),
        check="CHECK" if needs_check(one, result) else "",
    )


def _counts(answer: StudyAnswer) -> str:
    verdicts = Counter(result.verdict for one in answer.answers for result in one.analysis.results)
    parts = [f"{verdicts[verdict]} {verdict}" for verdict in _WORST_FIRST if verdicts[verdict]]
    return f"{count(sum(verdicts.values()), 'verdict')}: {', '.join(parts) or 'none'}."


def _error(answer: StudyAnswer) -> str:
    fixed = all(one.comparison.design.fixed_blocks is not None for one in answer.answers)
    looks = "at one look after a fixed number of blocks" if fixed else "however often one looked"
    if answer.study.verdicts == 1:
        return f"Wrong at most 1 time in 20, {looks}."
    return f"All {answer.study.verdicts} verdicts together are wrong at most 1 time in 20, {looks}."


def _ending(answer: StudyAnswer) -> Iterator[str]:
    wall_s = sum(one.wall_s for one in answer.answers)
    blocks = sum(len(one.blocks) for one in answer.answers)
    yield f"{count(blocks, 'block')}, {duration(wall_s)}, seed {answer.study.seed}."
    if answer.stopped is StopReason.BUDGET:
        yield "The budget ended; the same command with a larger --budget goes on from here."
    elif answer.stopped is StopReason.INTERRUPTED:
        yield "Interrupted; the same command goes on from here."


def _caveat_lines(slug: str, arms: Mapping[str, Mapping[str, str]], total: int) -> Iterator[str]:
    """Of one kind. arms: its texts by context, for each arm."""
    for texts in islice(arms.values(), _MOST_ARMS):
        yield f"{_first(texts)} ({slug}){_in_contexts(texts, total)}"
    if rest := list(arms)[_MOST_ARMS:]:
        yield f"alike of {', '.join(rest)} ({slug})"


def _first(texts: Mapping[str, str]) -> str:
    return next(iter(texts.values()))


def _in_contexts(texts: Mapping[str, str], total: int) -> str:
    """Where a caveat holds that has these texts, by context."""
    first, *others = texts
    if len(set(texts.values())) > 1:
        return f" [{first}; alike in {len(others)} more of {total} contexts]"
    if total == 1 or len(texts) == total:
        return ""
    return f" [{', '.join(texts)}]" if len(texts) <= _MOST_NAMED else f" [in {len(texts)} of {total} contexts]"
