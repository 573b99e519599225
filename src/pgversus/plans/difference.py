"""The difference of two plans of one statement: its level, the changes, and the change in time."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.plans.alignment import PlanNames, names_in_common, renamed
from pgversus.plans.amounts import amount_changes, spill_sizes
from pgversus.plans.changes import (
    Change,
    ChangeKind,
    condition_changes,
    fact_changes,
    generic_changes,
)
from pgversus.plans.levels import (
    ComparablePlan,
    Fingerprints,
    PlanLevel,
    comparable,
    fingerprints,
    in_common_form,
    own_logic,
    prints_tests,
)
from pgversus.plans.matching import NodeMatching, match
from pgversus.plans.operators import operator_changes
from pgversus.plans.own_work import own
from pgversus.plans.plan import Plan

_UPPER = 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChange:
    """The increase in the time of some nodes, in seconds of EXPLAIN's instrumentation; negative if they are faster."""

    seconds: float
    error_s: float | None
    """Half the width of the 95 % interval from several executions of both plans; None if one was executed once."""

    @property
    def is_noise(self) -> bool:
        """Whether the change is within the spread of the executions."""
        return self.error_s is not None and abs(self.seconds) <= self.error_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSplit:
    """The increase in execution time, in three parts."""

    changed: TimeChange
    """Nodes in only one plan, and nodes whose operators, conditions, keys or execution differ."""
    unchanged: TimeChange
    unexplained: TimeChange
    """Outside all nodes: start and end, triggers, timing overhead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDifference:
    """The difference between two plans."""

    level: PlanLevel
    changes: tuple[Change, ...]
    """Changes of operators come first, amounts of work last."""
    fingerprints: tuple[Fingerprints, Fingerprints]
    time: TimeSplit | None
    """None if one of the plans was not executed."""
    contender: Plan
    """The contender's plan with the baseline's names of subplans and repeated reads, as in the changes."""
    hides_tests: bool = False
    """Whether only one of the plans prints the tests of subplans, which are then not compared."""
    pairs: tuple[tuple[int, int], ...] = ()
    """Positions of nodes in both plans, in the order of the baseline's plan."""

    @property
    def is_same_plan(self) -> bool:
        """Whether the planner chose the same plan; its execution may differ."""
        return self.level not in (PlanLevel.OPERATORS, PlanLevel.CONDITIONS)

    @property
    def is_executed_alike(self) -> bool:
        """Whether the plan is the same and is executed in the same way; amounts of work may differ."""
        return self.level in (PlanLevel.WORK, PlanLevel.IDENTICAL)


