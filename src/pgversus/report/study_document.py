"""The JSON document of a study: its verdicts in one list, then every context in the form of a single comparison."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pgversus.report.answer import StudyAnswer
from pgversus.report.document import document, verdict_documents
from pgversus.report.overview import overview_sentences
from pgversus.report.published import PublishedRatio, published_ratios
from pgversus.text.translation import Language, speaking

SCHEMA = "pgversus.study/1"


def study_document(answer: StudyAnswer) -> dict[str, Any]:
    """The whole study as plain lists, dicts and numbers, in base units; None where there is no number.

    Of `verdicts` and `contexts` there may be thousands: they are iterators, which make each when it is asked for.
    Sentences are in English.
    """
    with speaking(Language.ENGLISH):
        sentences = overview_sentences(answer)
    return {
        "schema": SCHEMA,
        "study": answer.study.name,
        "title": answer.study.title,
        "question": answer.study.question,
        "answer": sentences,
        "verdicts": _verdicts(answer),
        "verdicts_sharing_the_error": answer.study.verdicts,
        "not_measured": [
            {"context": one.context.label, "failed": one.failed, "words": one.words} for one in answer.unanswered
        ],
        "contexts": _contexts(answer),
        "left_out": [asdict(one) for one in answer.study.skipped],
        "published": [_published(row) for row in published_ratios(answer)],
        "stopped": answer.stopped.value,
        "seed": answer.study.seed,
        "results": answer.results,
    }


def _published(row: PublishedRatio) -> dict[str, Any]:
    measured = row.measured
    return {
        "context": row.context,
        "contender": row.contender,
        "published_ratio": row.published,
        "published_at": row.at or None,
        "ratio": measured.value if measured else None,
        "low": measured.low if measured else None,
        "high": measured.high if measured else None,
        "replication": row.replication.value,
    }


def _verdicts(answer: StudyAnswer) -> Iterator[dict[str, Any]]:
    for one in answer.answers:
        for verdict in verdict_documents(one):
            yield {"context": one.context.label, **verdict}


def _contexts(answer: StudyAnswer) -> Iterator[dict[str, Any]]:
    for one in answer.answers:
        yield {"context": one.context.label, "levels": dict(one.context.levels), **document(one)}
