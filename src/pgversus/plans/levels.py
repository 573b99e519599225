"""The level at which two plans differ, and three fingerprints of a plan: shape, logic and behaviour."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgversus.plans.expressions import is_generated
from pgversus.plans.plan import Fact, OperatorFamily, OwnWork, Plan, PlanNode, own

_DIGITS = 16
SPILLED = "Spilled"
"""A derived fact: whether the node itself wrote temporary files."""
_OF_ONE_PROCESS = ("Sort Method", "Sort Space Type", "HashAgg Batches")
# EXPLAIN reports these for the leader of parallel workers; they depend on which rows it happened to process.

_NEXT = "\x1f"
_PARTS_OF_PLACE = 2
# Depth and role come first.


class PlanLevel(StrEnum):
    """The first level at which two plans differ; later levels may differ as well."""

    OPERATORS = "operators"
    CONDITIONS = "conditions"
    """The same operators on the same relations, with different conditions or keys."""
    BEHAVIOUR = "behaviour"
    """The same plan with different behaviour: spills, sort method, number of batches."""
    WORK = "work"
    """The same plan and behaviour, with different numbers of rows, loops, or blocks."""
    IDENTICAL = "identical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """The fingerprints of a plan: leading digits of SHA-256 over its normalised form, comparable across majors."""

    shape: str
    """Operators, join types, relations, indexes, and their order."""
    logic: str
    """The shape with conditions and keys."""
    behaviour: str | None
    """The logic with behaviour; None for a plan that was not executed. It depends on what a major reports, so plans are
    compared by facts instead."""


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

    @property
    def fingerprints(self) -> Fingerprints:
        """The fingerprints of the whole plan."""
        went = [f"{logic} {sorted(facts.items())}" for logic, facts in zip(self.logics, self.facts, strict=True)]
        return Fingerprints(
            shape=_digest(self.shapes),
            logic=_digest(self.logics),
            behaviour=_digest(went) if self.plan.is_measured else None,
        )


def comparable(plan: Plan) -> ComparablePlan:
    """Prepare a plan for comparison."""
    mine = own(plan)
    return ComparablePlan(
        plan=plan,
        shapes=[_shape(node) for node in plan.nodes],
        logics=[_logic(node) for node in plan.nodes],
        own=mine,
        facts=_facts(plan, mine),
    )


def _shape(node: PlanNode) -> str:
    # Generated aliases carry no information beyond the relation.
    alias = "" if node.alias is None or is_generated(node.alias, node.relation) else node.alias
    where = f"{node.depth}{_NEXT}{node.role}{_NEXT}{node.scope}"
    return f"{where}{_NEXT}{node.op}{_NEXT}{node.detail}{_NEXT}{node.relation}{_NEXT}{alias}{_NEXT}{node.indexes}"


def _logic(node: PlanNode) -> str:
    return f"{_shape(node)}{_NEXT}{sorted(node.conditions.items())}{_NEXT}{sorted(node.keys.items())}"


def is_same_but_for_sorts(one: ComparablePlan, other: ComparablePlan) -> bool:
    """Return whether the plans differ only in sorts: all other operators, conditions and keys are equal.

    A newer planner may know that rows are already ordered where an older one sorts them.
    """
    return _without_sorts(one) == _without_sorts(other)


def _without_sorts(one: ComparablePlan) -> list[tuple[int, str]]:
    depths: list[int] = []
    found = []
    for node, logic in zip(one.plan.nodes, one.logics, strict=True):
        is_sort = node.family is OperatorFamily.SORT
        # Skip sorts when counting depths.
        depth = 0 if node.parent is None else depths[node.parent] + 1
        depths.append(depth - 1 if is_sort else depth)
        if not is_sort:
            found.append((depth, without_place(logic)))
    return found


def without_place(logic: str) -> str:
    """Return a node's logic and subplan without its position. logic: from ComparablePlan."""
    return logic.split(_NEXT, _PARTS_OF_PLACE)[-1]


def _facts(plan: Plan, mine: Sequence[OwnWork]) -> list[dict[str, Fact]]:
    found: list[dict[str, Fact]] = []
    by_many: list[bool] = []
    for node, amounts in zip(plan.nodes, mine, strict=True):
        above = None if node.parent is None else plan.nodes[node.parent]
        by_many.append(above is not None and (above.family is OperatorFamily.GATHER or by_many[node.parent or 0]))
        facts = {name: fact for name, fact in node.facts.items() if not (by_many[-1] and name in _OF_ONE_PROCESS)}
        if amounts.temp_blocks is not None and node.measured.loops:
            facts[SPILLED] = amounts.temp_blocks > 0
        found.append(facts)
    return found


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
