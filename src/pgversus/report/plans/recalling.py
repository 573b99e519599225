"""What brings the baseline's plans back on a contender: settings that were found, or a rewrite that the study names."""

from collections.abc import Sequence

from pgversus.plans.levels import Level
from pgversus.report.plans.compared import ComparedPlans
from pgversus.study.counterfactual import Recall, settings_together
from pgversus.study.workload import PgbenchWorkload


def changed_plans(compared: Sequence[ComparedPlans]) -> list[ComparedPlans]:
    """Statements that are planned otherwise; where none is, those that go another way."""
    changed = [one for one in compared if not one.difference.is_same_plan]
    return changed or [one for one in compared if one.difference.level is Level.BEHAVIOUR]


def recall_of(compared: Sequence[ComparedPlans], workload: PgbenchWorkload) -> Recall | None:
    """What brings all changed plans of a contender back; None where nothing has changed, or no way back is known."""
    changed = changed_plans(compared)
    if not changed:
        return None
    if workload.rewrite is not None:
        return Recall(rewrite=workload.rewrite)
    found = {
        number: one.undone_by.candidate.settings for number, one in enumerate(changed) if one.undone_by is not None
    }
    settings = settings_together(found) if len(found) == len(changed) else None
    return None if settings is None else Recall(settings=settings)
