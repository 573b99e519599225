"""The level at which two plans differ, and three fingerprints of a plan: shape, logic and behavior."""

import hashlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pgversus.plans.expressions import bare, without_tables, without_tests, without_values
from pgversus.plans.nodes import REMOTE
from pgversus.plans.own_work import OwnWork, own
from pgversus.plans.plan import INIT_PLAN, Fact, OperatorFamily, Plan, PlanNode

_DIGITS = 16
SPILLED = "Spilled"
"""A derived fact: whether the node itself wrote temporary files."""
_SPILLING = re.compile(
    r"(?:Sort|Hash|Aggregate|Materialize|CTE Scan|Function Scan|ProjectSet|WindowAgg|Recursive Union|WorkTable Scan)$"
    r"|\bHash\b.* Join$"
)
"""Operators with temporary files of their own. Others only call functions that write such files."""
_OF_ONE_PROCESS = (
    *("Sort Method", "Sort Space Type", "HashAgg Batches"),
    *("Full-sort Groups Sort Methods", "Pre-sorted Groups Sort Methods"),
)
# EXPLAIN reports these for the leader of parallel workers, and for the last execution of a node; they depend on which
# rows it happened to process.

_SUBPLAN = "SubPlan "
_NEXT = "\x1f"


class PlanLevel(StrEnum):
    """The first level at which two plans differ; later levels may differ as well."""

    OPERATORS = "operators"
    CONDITIONS = "conditions"
    """The same operators on the same relations, with different conditions or keys."""
    BEHAVIOUR = "behaviour"
    """The same plan with different behavior: spills, sort method, number of batches."""
    WORK = "work"
    """The same plan and behavior, with different numbers of rows, loops, or blocks."""
    IDENTICAL = "identical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """The fingerprints of a plan: leading digits of SHA-256 over its normalized form, comparable across majors."""

    shape: str
    """Operators, join types, relations, indexes, and their order."""
    logic: str
    """The shape with conditions and keys, but without the tests of subplans, which majors up to 16 do not print."""
    behaviour: str | None
    """The logic with behavior; None for a plan that was not executed. It depends on the facts that a major reports, so
    plans are compared by single facts instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparablePlan:
    """A plan with precomputed data for comparison, in the order of its nodes."""

    plan: Plan
    shapes: Sequence[str]
    """The identity and position of each node."""
    logics: Sequence[str]
    """The shapes with conditions and keys."""
    own: Sequence[OwnWork]
    facts: Sequence[Mapping[str, Fact]]
    """The facts of each node, including whether it spilled, if reported."""


def comparable(plan: Plan) -> ComparablePlan:
    """Prepare a plan for comparison."""
    mine = own(plan)
    return ComparablePlan(
        plan=plan,
        shapes=[_shape(node) for node in plan.nodes],
        logics=[f"{_place(node)}{_NEXT}{own_logic(node)}" for node in plan.nodes],
        own=mine,
        facts=_facts(plan, mine),
    )


def in_common_form(one: Plan, other: Plan, parameters: int = 0) -> tuple[Plan, Plan]:
    """Return two plans without parts that only one of them prints.

    These are tests of subplans (since 17), and schemas and names of tables (with VERBOSE). Up to 16, EXPLAIN prints
    `$1` both for a parameter and for the result of an InitPlan, so these two are not told apart. parameters: number of
    parameters of a prepared statement.
    """
    plans = one, other
    if parameters and any(node.scope.startswith(INIT_PLAN) for plan in plans for node in plan.nodes):
        plans = _with_equal_values(one, parameters), _with_equal_values(other, parameters)
    if not all(prints_tests(plan) for plan in plans):
        plans = _without_tests(plans[0]), _without_tests(plans[1])
    if not all(_prints_schemas(plan) for plan in plans):
        if any(_prints_schemas(plan) for plan in plans):
            plans = _without_tables(plans[0]), _without_tables(plans[1])
        plans = _without_schemas(plans[0]), _without_schemas(plans[1])
    if not all(map(_prints_remote, plans)):
        # Printed with VERBOSE only as well.
        plans = _without_remote(plans[0]), _without_remote(plans[1])
    return plans


def fingerprints(plan: Plan, ready: ComparablePlan | None = None) -> Fingerprints:
    """Return the fingerprints of a plan. ready: the plan in its common form with another, used if it fits."""
    common = _without_schemas(_without_tests(plan))
    one = ready if ready is not None and ready.plan is common else comparable(common)
    went = [f"{logic} {sorted(facts.items())}" for logic, facts in zip(one.logics, one.facts, strict=True)]
    return Fingerprints(
        shape=_digest(one.shapes), logic=_digest(one.logics), behaviour=_digest(went) if plan.is_measured else None
    )


def is_same_logic(one: Plan, other: Plan, parameters: int = 0) -> bool:
    """Return whether the planner chose the same plan. parameters: number of parameters of a prepared statement."""
    mine, theirs = map(comparable, in_common_form(one, other, parameters))
    return mine.logics == theirs.logics


