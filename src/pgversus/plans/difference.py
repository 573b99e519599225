"""The difference of two plans of one statement: its level, the changes, and the change in time."""

from dataclasses import dataclass

from pgversus.plans.changes import Change, ChangeKind, amount_changes, condition_changes, fact_changes, operator_changes
from pgversus.plans.levels import ComparablePlan, Fingerprints, PlanLevel, comparable, without_place
from pgversus.plans.matching import NodeMatching, match
from pgversus.plans.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSplit:
    """The increase in time of nodes, in seconds of EXPLAIN's instrumentation; negative if they became faster."""

    changed_s: float
    """Nodes in only one plan, or with different operators, conditions or keys."""
    unchanged_s: float
    unexplained_s: float
    """Execution time outside all nodes: start and end, triggers, timing overhead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """The difference between two plans."""

    level: PlanLevel
    changes: tuple[Change, ...]
    """Changes of operators come first, amounts of work last."""
    fingerprints: tuple[Fingerprints, Fingerprints]
    time: TimeSplit | None
    """None if one of the plans was not executed."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Positions of nodes in both plans, in the order of the baseline's plan."""

    @property
    def is_same_plan(self) -> bool:
        """Whether the planner chose the same plan; its execution may differ."""
        return self.level not in (PlanLevel.OPERATORS, PlanLevel.CONDITIONS)


def difference(baseline: Plan, contender: Plan) -> PlanDifference:
    """Return the difference from baseline to contender, for plans of one statement on the same data."""
    one, other = comparable(baseline), comparable(contender)
    is_same_shape = one.shapes == other.shapes
    matching = _in_order(baseline) if is_same_shape else match(baseline, contender)
    operators = [] if is_same_shape else list(operator_changes(baseline, contender, matching))
    conditions = list(condition_changes(baseline, contender, matching))
    facts = list(fact_changes(one, other, matching))
    amounts = list(amount_changes(baseline, contender, matching))
    if not is_same_shape:
        level = PlanLevel.OPERATORS
    elif one.logics != other.logics:
        level = PlanLevel.CONDITIONS
    else:
        level = PlanLevel.BEHAVIOUR if facts else PlanLevel.WORK if amounts else PlanLevel.IDENTICAL
    return PlanDifference(
        level=level,
        changes=(*operators, *conditions, *facts, *amounts),
        fingerprints=(one.fingerprints, other.fingerprints),
        time=_time(one, other, matching),
        pairs=matching.pairs,
    )


def has_other_spills(found: PlanDifference) -> bool:
    """Return whether a node in both plans spilled in only one of them."""
    return any(change.kind in (ChangeKind.SPILL_GONE, ChangeKind.SPILL_NEW) for change in found.changes)


def is_same_but_for_batches(found: PlanDifference) -> bool:
    """Return whether the plans are the same and the same nodes spilled, even with different numbers of batches."""
    return found.is_same_plan and not has_other_spills(found)


def _in_order(plan: Plan) -> NodeMatching:
    return NodeMatching(pairs=tuple((place, place) for place in range(len(plan.nodes))), removed=(), added=())


def _time(one: ComparablePlan, other: ComparablePlan, matching: NodeMatching) -> TimeSplit | None:
    if not (one.plan.is_measured and other.plan.is_measured):
        return None
    mine, theirs = ([amounts.time_s or 0.0 for amounts in side.own] for side in (one, other))
    changed_s = sum(theirs[there] for there in matching.added) - sum(mine[place] for place in matching.removed)
    unchanged_s = 0.0
    for place, there in matching.pairs:
        if without_place(one.logics[place]) == without_place(other.logics[there]):
            unchanged_s += theirs[there] - mine[place]
        else:
            changed_s += theirs[there] - mine[place]
    whole_s = _whole(other.plan) - _whole(one.plan)
    return TimeSplit(changed_s=changed_s, unchanged_s=unchanged_s, unexplained_s=whole_s - changed_s - unchanged_s)


def _whole(plan: Plan) -> float:
    """Return the execution time without serialisation, which majors up to 16 cannot measure, in seconds."""
    if plan.execution_s is not None:
        return plan.execution_s - (plan.serialization_s or 0.0)
    return plan.root.measured.time_s or 0.0