def difference(baseline: Plan, contender: Plan, *, parameters: int = 0) -> PlanDifference:
    """Return the difference from baseline to contender, for plans of one statement on the same data.

    parameters: number of parameters of a prepared statement.
    """
    given = baseline, contender
    baseline, contender = in_common_form(baseline, contender, parameters)
    one, other = comparable(baseline), comparable(contender)
    found = fingerprints(given[0], one), fingerprints(given[1], other)
    names, is_same_shape = _names_and_shape(one, other)
    if not names.are_old:
        contender = renamed(contender, names)
        other = comparable(contender)
    matching = _in_order(baseline) if is_same_shape else match(baseline, contender)
    operators = [] if is_same_shape else list(operator_changes(baseline, contender, matching))
    conditions = [
        *generic_changes(baseline, contender, parameters),
        *condition_changes(baseline, contender, matching),
    ]
    facts = list(fact_changes(one, other, matching))
    amounts = [*spill_sizes(one, other, matching), *amount_changes(baseline, contender, matching)]
    if not is_same_shape:
        level = PlanLevel.OPERATORS
    elif one.logics != other.logics:
        level = PlanLevel.CONDITIONS
    else:
        level = PlanLevel.BEHAVIOUR if facts else PlanLevel.WORK if amounts else PlanLevel.IDENTICAL
    return PlanDifference(
        level=level,
        changes=(*operators, *conditions, *facts, *amounts),
        fingerprints=found,
        contender=renamed(given[1], names),
        time=_time(one, other, matching),
        hides_tests=prints_tests(given[0]) != prints_tests(given[1]),
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


def _names_and_shape(one: ComparablePlan, other: ComparablePlan) -> tuple[PlanNames, bool]:
    """Return the contender's names from the baseline, and whether both have the same operators on the same reads."""
    is_same_shape = one.shapes == other.shapes
    if is_same_shape and not any(node.repeated_name for plan in (one.plan, other.plan) for node in plan.nodes):
        return PlanNames(), True
    matching = match(one.plan, other.plan)
    # Which of several reads of a table is which, only their conditions show.
    reads = ((place, there) for place, there in matching.pairs if one.plan.nodes[place].relation is not None)
    is_same_shape = is_same_shape and all(place == there for place, there in reads)
    return names_in_common(one.plan, other.plan, matching), is_same_shape


def _time(one: ComparablePlan, other: ComparablePlan, matching: NodeMatching) -> TimeSplit | None:
    if not (_has_times(one.plan) and _has_times(other.plan)):
        return None
    unchanged = [pair for pair in matching.pairs if _is_unchanged(one, other, *pair)]
    mine = _parts_of_runs(one, {place for place, _ in unchanged})
    theirs = _parts_of_runs(other, {there for _, there in unchanged})
    rounding_s = _rounding_s(one.plan, {place for place, _ in unchanged})
    rounding_s += _rounding_s(other.plan, {there for _, there in unchanged})
    changed, same, rest = (
        _change(was, now, error_s)
        for was, now, error_s in zip(mine, theirs, (rounding_s, rounding_s, 0.0), strict=True)
    )
    return TimeSplit(changed=changed, unchanged=same, unexplained=rest)


def _rounding_s(plan: Plan, unchanged: set[int]) -> float:
    """Return the largest error that rounding of times adds to one part of a plan and takes from the other, in seconds.

    Only the time of a node whose parent belongs to the other part is subtracted from that part.
    """
    return sum(
        node.measured.rounding_of_time_s
        for place, node in enumerate(plan.nodes)
        if node.parent is not None and (place in unchanged) is not (node.parent in unchanged)
    )


def _has_times(plan: Plan) -> bool:
    """Return whether the plan was executed, and the time of its nodes measured (not with TIMING OFF)."""
    return plan.is_measured and any(node.measured.time_s is not None for node in plan.nodes)


def _parts_of_runs(one: ComparablePlan, unchanged: set[int]) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds of changed nodes, unchanged nodes, and outside all nodes, for each execution."""
    parts: tuple[list[float], list[float], list[float]] = ([], [], [])
    runs = [(one.plan, one.own), *((run, own(run)) for run in one.plan.reruns)]
    for run, works in runs:
        if [(node.op, node.depth) for node in run.nodes] != [(node.op, node.depth) for node in one.plan.nodes]:
            # Planned differently this time.
            continue
        seconds = [work.time_s or 0.0 for work in works]
        same = sum(seconds[place] for place in unchanged)
        together = sum(seconds)
        for part, value in zip(parts, (together - same, same, _whole(run) - together), strict=True):
            part.append(value)
    return parts


def _change(was: Sequence[float], now: Sequence[float], rounding_s: float) -> TimeChange:
    """Return the change from one sample of times to another. rounding_s: the largest error that all of them share."""
    error_s = None
    if len(was) > 1 and len(now) > 1:
        from scipy.special import stdtrit  # noqa: PLC0415 - the import takes 0.3 s, which `--help` does not need

        # Welch and Satterthwaite: the spreads of the two arms may differ.
        parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in (was, now)]
        variance = sum(part for part, _ in parts)
        freedom = variance**2 / sum(part**2 / number for part, number in parts) if variance else 1.0
        error_s = float(stdtrit(freedom, _UPPER)) * math.sqrt(variance) + rounding_s
    return TimeChange(seconds=statistics.fmean(now) - statistics.fmean(was), error_s=error_s)


def _is_unchanged(one: ComparablePlan, other: ComparablePlan, place: int, there: int) -> bool:
    was, now = one.plan.nodes[place], other.plan.nodes[there]
    if was.scope != now.scope or own_logic(was) != own_logic(now):
        return False
    mine, theirs = one.facts[place], other.facts[there]
    return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


def _whole(plan: Plan) -> float:
    """Return the execution time without serialization, which majors up to 16 cannot measure, in seconds."""
    if plan.execution_s is not None:
        return plan.execution_s - (plan.serialization_s or 0.0)
    return plan.root.measured.time_s or 0.0
