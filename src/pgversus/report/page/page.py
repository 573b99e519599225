"""The whole page: the answer, its reliability, the explanation, and everything needed to verify or reproduce it."""

from collections.abc import Sequence
from typing import Any

from pgversus.answers.answer import StudyAnswer
from pgversus.report.arm_tables import HEADS as VALUE_HEADS
from pgversus.report.arm_tables import TIME_HEADS, arm_value_rows, size_tables, time_rows
from pgversus.report.charts.export import MOST_CONTEXTS, study_charts
from pgversus.report.charts.theme import config
from pgversus.report.html import drawing_library, inlined, rendered_page, template_text
from pgversus.report.methodology import method_lines
from pgversus.report.overview import MOST_ROWS, RankedVerdict, not_measured, overview_sentences, worst_first
from pgversus.report.page.environment import environment, hashes, method, scripts
from pgversus.report.page.trust import trust
from pgversus.report.page.verdicts import answer_lines, study_badge, verdict_lines
from pgversus.report.page.why import why_parts
from pgversus.report.published import agreement_text, published_cells, published_ratios
from pgversus.report.sentences import interval_heading, metric_text
from pgversus.report.study_answer import answer_tables, joint_sentences
from pgversus.report.sweeps import plateau_sentences
from pgversus.report.values import unreported_metrics
from pgversus.text.translation import _, listed, together


def page_html(answer: StudyAnswer) -> str:
    """Return a self-contained page in the current language; user texts are escaped."""
    placed = worst_first(answer)
    return rendered_page(
        "report.html",
        (drawing_library(), inlined(template_text("report.js"))),
        title=answer.study.title or _pair(answer),
        question=answer.study.question,
        chart_config=config(),
        confidence=interval_heading(),
        **_answer_parts(answer, placed),
        **_other_parts(answer, placed),
    )


def _answer_parts(answer: StudyAnswer, placed: Sequence[RankedVerdict]) -> dict[str, Any]:
    """Return the template values about verdicts."""
    tables = answer_tables(answer, MOST_ROWS)
    # The verdicts of a screening are not the answer.
    sentences, more = ([], 0) if tables else answer_lines(answer, placed)
    lines = verdict_lines(placed)
    metrics = dict.fromkeys(one.analysis.metric for one in answer.answers)
    found = trust(answer, placed)
    return {
        "light_of_all": study_badge(answer),
        "answer": together(*joint_sentences(answer)) if tables or len(placed) != 1 else "",
        "tables": tables,
        "sentences": sentences,
        "more_sentences": more,
        "overview": together(*overview_sentences(answer)),
        "not_measured": [*not_measured(answer), *(unreported_metrics(answer) if len(placed) <= MOST_ROWS else [])],
        "verdicts": lines,
        "more_verdicts": len(placed) - len(lines),
        "pairs": list(dict.fromkeys((line.row.contender, line.row.baseline) for line in lines)),
        "margins": list(dict.fromkeys(line.margin for line in lines)),
        "has_places": any(one.context.label for one in answer.answers),
        "more_is_better": all(metric.more_is_better for metric in metrics),
        "less_is_better": not any(metric.more_is_better for metric in metrics),
        "metrics": listed(map(metric_text, metrics)),
        "charts": study_charts(answer),
        "more_contexts": max(0, len(answer.answers) - MOST_CONTEXTS),
        "trust": found,
        "more_noise": len(placed) - len(found.noise),
        "plateaus": plateau_sentences(answer),
    }


def _other_parts(answer: StudyAnswer, placed: Sequence[RankedVerdict]) -> dict[str, Any]:
    """Return all other template values."""
    why, more = why_parts(answer, placed)
    published = published_ratios(answer)[:MOST_ROWS] if answer.study.published else []
    is_readable = sum(len(one.comparison.arms) for one in answer.answers) <= MOST_ROWS
    return {
        "why": why,
        "more_why": more,
        "environment": environment(answer),
        "sizes": size_tables(answer.answers) if is_readable else [],
        "method": method(answer),
        "invocation": answer.invocation,
        "seed": answer.study.seed,
        "small_print": method_lines(answer),
        "hashes": hashes(answer),
        "scripts": scripts(answer),
        "published_rows": [
            (*cells, agreement_text(row)) for row, cells in zip(published, published_cells(published), strict=True)
        ],
        "value_heads": [_(head) for head in VALUE_HEADS],
        "arm_value_rows": arm_value_rows(answer) if is_readable else [],
        "time_heads": [_(head) for head in TIME_HEADS],
        "time_rows": time_rows(answer) if is_readable else [],
    }


def _pair(answer: StudyAnswer) -> str:
    """Return the title of a comparison of the command line."""
    if not answer.answers:
        return "pgversus"
    baseline, *contenders = (arm.label for arm in answer.answers[0].comparison.arms)
    return _("{contenders} vs {baseline}", contenders=listed(contenders), baseline=baseline)
