"""Plans that were compared, and the JSON document of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgversus.plans.difference import PlanDifference
from pgversus.plans.levels import Level
from pgversus.plans.plan import Plan
from pgversus.plans.sentences.telling import Language, headline, sentences

SCHEMA = "pgversus.plans/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """The plans of one statement on two arms."""

    statement: str
    """Its text, or which one it is where that is not known."""
    labels: tuple[str, str]
    """Of the baseline and of the contender."""
    plans: tuple[Plan, Plan]
    difference: PlanDifference


def plans_document(compared: Sequence[ComparedPlans], language: Language) -> dict[str, Any]:
    """Every comparison as plain lists, dicts and numbers; times in seconds."""
    return {"schema": SCHEMA, "comparisons": [_comparison(one, language) for one in compared]}


def _comparison(one: ComparedPlans, language: Language) -> dict[str, Any]:
    found = one.difference
    return {
        "statement": one.statement,
        "baseline": one.labels[0],
        "contender": one.labels[1],
        "level": found.level.value,
        "same_plan": found.is_same_plan,
        "headline": headline(found.level, language),
        "sentences": sentences(found, language),
        "changes": [
            {"kind": change.kind.value, "node": change.node, "name": change.name, "was": change.was, "now": change.now}
            for change in found.changes
        ],
        "fingerprints": {
            name: asdict(prints) for name, prints in zip(("baseline", "contender"), found.fingerprints, strict=True)
        },
        "time": None if found.time is None else asdict(found.time),
        "execution_s": [plan.execution_s for plan in one.plans],
        "settings": [dict(plan.settings) for plan in one.plans],
    }


def counted(compared: Sequence[ComparedPlans]) -> dict[Level, int]:
    """How many comparisons there are of each level, those that differ most first; none of a level is left out."""
    counts = {level: sum(one.difference.level is level for one in compared) for level in Level}
    return {level: count for level, count in counts.items() if count}