def own_logic(node: PlanNode) -> str:
    """Return the operator, relation, conditions and keys of a node, without its position and subplan."""
    return f"{_operator(node)}{_NEXT}{sorted(node.conditions.items())}{_NEXT}{sorted(node.keys.items())}"


def _shape(node: PlanNode) -> str:
    return f"{_place(node)}{_NEXT}{_operator(node)}"


def _place(node: PlanNode) -> str:
    return f"{node.depth}{_NEXT}{node.role}{_NEXT}{node.scope}"


def _operator(node: PlanNode) -> str:
    parts = node.op, node.detail, node.schema, node.relation, node.own_alias, node.indexes
    return _NEXT.join(map(str, parts))


def _with_equal_values(plan: Plan, parameters: int) -> Plan:
    """Return a plan with `$?` for parameters and for results of InitPlans."""
    return _respelled(plan, lambda text: without_values(text, parameters))


def _respelled(plan: Plan, change: Callable[[str], str]) -> Plan:
    """Return a plan with other spellings of its conditions and keys."""
    nodes = (
        replace(
            node,
            conditions={name: tuple(sorted(set(map(change, texts)))) for name, texts in node.conditions.items()},
            keys={name: tuple(map(change, texts)) for name, texts in node.keys.items()},
        )
        for node in plan.nodes
    )
    return replace(plan, nodes=tuple(nodes))


def prints_tests(plan: Plan) -> bool:
    """Return whether a plan has the test of a subplan, which majors up to 16 do not print."""
    return any(_node_without_tests(node) is not node for node in plan.nodes)


def _without_tests(plan: Plan) -> Plan:
    nodes = tuple(map(_node_without_tests, plan.nodes))
    return plan if all(map(operator.is_, nodes, plan.nodes)) else replace(plan, nodes=nodes)


def _node_without_tests(node: PlanNode) -> PlanNode:
    """Return the node itself if it has no tests of subplans."""
    texts = (text for texts in (*node.conditions.values(), *node.keys.values()) for text in texts)
    if not any(_SUBPLAN in text for text in texts):
        return node
    conditions = {
        name: tuple(sorted({bare(without_tests(f"({text})")) for text in texts}))
        for name, texts in node.conditions.items()
    }
    keys = {name: tuple(map(without_tests, texts)) for name, texts in node.keys.items()}
    is_same = conditions == node.conditions and keys == node.keys
    return node if is_same else replace(node, conditions=conditions, keys=keys)


def _prints_schemas(plan: Plan) -> bool:
    return any(node.schema for node in plan.nodes)


def _without_schemas(plan: Plan) -> Plan:
    if not _prints_schemas(plan):
        return plan
    return replace(plan, nodes=tuple(replace(node, schema="") for node in plan.nodes))


def _without_tables(plan: Plan) -> Plan:
    return _respelled(plan, without_tables)


def _prints_remote(plan: Plan) -> bool:
    return any(REMOTE in node.keys for node in plan.nodes)


def _without_remote(plan: Plan) -> Plan:
    if not _prints_remote(plan):
        return plan
    nodes = (
        replace(node, keys={name: texts for name, texts in node.keys.items() if name != REMOTE}) for node in plan.nodes
    )
    return replace(plan, nodes=tuple(nodes))


def is_same_but_for_sorts(one: Plan, other: Plan, parameters: int = 0) -> bool:
    """Return whether the plans differ only in sorts: all other operators, conditions and keys are equal.

    A newer planner may know that rows are already ordered where an older one sorts them.
    """
    mine, theirs = in_common_form(one, other, parameters)
    return _without_sorts(mine) == _without_sorts(theirs)


def _without_sorts(plan: Plan) -> list[tuple[int, str, str]]:
    depths: list[int] = []
    found = []
    for node in plan.nodes:
        is_sort = node.family is OperatorFamily.SORT
        # Skip sorts when counting depths.
        depth = 0 if node.parent is None else depths[node.parent] + 1
        depths.append(depth - 1 if is_sort else depth)
        if not is_sort:
            found.append((depth, node.scope, own_logic(node)))
    return found


def _facts(plan: Plan, mine: Sequence[OwnWork]) -> list[dict[str, Fact]]:
    found: list[dict[str, Fact]] = []
    # Temporary files of an InitPlan count at whichever node runs it first, so the files of other nodes are unknown.
    init_plans = {
        node.scope for node in plan.nodes if node.scope.startswith(INIT_PLAN) and (node.measured.temp_blocks or 0) > 0
    }
    for node, in_workers, amounts in zip(plan.nodes, plan.in_workers(), mine, strict=True):
        is_partial = in_workers or (node.measured.loops or 0) > 1
        facts = {name: fact for name, fact in node.facts.items() if not (is_partial and name in _OF_ONE_PROCESS)}
        is_known = amounts.temp_blocks is not None and node.measured.loops and not init_plans - {node.scope}
        if is_known and amounts.temp_blocks is not None and _SPILLING.search(node.op):
            facts[SPILLED] = amounts.temp_blocks > 0
        found.append(facts)
    return found


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
