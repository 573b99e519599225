"""Two results side by side for programs: a versioned JSON document, whose keys are only ever added, and CSV rows."""

from dataclasses import asdict
from typing import Any

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.methodology import days_text
from pgversus.report.side_by_side.agreement import (
    Agreement,
    DiscrepancyKind,
    NotComparable,
    ResultSource,
    Side,
    SideBySide,
    SideBySideRow,
    agreement,
    agreement_text,
    quotient,
)
from pgversus.report.side_by_side.discrepancies import host_text, notes
from pgversus.report.side_by_side.matching import MatchedPair, match
from pgversus.report.side_by_side.section import side_by_side_section
from pgversus.report.tidy_tables import Cell, TidyTable
from pgversus.stats.analysis import ContenderResult
from pgversus.text.translation import Language, use_language


def side_by_side(a: StudyAnswer, b: StudyAnswer) -> SideBySide:
    """Match two results as far as they answer the same question, and state why the rest is not comparable."""
    together, alone = match(a, b)
    return SideBySide(a=_source(a), b=_source(b), rows=tuple(map(_row, together)), not_comparable=tuple(alone))


def _source(answer: StudyAnswer) -> ResultSource:
    return ResultSource(
        title=answer.study.title,
        results=answer.results,
        host=host_text(answer.answers[0].host) if answer.answers else "",
        days=days_text(answer.answers),
    )


def _row(pair: MatchedPair) -> SideBySideRow:
    a, b = _side(pair.a, pair.a_result), _side(pair.b, pair.b_result)
    found = notes(pair)
    is_comparable = all(note.kind is not DiscrepancyKind.BASELINE for note in found)
    of_both = quotient(a, b) if is_comparable else None
    judged = agreement(a, b, of_both) if is_comparable else Agreement.NOT_JUDGED
    return SideBySideRow(
        a=a,
        b=b,
        metric=pair.a.analysis.metric,
        by_role=pair.by_role,
        agreement=judged,
        words=agreement_text(judged, a, b),
        quotient=of_both,
        notes=found,
    )


def _side(one: Answer, result: ContenderResult) -> Side:
    comparison, metric = one.comparison, one.analysis.metric
    ratio, values = result.ratios.get(metric), result.paired_values.get(metric)
    return Side(
        context=one.context.label,
        baseline=comparison.baseline.label,
        contender=comparison.arms[result.contender].label,
        verdict=result.verdict,
        ratio=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        baseline_value=values[0] if values else None,
        contender_value=values[1] if values else None,
        margin=comparison.design.margin,
        blocks=result.blocks,
        needs_check=one.needs_check(result),
    )


SCHEMA = "pgversus.side-by-side/1"
_OF_SIDE: dict[str, Cell] = {
    "context": str,
    "baseline": str,
    "contender": str,
    "verdict": str,
    "ratio": float,
    "low": float,
    "high": float,
    "baseline_value": float,
    "contender_value": float,
    "margin": float,
    "blocks": int,
}


def side_by_side_document(a: StudyAnswer, b: StudyAnswer) -> dict[str, Any]:
    """Return the comparison as a JSON document, in English and in base units; None for missing numbers."""
    with use_language(Language.ENGLISH):
        found = side_by_side(a, b)
        return {
            "schema": SCHEMA,
            "a": _source_document(a, found.a),
            "b": _source_document(b, found.b),
            "answer": side_by_side_section(found).sentences,
            "rows": [_row_document(row) for row in found.rows],
            "not_comparable": [_lone(one) for one in found.not_comparable],
        }


def side_by_side_table(a: StudyAnswer, b: StudyAnswer) -> TidyTable:
    """Return a row for each pair, followed by contexts and contenders that are not comparable, with reasons."""
    with use_language(Language.ENGLISH):
        found = side_by_side(a, b)
    types: dict[str, Cell] = {
        **{f"a_{name}": cell for name, cell in _OF_SIDE.items()},
        **{f"b_{name}": cell for name, cell in _OF_SIDE.items()},
        "metric": str,
        "unit": str,
        "comparable": str,
        "agreement": str,
        "quotient": float,
        "quotient_low": float,
        "quotient_high": float,
        "not_alike": str,
        "words": str,
    }
    rows = [_csv_row(row) for row in found.rows] + [_csv_lone(one) for one in found.not_comparable]
    return TidyTable(types=types, rows=iter(rows))


def _source_document(answer: StudyAnswer, source: ResultSource) -> dict[str, Any]:
    return {
        "study": answer.study.name,
        "title": source.title,
        "results": source.results,
        "days": source.days or None,
        "host": dict(answer.answers[0].host) if answer.answers else {},
    }


def _row_document(row: SideBySideRow) -> dict[str, Any]:
    return {
        "metric": row.metric.value,
        "unit": row.metric.unit,
        "a": asdict(row.a),
        "b": asdict(row.b),
        "matched_by": "role" if row.by_role else "name",
        "agreement": row.agreement.value,
        "words": row.words,
        "quotient": None if row.quotient is None else asdict(row.quotient),
        "not_alike": [{"kind": note.kind.value, "words": note.words} for note in row.notes],
    }


def _lone(one: NotComparable) -> dict[str, Any]:
    return {"a": one.a, "b": one.b, "reasons": [{"kind": kind.value, "words": words} for kind, words in one.reasons]}


def _csv_row(row: SideBySideRow) -> list[Any]:
    found = row.quotient
    bounds = [None] * 3 if found is None else [found.value, found.low, found.high]
    kinds = " ".join(note.kind.value for note in row.notes)
    words = "; ".join([row.words, *(note.words for note in row.notes)])
    judged = [row.metric.value, row.metric.unit, "yes", row.agreement.value, *bounds, kinds, words]
    return [*_cells(row.a), *_cells(row.b), *judged]


def _cells(side: Side) -> list[Any]:
    return [getattr(side, name) for name in _OF_SIDE]


def _csv_lone(one: NotComparable) -> list[Any]:
    lacking = [None] * (len(_OF_SIDE) - 1)
    kinds = " ".join(kind.value for kind, _unused in one.reasons)
    words = "; ".join(words for _unused, words in one.reasons)
    return [one.a, *lacking, one.b, *lacking, None, None, "no", None, None, None, None, kinds, words]
