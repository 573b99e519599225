"""The plans of both arms, to be unfolded: which way each server goes."""

from collections.abc import Iterator

from pgversus.plans.sentences import headline, sentences
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.article.fences import fenced, folded
from pgversus.report.markdown import escaped, paragraph
from pgversus.report.plans.compared import ComparedPlans
from pgversus.report.plans.tree import plan_lines
from pgversus.report.plans.undoing import undoing
from pgversus.report.why import why_of
from pgversus.text.translation import tell, together

_MOST_CONTEXTS = 50


def explained(answer: StudyAnswer) -> Iterator[str]:
    """What is known of why, and the plan of each statement on both sides, of every context."""
    with_plans = [one for one in answer.answers if one.plans() is not None]
    for one in with_plans[:_MOST_CONTEXTS]:
        yield from _context(one)
    rest = len(with_plans) - _MOST_CONTEXTS
    if rest > 0:
        yield paragraph(tell("The plans of {number} more contexts are left out.", number=rest))


def _context(one: Answer) -> Iterator[str]:
    place = one.context.label or one.comparison.workload.name
    yield f"### {escaped(place)}"
    for why in why_of(one):
        yield paragraph(together(why.claim, *why.notes))
    plans = one.plans()
    assert plans is not None  # noqa: S101 - asked of contexts with plans
    shown: set[tuple[str, str]] = set()
    for found in plans.compared:
        yield from _statement(found, shown)


def _statement(found: ComparedPlans, shown: set[tuple[str, str]]) -> Iterator[str]:
    """shown: statements and labels whose plans stand there already, to which these are added."""
    level = headline(found.difference.level)
    told = [*sentences(found.difference), *filter(None, [undoing(found)])]
    yield paragraph(
        tell(
            "{statement}: {level} ({contender} against {baseline})",
            statement=found.statement,
            level=level,
            contender=found.labels[1],
            baseline=found.labels[0],
        )
    )
    if told:
        yield "\n".join(f"- {paragraph(text)}" for text in told)
    for label, plan in zip(found.labels, found.plans, strict=True):
        if (found.statement, label) in shown:
            continue
        shown.add((found.statement, label))
        yield folded(tell("EXPLAIN ANALYZE on {server}", server=label), fenced("\n".join(plan_lines(plan))))
