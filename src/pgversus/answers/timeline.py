"""Changes from each version of a timeline to the next."""

from dataclasses import dataclass

from pgversus.answers.answer import Answer
from pgversus.answers.plans import ComparedPlans
from pgversus.plans.difference import PlanDifference, difference
from pgversus.records.plans import StatementName


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """The plan of one statement on two consecutive arms."""

    statement: StatementName
    difference: PlanDifference
    since: str
    """Label of the last arm before this one on which the statement has a plan."""

    @property
    def has_changed(self) -> bool:
        """Whether the plan is different, or is executed differently."""
        return not self.difference.is_executed_alike


def plan_steps(answer: Answer) -> list[list[PlanStep]]:
    """Return for each contender how its plans differ from those of the arm before it; empty lists without plans."""
    plans, before = answer.plans(), dict[StatementName, ComparedPlans]()
    found = []
    for arm in answer.comparison.contenders:
        own = {} if plans is None else {one.statement: one for one in plans.of(arm.label)}
        found.append([_step(one, before.get(name)) for name, one in own.items()])
        # A statement may fail on some versions.
        before |= own
    return found


def _step(now: ComparedPlans, before: ComparedPlans | None) -> PlanStep:
    """Return the step to a plan. before: of an earlier contender; None if that is the baseline."""
    if before is None:
        return PlanStep(statement=now.statement, difference=now.difference, since=now.labels[0])
    own = difference(before.plans[1], now.plans[1], parameters=now.parameters)
    return PlanStep(statement=now.statement, difference=own, since=before.labels[1])
