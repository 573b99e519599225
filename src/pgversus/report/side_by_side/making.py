"""From two answers to what is put beside each other."""

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import needs_check
from pgversus.report.side_by_side.agreement import agreement, agreement_words, quotient
from pgversus.report.side_by_side.around import days_words, host_words, notes
from pgversus.report.side_by_side.matching import Together, match
from pgversus.report.side_by_side.put import Agreement, Around, Side, SideBySide, SideBySideRow, Source
from pgversus.stats.analysis import ContenderResult
from pgversus.text.translation import tell


def side_by_side(a: StudyAnswer, b: StudyAnswer) -> SideBySide:
    """Two results, put beside each other where they answer the same question; of all else why they do not."""
    found = match(a, b)
    return SideBySide(
        a=_source(a),
        b=_source(b),
        rows=tuple(map(_row, found.together)),
        not_comparable=found.alone,
    )


def _source(answer: StudyAnswer) -> Source:
    measured = [one.days for one in answer.answers if one.days is not None]
    days = (min(first for first, _ in measured), max(last for _, last in measured)) if measured else None
    return Source(
        title=answer.study.title,
        results=answer.results,
        host=host_words(answer.answers[0].host) if answer.answers else "",
        days=days_words(days),
    )


def _row(pair: Together) -> SideBySideRow:
    a, b = _side(pair.a, pair.a_result), _side(pair.b, pair.b_result)
    found = notes(pair)
    is_comparable = all(note.kind is not Around.BASELINE for note in found)
    of_both = quotient(a, b) if is_comparable else None
    judged = agreement(a, b, of_both) if is_comparable else Agreement.NOT_JUDGED
    not_judged = tell("not judged: the baselines are not the same")
    return SideBySideRow(
        a=a,
        b=b,
        metric=pair.a.analysis.metric,
        by_role=pair.by_role,
        agreement=judged,
        words=agreement_words(judged, a, b) if is_comparable else not_judged,
        quotient=of_both,
        notes=found,
    )


def _side(one: Answer, result: ContenderResult) -> Side:
    comparison, metric = one.comparison, one.analysis.metric
    ratio, levels = result.ratios.get(metric), result.levels.get(metric)
    return Side(
        context=one.context.label,
        baseline=comparison.baseline.label,
        contender=comparison.arms[result.contender].label,
        verdict=result.verdict,
        ratio=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        baseline_value=levels[0] if levels else None,
        contender_value=levels[1] if levels else None,
        margin=comparison.design.margin,
        blocks=result.blocks,
        needs_check=needs_check(one, result),
    )
