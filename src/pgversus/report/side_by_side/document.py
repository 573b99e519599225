"""Two results side by side for programs: a JSON document, versioned, keys are only ever added; and the rows of CSV."""

from dataclasses import asdict
from typing import Any

from pgversus.report.answer import StudyAnswer
from pgversus.report.side_by_side.making import side_by_side
from pgversus.report.side_by_side.put import NotComparable, Side, SideBySideRow, Source
from pgversus.report.side_by_side.section import side_by_side_section
from pgversus.report.tidy import Cell, TidyTable
from pgversus.text.translation import Language, speaking

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
    """Everything, in English and in base units; null where there is no number."""
    with speaking(Language.ENGLISH):
        found = side_by_side(a, b)
        return {
            "schema": SCHEMA,
            "a": _source(a, found.a),
            "b": _source(b, found.b),
            "answer": side_by_side_section(found).sentences,
            "rows": [_row(row) for row in found.rows],
            "not_comparable": [_lone(one) for one in found.not_comparable],
        }


def side_by_side_table(a: StudyAnswer, b: StudyAnswer) -> TidyTable:
    """A row for each pair, what is not comparable after them with its reasons."""
    with speaking(Language.ENGLISH):
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


def _source(answer: StudyAnswer, source: Source) -> dict[str, Any]:
    return {
        "study": answer.study.name,
        "title": source.title,
        "results": source.results,
        "days": source.days or None,
        "host": dict(answer.answers[0].host) if answer.answers else {},
    }


def _row(row: SideBySideRow) -> dict[str, Any]:
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
    kinds = " ".join(kind.value for kind, _ in one.reasons)
    words = "; ".join(words for _, words in one.reasons)
    return [one.a, *lacking, one.b, *lacking, None, None, "no", None, None, None, None, kinds, words]
