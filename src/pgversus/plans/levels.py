"""How far two plans are apart, and three fingerprints of one: its shape, its logic, how it went."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgversus.plans.expressions import is_generated
from pgversus.plans.plan import Fact, OperatorFamily, OwnWork, Plan, PlanNode, own

_DIGITS = 16
SPILLED = "Spilled"
"""A fact of our own: whether the node itself wrote temporary files."""
_OF_ONE_PROCESS = ("Sort Method", "Sort Space Type", "HashAgg Batches")
# Of parallel workers EXPLAIN tells what the leader did, which depends on the rows that it happened to get.

_NEXT = "\x1f"
_PARTS_OF_PLACE = 2
# Depth and role, before all else.


class PlanLevel(StrEnum):
    """The first thing in which two plans differ; those behind it may as well."""

    OPERATORS = "operators"
    CONDITIONS = "conditions"
    """The same operators on the same relations, with other conditions or keys."""
    BEHAVIOUR = "behaviour"
    """The same plan, which went another way: it spilled, sorted by another method, had more batches."""
    WORK = "work"
    """The same plan in the same way, with other amounts of rows, loops, or blocks."""
    IDENTICAL = "identical"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints:
    """Of one plan; the first digits of SHA-256 over it in our spelling. Equal ones are equal across majors."""

    shape: str
    """Operators, join types, relations, indexes, and their order."""
    logic: str
    """The same with conditions and keys."""
    behaviour: str | None
    """The same with how it went; None for a plan that was not run. What one major does not tell makes it another, so
    that plans are held against each other by facts and not by this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A plan and what comparing it needs, each computed once; in the order of its nodes."""

    plan: Plan
    shapes: Sequence[str]
    """What each node is and where it stands."""
    logics: Sequence[str]
    """The same with its conditions and keys."""
    own: Sequence[OwnWork]
    facts: Sequence[Mapping[str, Fact]]
    """How it went, with whether it spilled, where that is told."""

    @property
    def fingerprints(self) -> Fingerprints:
        """Of the whole."""
        went = [f"{logic} {sorted(facts.items())}" for logic, facts in zip(self.logics, self.facts, strict=True)]
        return Fingerprints(
            shape=_digest(self.shapes),
            logic=_digest(self.logics),
            behaviour=_digest(went) if self.plan.is_measured else None,
        )


def examined(plan: Plan) -> Examined:
    """A plan, ready to be compared."""
    mine = own(plan)
    return Examined(
        plan=plan,
        shapes=[_shape(node) for node in plan.nodes],
        logics=[_logic(node) for node in plan.nodes],
        own=mine,
        facts=_facts(plan, mine),
    )


def _shape(node: PlanNode) -> str:
    # A name that PostgreSQL made up says nothing: its relation does.
    alias = "" if node.alias is None or is_generated(node.alias, node.relation) else node.alias
    where = f"{node.depth}{_NEXT}{node.role}{_NEXT}{node.scope}"
    return f"{where}{_NEXT}{node.op}{_NEXT}{node.detail}{_NEXT}{node.relation}{_NEXT}{alias}{_NEXT}{node.indexes}"


def _logic(node: PlanNode) -> str:
    return f"{_shape(node)}{_NEXT}{sorted(node.conditions.items())}{_NEXT}{sorted(node.keys.items())}"


def is_same_but_for_sorts(one: Examined, other: Examined) -> bool:
    """Whether sorts alone tell one plan from the other: all other operators, conditions and keys are the same.

    A newer planner knows that rows are in order already where an older one sorts them once more.
    """
    return _without_sorts(one) == _without_sorts(other)


def _without_sorts(one: Examined) -> list[tuple[int, str]]:
    depths: list[int] = []
    found = []
    for node, logic in zip(one.plan.nodes, one.logics, strict=True):
        is_sort = node.family is OperatorFamily.SORT
        # As if the sorts above it were not there: what stands below one stands where it stands.
        depth = 0 if node.parent is None else depths[node.parent] + 1
        depths.append(depth - 1 if is_sort else depth)
        if not is_sort:
            found.append((depth, without_place(logic)))
    return found


def without_place(logic: str) -> str:
    """What a node is, in which subplan, wherever in it it stands. logic: as of Examined."""
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
