"""All cases in one table: by EXPLAIN's time where plans were captured, and by the metric that is judged."""

from collections.abc import Iterator, Sequence

from pgversus.report.answer import Answer
from pgversus.report.article.cases import Case, Form
from pgversus.report.article.figures import (
    Published,
    capped,
    of_each_metric,
    published_beside,
    ratio_cells,
    ratio_heads,
)
from pgversus.report.markdown import paragraph
from pgversus.report.plans.compared import ComparedPlans
from pgversus.report.quantities import level_text
from pgversus.study.comparison import BASELINE
from pgversus.text.translation import tell
from pgversus.text.units import latency, significant


def summary(found: Sequence[Case], known: Published) -> Iterator[str]:
    """By EXPLAIN's time first, as such studies have it; nothing where the table of a case says it all."""
    answers = [one for case in found if case.form is not Form.AMOUNTS for one in case.answers]
    explained = [row for one in answers for row in _explained(one)]
    if explained:
        yield paragraph(tell("By EXPLAIN's time:"))
        heads = (tell("case"), tell("baseline"), tell("contender"), tell("baseline time"), tell("contender time"))
        yield capped((*heads, tell("times as fast")), explained, names=3)
        yield paragraph(
            tell(
                "One execution under EXPLAIN ANALYZE each, whose clock slows rows down: no interval can be given, and "
                "nothing is decided by it."
            )
        )
    if len(found) > 1 and answers:
        yield paragraph(tell("As measured, in blocks:"))
        heads = (tell("case"), tell("baseline"), tell("contender"), tell("baseline value"), tell("contender value"))
        published = (tell("published ratio"), tell("replication"))
        for metric, ones in of_each_metric(answers).items():
            measured = [row for one in ones for row in _measured(one, known)]
            yield capped((*heads, *ratio_heads(metric), *published), measured, names=3)


def _explained(one: Answer) -> Iterator[tuple[str, ...]]:
    plans = one.plans()
    if plans is None:
        return
    for arm in one.comparison.contenders:
        compared = [found for found in plans.of(arm.label) if None not in _times(found)]
        for number, found in enumerate(compared, 1):
            old, new = _times(found)
            if old and new:
                name = tell("{case}, statement {number}", case=_called(one), number=number)
                case = name if len(compared) > 1 else _called(one)
                yield case, *found.labels, latency(old), latency(new), significant(old / new)


def _times(found: ComparedPlans) -> tuple[float | None, float | None]:
    baseline, contender = found.plans
    return baseline.execution_s, contender.execution_s


def _measured(one: Answer, known: Published) -> Iterator[tuple[str, ...]]:
    metric, labels = one.analysis.metric, [arm.label for arm in one.comparison.arms]
    for result in one.analysis.results:
        levels = result.levels.get(metric)
        shown = [level_text(metric, value) for value in levels] if levels else ["", ""]
        _, published, replicated = published_beside(known, one, result.contender)
        names = (_called(one), labels[BASELINE], labels[result.contender])
        yield *names, *shown, *ratio_cells(one, result.contender), published, replicated


def _called(one: Answer) -> str:
    return one.context.label or one.comparison.workload.name
