"""The answer to a study as a whole, with which every report begins: counts, the worst verdict, the next steps."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.validity import Validity, validity_of_study
from pgversus.report.advice import NOTHING_TO_DO, repairs, unfinished_groups
from pgversus.report.answer_table import AnswerTable
from pgversus.report.overview import WORST_FIRST, RankedVerdict, worst_first
from pgversus.report.sentences import answer_sentences, contender_sentence, shortened
from pgversus.report.size import size_advice
from pgversus.report.timeline import timeline_table
from pgversus.report.upgrade_sentences import upgrade_sentences
from pgversus.report.upgrade_tables import finding_tables
from pgversus.report.values import uses_factors
from pgversus.report.verdicts import verdict_word
from pgversus.stats.confidence import Verdict
from pgversus.study.design import StopReason
from pgversus.study.study import StudyKind
from pgversus.text.translation import _, listed, ngettext, together


def study_sentences(answer: StudyAnswer) -> list[str]:
    """Return the answer to a study as a whole; a study of one comparison has that comparison's sentences."""
    is_single = len(answer.answers) == 1 and not answer.unanswered
    if is_single and answer.study.kind is not StudyKind.UPGRADE_CHECK:
        return answer_sentences(answer.answers[0])
    return joint_sentences(answer)


def answer_tables(answer: StudyAnswer, most: int) -> list[AnswerTable]:
    """Return the tables that are the answer instead of verdicts, if any. most: maximum number of rows of each."""
    match answer.study.kind:
        case StudyKind.UPGRADE_CHECK:
            return finding_tables(answer, most)
        case StudyKind.TIMELINE:
            return [timeline_table(one) for one in answer.answers]
        case StudyKind.COMPARISON | StudyKind.STUDY:
            return []


def joint_sentences(answer: StudyAnswer) -> list[str]:
    """Return sentences on the number of verdicts of each kind, on the worst one, and on the next steps.

    Undecided verdicts, and those that miss the precision, are grouped by their next step. An upgrade check has
    different sentences.
    """
    if answer.study.kind is StudyKind.UPGRADE_CHECK:
        return upgrade_sentences(answer)
    ranked = worst_first(answer)
    judged = [(one.answer, one.result) for one in ranked]
    groups = unfinished_lines(answer, ranked)
    # The names distinguish the groups.
    unfinished = [
        together(_("{names}: {count}", names=one.names, count=one.count) if len(groups) > 1 else one.count, one.advice)
        for one in groups
    ]
    todo = [*repairs(judged), *filter(None, [size_advice(judged)]), *unfinished, *_resumption(answer)]
    is_done = validity_of_study(answer) is Validity.VALID
    done = [_(NOTHING_TO_DO)] if is_done else []
    return [_counts(answer), *_worst(ranked), *(todo or done)]


_MOST_NAMED = 2
# The table names all of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedLine:
    """Verdicts that are undecided or miss the precision, and have the same next step, in words."""

    names: str
    """Labels of the first ones."""
    count: str
    """A sentence."""
    advice: str
    """A sentence or two."""
    is_undecided: bool
    """Whether any of them is undecided."""


def unfinished_lines(answer: StudyAnswer, ranked: Sequence[RankedVerdict]) -> list[UnfinishedLine]:
    """Return a line for each group of unfinished verdicts with the same next step. ranked: all of the study."""
    labels = {(one.answer.context.number, one.result.contender): one.label for one in ranked}
    unreached = sum(not one.failed for one in answer.unanswered)
    others_s = unreached * math.fsum(one.wall_s for one in answer.answers) / max(1, len(answer.answers))
    found = []
    for group in unfinished_groups([(one.answer, one.result) for one in ranked], others_s):
        names = [labels[one.context.number, result.contender] for one, result in group.judged]
        is_undecided = any(result.verdict is Verdict.UNDECIDED for _one, result in group.judged)
        found.append(
            UnfinishedLine(
                names=shortened(names, _MOST_NAMED), count=group.count, advice=group.advice, is_undecided=is_undecided
            )
        )
    return found


def _worst(ranked: Sequence[RankedVerdict]) -> Iterator[str]:
    """Yield the sentence on the slowest contender, or a sentence that no contender was found to be slower."""
    slower = [one for one in ranked if one.result.verdict is Verdict.SLOWER]
    if slower and len(ranked) > 1:
        worst, as_factors = slower[0], uses_factors(one.answer for one in ranked)
        sentence = contender_sentence(worst.answer, worst.result, as_factors=as_factors)
        yield _("Worst: {sentence}", sentence=": ".join(filter(None, [worst.answer.context.label, sentence])))
    elif not slower and any(one.result.verdict in (Verdict.FASTER, Verdict.EQUIVALENT) for one in ranked):
        yield _("No contender was found to be slower.")


def _resumption(answer: StudyAnswer) -> Iterator[str]:
    """Yield advice on contexts that were not reached. A comparison of the command line cannot be resumed."""
    if all(one.failed for one in answer.unanswered) or answer.is_comparison:
        return
    if answer.stopped is StopReason.BUDGET:
        yield _("Run the same command with a larger --budget to resume.")
    elif answer.stopped is StopReason.INTERRUPTED:
        yield _("Run the same command again to resume.")


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
