"""Plans that were compared, and the JSON document of them."""

from dataclasses import asdict, dataclass
from typing import Any

from pgversus.plans.difference import PlanDifference
from pgversus.plans.plan import Plan
from pgversus.plans.sentences import headline, sentences
from pgversus.records.plans import ButFor, Undoing
from pgversus.text.translation import Language, later, listed, speaking, tell

SCHEMA = "pgversus.plans/1"
NOTHING_COMPARED = later("no statement has a plan")
"""To be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """The plans of one statement on two arms."""

    statement: str
    """Its text, or which one it is where that is not known."""
    labels: tuple[str, str]
    """Of the baseline and of the contender."""
    plans: tuple[Plan, Plan]
    difference: PlanDifference
    same_rows: bool | None = None
    """Whether both returned the same rows, in whatever order; None where nobody looked, or nothing is returned."""
    undone_by: Undoing | None = None
    """Settings with which the contender plans it, or runs it, as the baseline does."""
    is_searched: bool = False
    """Whether such settings were looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikeStatistics:
    """Tables of which ANALYZE has found other things on two arms: by sampling, or by another target."""

    labels: tuple[str, str]
    tables: tuple[str, ...]

    @property
    def words(self) -> str:
        """What follows from it."""
        return tell(
            "statistics of {tables} differ between {baseline} and {contender}: a plan may differ by chance alone "
            "(--full-statistics makes them equal)",
            tables=listed(self.tables),
            baseline=self.labels[0],
            contender=self.labels[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansAnswer:
    """All that was compared."""

    compared: tuple[ComparedPlans, ...]
    unlike: tuple[UnlikeStatistics, ...] = ()

    def of(self, contender: str) -> tuple[ComparedPlans, ...]:
        """Those of one contender, by its label."""
        return tuple(one for one in self.compared if one.labels[1] == contender)

    @property
    def warnings(self) -> list[str]:
        """What has to be known before any plan is looked at."""
        rows = [
            tell(
                "{contender} returns other rows than {baseline}: {statement}",
                contender=one.labels[1],
                baseline=one.labels[0],
                statement=one.statement,
            )
            for one in self.compared
            if one.same_rows is False
        ]
        return rows + [one.words for one in self.unlike]


def plans_document(answer: PlansAnswer) -> dict[str, Any]:
    """Every comparison as plain lists, dicts and numbers; times in seconds, sentences in English."""
    with speaking(Language.ENGLISH):
        return {
            "schema": SCHEMA,
            "comparisons": [_comparison(one) for one in answer.compared],
            "warnings": answer.warnings,
            "unlike_statistics": [asdict(one) for one in answer.unlike],
        }


def _comparison(one: ComparedPlans) -> dict[str, Any]:
    found = one.difference
    return {
        "statement": one.statement,
        "baseline": one.labels[0],
        "contender": one.labels[1],
        "level": found.level.value,
        "same_plan": found.is_same_plan,
        "same_rows": one.same_rows,
        "headline": headline(found.level),
        "sentences": sentences(found),
        "undone_by": None
        if one.undone_by is None
        else {
            "why": one.undone_by.candidate.why.value,
            "settings": dict(one.undone_by.candidate.settings),
            "but_for_sorts": one.undone_by.but_for is ButFor.SORTS,
            "but_for": one.undone_by.but_for,
        },
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
