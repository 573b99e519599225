"""Compared plans as a page of its own, without scripts and without anything from elsewhere: both trees side by side."""

from pgversus.plans.sentences import headline, sentences
from pgversus.report.html import rendered_page
from pgversus.report.plans.compared import NOTHING_COMPARED, ComparedPlans, PlansAnswer
from pgversus.report.plans.side_by_side import plan_rows
from pgversus.report.plans.text import times
from pgversus.report.plans.undoing import undoing
from pgversus.text.translation import tell


def plans_html(answer: PlansAnswer) -> str:
    """The page; texts of users are escaped. Nodes that are in no other plan, or changed, are marked."""
    return rendered_page(
        "plans.html",
        title=tell("Compared plans"),
        warnings=answer.warnings,
        nothing_compared=tell(NOTHING_COMPARED),
        comparisons=[_comparison(one) for one in answer.compared],
    )


def _comparison(one: ComparedPlans) -> dict[str, object]:
    return {
        "statement": one.statement,
        "labels": one.labels,
        "level": one.difference.level.value,
        "headline": headline(one.difference.level),
        "sentences": sentences(one.difference),
        "undoing": undoing(one),
        "times": times(one) if one.difference.time is not None else "",
        "rows": plan_rows(one),
    }
