"""What a report of a study for people holds, in the order of the page, and no longer than can be read."""

from dataclasses import dataclass

from pgversus.report.answer import StudyAnswer
from pgversus.report.methodology import study_lines
from pgversus.report.overview import (
    MOST_ROWS,
    VerdictRow,
    not_measured,
    overview_sentences,
    shared_caveats,
    verdict_rows,
)
from pgversus.report.published import PublishedRatio, published_ratios
from pgversus.report.sentences import answer_sentences
from pgversus.report.sweeps import HeatMap, heat_maps
from pgversus.report.values import (
    LevelRow,
    PlacedQuantityRow,
    SizeTable,
    TimeRow,
    TpsTable,
    level_rows,
    size_tables,
    study_quantity_rows,
    time_rows,
    tps_table,
    untold,
)
from pgversus.report.why import Explanation, study_why
from pgversus.text.translation import _

_MOST_MAPPED = 1000
"""Verdicts; a map holds twelve in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPage:
    """Rows and sentences; a renderer gives them their form."""

    title: str
    question: str
    verdicts: list[VerdictRow]
    heat_maps: list[HeatMap]
    """Empty where there are too many verdicts, or too few factors."""
    published: list[PublishedRatio] | None
    """None where nobody asked for them."""
    levels: list[LevelRow]
    """Empty where there are too many arms to be read."""
    tps: TpsTable | None
    """None where there are too many, or nothing would stand beside anything."""
    sizes: list[SizeTable]
    """Of tables and indexes; empty where builds make no difference, or there are too many arms to be read."""
    times: list[TimeRow]
    """Of operations; empty where there are too many arms to be read."""
    quantities: list[PlacedQuantityRow]
    """Empty where there are too many verdicts."""
    why: list[Explanation]
    """What plans and counters tell; empty where there are too many verdicts."""
    sentences: list[str]
    not_measured: list[str]
    """Contexts and treatments, and quantities that the study names and nobody told."""
    caveats: list[str]
    small_print: list[str]
    results: str


def study_page(answer: StudyAnswer, *, with_published: bool) -> StudyPage:
    """Everything that is shown of a study. with_published: the published figures beside the measured ones."""
    verdicts = sum(len(one.analysis.results) for one in answer.answers)
    arms = sum(len(one.comparison.arms) for one in answer.answers)
    shown = verdict_rows(answer, MOST_ROWS)
    is_single = len(answer.answers) == 1
    rest = _(
        "{shown} of {verdicts} verdicts are shown. See pgversus report --format csv for all of them.",
        shown=len(shown),
        verdicts=verdicts,
    )
    return StudyPage(
        title=answer.study.title,
        question=answer.study.question,
        verdicts=shown,
        heat_maps=heat_maps(answer) if verdicts <= _MOST_MAPPED else [],
        published=published_ratios(answer)[:MOST_ROWS] if with_published else None,
        levels=level_rows(answer) if arms <= MOST_ROWS else [],
        tps=tps_table(answer) if arms <= MOST_ROWS else None,
        sizes=size_tables(answer.answers) if arms <= MOST_ROWS else [],
        times=time_rows(answer) if arms <= MOST_ROWS else [],
        quantities=study_quantity_rows(answer)[:MOST_ROWS] if verdicts <= MOST_ROWS else [],
        why=study_why(answer)[:MOST_ROWS] if verdicts <= MOST_ROWS else [],
        sentences=[
            *(answer_sentences(answer.answers[0]) if is_single else []),
            *([rest] if len(shown) < verdicts else []),
            *overview_sentences(answer),
        ],
        not_measured=[*not_measured(answer), *(untold(answer) if verdicts <= MOST_ROWS else [])],
        caveats=shared_caveats(answer),
        small_print=study_lines(answer),
        results=answer.results,
    )
