"""Compared plans as a page of its own, without scripts and without anything from elsewhere: both trees side by side."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from pgversus.language import spoken, tell
from pgversus.plans.sentences.telling import headline, sentences
from pgversus.report.plans.compared import NOTHING_COMPARED, ComparedPlans, PlansAnswer
from pgversus.report.plans.text import times
from pgversus.report.plans.tree import TreeNode, tree
from pgversus.report.plans.undoing import undoing
from pgversus.report.visible import visible


def plans_html(answer: PlansAnswer) -> str:
    """The page; texts of users are escaped. Nodes that are in no other plan, or changed, are marked."""
    environment = Environment(
        loader=PackageLoader("pgversus.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["visible"] = visible
    page = environment.get_template("plans.html")
    return page.render(
        language=spoken().value,
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
        "sides": [{"label": label, "nodes": _marked(one, side)} for side, label in enumerate(one.labels)],
    }


def _marked(one: ComparedPlans, side: int) -> list[tuple[TreeNode, bool]]:
    """Each node with whether a change is about it."""
    changed = {change.places[side] for change in one.difference.changes}
    return [(node, place in changed) for place, node in enumerate(tree(one.plans[side]))]
