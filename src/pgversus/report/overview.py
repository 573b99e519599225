"""A study at a glance: one row for each verdict, and sentences over all of them. Every renderer shows these."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import METRIC_WORDS
from pgversus.report.units import change, change_interval, count, duration, latency, significant
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.verdict import Verdict
from pgversus.study.design import StopReason
from pgversus.study.metrics import Metric

MARKS = {Verdict.EQUIVALENT: "~", Verdict.UNDECIDED: "?", Verdict.INVALID: "!"}
"""Shown instead of a change where none is claimed."""
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


def verdict_rows(answer: StudyAnswer) -> list[VerdictRow]:
    """A row for each verdict, in the order of the study."""
    return [_row(one, result) for one in answer.answers for result in one.analysis.results]


def most_telling(rows: Sequence[VerdictRow], most: int) -> list[VerdictRow]:
    """At most so many rows, in their order: differences before anything else where not all can be shown."""
    if len(rows) <= most:
        return list(rows)
    ranked = sorted(range(len(rows)), key=lambda index: _WORST_FIRST.index(rows[index].verdict))
    ranked.sort(key=lambda index: rows[index].verdict not in (Verdict.FASTER, Verdict.SLOWER))
    return [rows[index] for index in sorted(ranked[:most])]


def overview_sentences(answer: StudyAnswer) -> list[str]:
    """How many verdicts of which kind, how sure they are together, and why nothing more was measured."""
    return [_counts(answer), _error(answer), *_ending(answer)]


def shared_caveats(answer: StudyAnswer) -> list[str]:
    """Each caveat once, with the contexts that it concerns."""
    where: dict[tuple[str, str], list[str]] = {}
    for one in answer.answers:
        for caveat in one.caveats:
            where.setdefault((caveat.text, caveat.slug), []).append(one.context.label)
    total = len(answer.answers)
    return [f"{text} ({slug}){_in_contexts(labels, total)}" for (text, slug), labels in where.items()]


def not_measured(answer: StudyAnswer) -> list[str]:
    """Contexts without a block, with the reason."""
    return [f"{one.context.label or 'the comparison'}: {one.words}" for one in answer.unanswered]


def level_text(metric: Metric, estimate: Estimate | None) -> str:
    """A level in the unit people read it in; empty where there is none."""
    if estimate is None:
        return ""
    return significant(estimate.value, 4) if metric is Metric.TPS else latency(estimate.value)


def _row(one: Answer, result: ContenderResult) -> VerdictRow:
    comparison, metric = one.comparison, one.analysis.metric
    ratio = result.ratios.get(metric)
    return VerdictRow(
        context=one.context.label,
        baseline=comparison.baseline.label,
        contender=comparison.arms[result.contender].label,
        metric=METRIC_WORDS[metric],
        baseline_level=level_text(metric, one.analysis.levels[0].get(metric)),
        contender_level=level_text(metric, one.analysis.levels[result.contender].get(metric)),
        change=MARKS.get(result.verdict) or (change(ratio.value) if ratio else ""),
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
        verdict=result.verdict,
        blocks=str(result.blocks),
    )


def _counts(answer: StudyAnswer) -> str:
    verdicts = Counter(result.verdict for one in answer.answers for result in one.analysis.results)
    parts = [f"{verdicts[verdict]} {verdict}" for verdict in _WORST_FIRST if verdicts[verdict]]
    return f"{count(sum(verdicts.values()), 'verdict')}: {', '.join(parts) or 'none'}."


def _error(answer: StudyAnswer) -> str:
    fixed = all(one.comparison.design.fixed_blocks is not None for one in answer.answers)
    looks = "at one look after a fixed number of blocks" if fixed else "however often one looked"
    if answer.verdicts == 1:
        return f"Wrong at most 1 time in 20, {looks}."
    return f"All {answer.verdicts} verdicts together are wrong at most 1 time in 20, {looks}."


def _ending(answer: StudyAnswer) -> Iterator[str]:
    wall_s = sum(one.wall_s for one in answer.answers)
    blocks = sum(one.blocks_run for one in answer.answers)
    yield f"{count(blocks, 'block')}, {duration(wall_s)}, seed {answer.seed}."
    if answer.stopped is StopReason.BUDGET:
        yield "The budget ended; the same command with a larger --budget goes on from here."
    elif answer.stopped is StopReason.INTERRUPTED:
        yield "Interrupted; the same command goes on from here."


def _in_contexts(labels: list[str], total: int) -> str:
    if total == 1 or len(labels) == total:
        return ""
    return f" [{', '.join(labels)}]" if len(labels) <= 3 else f" [in {len(labels)} of {total} contexts]"  # noqa: PLR2004
