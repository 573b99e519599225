"""Explanations: changed plans side by side, counters that differ, and unknown effects."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.answers.plans import ComparedPlans
from pgversus.report.overview import RankedVerdict
from pgversus.report.plans import PlanRow, plan_rows
from pgversus.report.values import QuantityRow, quantity_rows, uses_factors
from pgversus.report.why import ChangedPlan, Explanation, why_of

_MOST_CONTEXTS = 60
_MOST_STATEMENTS = 10
_MOST_NODES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderExplanation:
    """The explanation for one contender in one context."""

    place: str
    contender: str
    baseline: str
    why: Explanation | None
    plans: list[tuple[ChangedPlan, list[PlanRow]]]
    """Changed plans with the rows of both; no rows if a plan has too many nodes."""
    counters: list[QuantityRow]


def why_parts(answer: StudyAnswer, placed: Sequence[RankedVerdict]) -> tuple[list[ContenderExplanation], int]:
    """Return an explanation for each verdict with plans or counters, by context, and the number of omitted contexts.

    placed: the verdicts in order of importance, which determines the order of contexts.
    """
    contexts = list({one.answer.context.number: one.answer for one in placed}.values())
    parts = (part for one in contexts[:_MOST_CONTEXTS] for part in _parts(one, answer.study.metrics))
    return [part for part in parts if part.why or part.counters], max(0, len(contexts) - _MOST_CONTEXTS)


def _parts(one: Answer, metrics: tuple[str, ...]) -> list[ContenderExplanation]:
    reasons = {why.contender: why for why in why_of(one)}
    parts, as_factors = [], uses_factors([one])
    for result in one.analysis.results:
        label = one.comparison.arms[result.contender].label
        why = reasons.get(label)
        parts.append(
            ContenderExplanation(
                place=one.context.label,
                contender=label,
                baseline=one.comparison.baseline.label,
                why=why,
                plans=[(changed, _rows(changed.compared)) for changed in why.changed[:_MOST_STATEMENTS]] if why else [],
                counters=quantity_rows(one, result, metrics, as_factors=as_factors),
            )
        )
    return parts


def _rows(one: ComparedPlans) -> list[PlanRow]:
    return plan_rows(one) if max(len(plan.nodes) for plan in one.plans) <= _MOST_NODES else []
