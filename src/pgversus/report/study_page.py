"""Contents of a study's report for people, in page order, limited to a readable length."""

from dataclasses import dataclass
from itertools import islice

from pgversus.answers.answer import StudyAnswer
from pgversus.report.answer_table import AnswerTable
from pgversus.report.arm_tables import SizeTable, TpsTable, arm_value_rows, size_tables, time_rows, tps_table
from pgversus.report.methodology import study_lines
from pgversus.report.overview import (
    MOST_ROWS,
    not_measured,
    overview_sentences,
    shared_caveats,
    verdict_rows,
)
from pgversus.report.published import PublishedRatio, published_ratios
from pgversus.report.study_answer import answer_tables, study_sentences
from pgversus.report.sweeps import HeatMap, heat_maps
from pgversus.report.values import PlacedQuantityRow, study_quantity_rows, unreported_metrics
from pgversus.report.verdicts import VerdictRow
from pgversus.report.why import Explanation, study_why
from pgversus.text.translation import _


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPage:
    """Rows and sentences, which a renderer formats."""

    title: str
    question: str
    tables: list[AnswerTable]
    """The answer of an upgrade check or a timeline, instead of the verdicts."""
    verdicts: list[VerdictRow]
    heat_maps: list[HeatMap]
    """Empty with too many verdicts or too few factors."""
    published: list[PublishedRatio] | None
    """None if not requested."""
    arm_values: list[tuple[str, ...]]
    """Empty with too many arms to be readable."""
    tps: TpsTable | None
    """None with too many arms or a single workload."""
    sizes: list[SizeTable]
    """Sizes of tables and indexes; empty if they do not differ between builds, or with too many arms to be readable."""
    times: list[tuple[str, ...]]
    """Times of operations; empty with too many arms to be readable."""
    quantities: list[PlacedQuantityRow]
    """Empty with too many verdicts."""
    why: list[Explanation]
    """Explanations from plans and counters; empty with too many verdicts."""
    answer: list[str]
    """The answer to the study as a whole, in sentences."""
    overview: list[str]
    """The joint error of all verdicts and the measuring time, in sentences."""
    not_measured: list[str]
    """Contexts, treatments, and quantities that the study names but that were not reported."""
    caveats: list[str]
    small_print: list[str]
    results: str


def study_page(answer: StudyAnswer, *, with_published: bool) -> StudyPage:
    """Return the contents of a study's report. with_published: whether to include published figures."""
    verdicts = sum(len(one.analysis.results) for one in answer.answers)
    arms = sum(len(one.comparison.arms) for one in answer.answers)
    shown = verdict_rows(answer, MOST_ROWS)
    rest = _(
        "{shown} of {verdicts} verdicts are shown. See pgversus report --format csv for all of them.",
        shown=len(shown),
        verdicts=verdicts,
    )
    return StudyPage(
        title=answer.study.title,
        question=answer.study.question,
        tables=answer_tables(answer, MOST_ROWS),
        verdicts=shown,
        heat_maps=heat_maps(answer),
        published=published_ratios(answer)[:MOST_ROWS] if with_published else None,
        arm_values=arm_value_rows(answer) if arms <= MOST_ROWS else [],
        tps=tps_table(answer) if arms <= MOST_ROWS else None,
        sizes=size_tables(answer.answers) if arms <= MOST_ROWS else [],
        times=time_rows(answer) if arms <= MOST_ROWS else [],
        quantities=study_quantity_rows(answer)[:MOST_ROWS] if verdicts <= MOST_ROWS else [],
        why=list(islice(study_why(answer), MOST_ROWS)) if verdicts <= MOST_ROWS else [],
        answer=study_sentences(answer),
        overview=[*([rest] if len(shown) < verdicts else []), *overview_sentences(answer)],
        not_measured=[*not_measured(answer), *(unreported_metrics(answer) if verdicts <= MOST_ROWS else [])],
        caveats=shared_caveats(answer),
        small_print=study_lines(answer),
        results=answer.results,
    )
