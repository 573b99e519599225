"""Explanations: changed plans side by side, counters that differ, and what is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.answers.plans import ComparedPlans
from pgversus.plans.levels import PlanLevel
from pgversus.report.overview import RankedVerdict
from pgversus.report.plans import PlanRow, plan_rows
from pgversus.report.values import QuantityRow, quantity_rows
from pgversus.report.why import Explanation, why_of

_MOST_CONTEXTS = 60
_MOST_STATEMENTS = 10
_MOST_NODES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPair:
    """A changed plan next to the baseline's."""

    statement: str
    labels: tuple[str, str]
    headline: str
    sentences: list[str]
    rows: list[PlanRow]
    """Empty for a plan with too many nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContenderExplanation:
    """The explanation for one contender in one context."""

    place: str
    contender: str
    baseline: str
    why: Explanation | None
    plans: list[PlanPair]
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
    parts = []
    for result in one.analysis.results:
        label = one.comparison.arms[result.contender].label
        why = reasons.get(label)
        parts.append(
            ContenderExplanation(
                place=one.context.label,
                contender=label,
                baseline=one.comparison.baseline.label,
                why=why,
                plans=_pairs(one, label, why) if why else [],
                counters=quantity_rows(one, result, metrics),
            )
        )
    return parts


def _pairs(one: Answer, contender: str, why: Explanation) -> list[PlanPair]:
    plans = one.plans()
    compared = () if plans is None else plans.of(contender)
    changed = [each for each in compared if each.difference.level not in (PlanLevel.WORK, PlanLevel.IDENTICAL)]
    return [
        PlanPair(
            statement=shown.statement,
            labels=each.labels,
            headline=shown.headline,
            sentences=shown.sentences,
            rows=_rows(each),
        )
        for each, shown in list(zip(changed, why.changed, strict=True))[:_MOST_STATEMENTS]
    ]


def _rows(one: ComparedPlans) -> list[PlanRow]:
    return plan_rows(one) if max(len(plan.nodes) for plan in one.plans) <= _MOST_NODES else []
