"""A plan: nodes in the order in which EXPLAIN prints them, in a spelling that no major changes, and what they did."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAIN = "main"
"""The scope of what is in no subplan."""

Fact = str | int | float | bool | None


class OperatorFamily(StrEnum):
    """Operators that can stand for each other."""

    SCAN = "scan"
    JOIN = "join"
    AGGREGATE = "aggregate"
    """Also Unique and Group: all make one row out of equal ones."""
    SORT = "sort"
    APPEND = "append"
    GATHER = "gather"
    AUXILIARY = "auxiliary"
    """Hash, Materialize, Memoize: they keep rows for the join above them."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMeasurement:
    """What one node did, the nodes below it included, over all of its loops. None for what EXPLAIN did not say."""

    loops: float | None = None
    """How often it ran; 0 for one that never did."""
    rows: float | None = None
    """Over all loops. Up to 17 EXPLAIN rounds the rows of each loop: `rounding` says by how much this may be off."""
    rounding: float = 0.0
    rows_removed: float | None = None
    """Read, and thrown away by a condition; over all loops."""
    time_s: float | None = None
    """By the clock that EXPLAIN ANALYZE adds, over all loops."""
    blocks: float | None = None
    """Of tables and indexes, from the buffers or not."""
    temp_blocks: float | None = None
    """Written to temporary files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """One operator."""

    op: str
    """As EXPLAIN's text format calls it: `Hash Semi Join`, `Partial HashAggregate`, `Parallel Seq Scan`."""
    family: OperatorFamily
    depth: int
    parent: int | None
    """Its place in the plan's nodes; None for the root."""
    children: tuple[int, ...]
    """Their places; subplans that hang here are among them."""
    role: str
    """Outer, Inner, Member, Subquery, InitPlan, SubPlan; empty for the root."""
    scope: str
    """MAIN, `CTE name`, `InitPlan 1`, `SubPlan 2`; numbered in the order of the plan."""
    relation: str | None
    """The table, CTE or function that it reads."""
    alias: str | None
    indexes: str
    """The index that it reads; of several how they are combined: `BitmapOr(a_idx, b_idx)`."""
    detail: str
    """What belongs to the operator and is no condition: backwards, the command of a ModifyTable or SetOp."""
    conditions: Mapping[str, tuple[str, ...]]
    """By heading (Filter, Index Cond, ...) what must hold, cut at AND, in one spelling, sorted."""
    keys: Mapping[str, tuple[str, ...]]
    """By heading (Sort Key, Group Key, ...) in their order."""
    facts: Mapping[str, Fact]
    """How it went: sort method, batches, whether it spilled. What a major does not tell is not among them."""
    measured: NodeMeasurement
    estimated_rows: float
    """By the planner, of one loop."""

    @property
    def target(self) -> str:
        """`t_corr_d d`: what it reads, with the name that the statement gave it."""
        if self.relation is None:
            return self.alias or ""
        return self.relation if self.alias in (None, self.relation) else f"{self.relation} {self.alias}"

    @property
    def words(self) -> str:
        """`Index Scan using t_pkey on t`, as EXPLAIN's text format has it."""
        using = f" using {self.indexes}" if self.indexes else ""
        return f"{self.op}{using} on {self.target}" if self.target else f"{self.op}{using}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What EXPLAIN said of one statement."""

    nodes: tuple[PlanNode, ...]
    """The root first, then each below the one that asks it, as EXPLAIN prints them."""
    planning_s: float | None = None
    execution_s: float | None = None
    serialization_s: float | None = None
    """Inside execution_s; 17 and newer, where it was asked for."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What EXPLAIN (SETTINGS) said is not as by default."""
    jit_functions: int | None = None
    query: str | None = None
    """In entries of auto_explain."""

    @property
    def root(self) -> PlanNode:
        """The node that returns the rows."""
        return self.nodes[0]

    @property
    def is_measured(self) -> bool:
        """Whether it was run, with ANALYZE."""
        return self.root.measured.loops is not None

    def below(self, place: int) -> Iterator[int]:
        """The places of all nodes under this one."""
        depth = self.nodes[place].depth
        for other in range(place + 1, len(self.nodes)):
            if self.nodes[other].depth <= depth:
                return
            yield other


_MS_PER_S = 1000.0
_WHOLE_ROWS = 0.5
_HUNDREDTHS = 0.005
# EXPLAIN rounds the rows of one loop to a whole number up to 17, to hundredths from 18 on.
_REMOVED = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
_BLOCKS = ("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks")
_CTE = "CTE "
_INIT_PLAN = "InitPlan "


def measured(raw: Mapping[str, Any]) -> NodeMeasurement:
    """Of one raw node, over all of its loops."""
    loops = _number(raw, "Actual Loops")
    if loops is None:
        return NodeMeasurement()
    each = _number(raw, "Actual Rows")
    time = _number(raw, "Actual Total Time")
    removed = [found for name in _REMOVED if (found := _number(raw, name)) is not None]
    blocks = [found for name in _BLOCKS if (found := _number(raw, name)) is not None]
    return NodeMeasurement(
        loops=loops,
        rows=None if each is None else each * loops,
        rounding=(_HUNDREDTHS if isinstance(raw.get("Actual Rows"), float) else _WHOLE_ROWS) * loops
        if loops > 1
        else 0.0,
        rows_removed=sum(removed) * loops if removed else None,
        time_s=None if time is None else time * loops / _MS_PER_S,
        blocks=sum(blocks) if blocks else None,
        temp_blocks=_number(raw, "Temp Written Blocks"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWork:
    """What one node did itself, without the nodes below it."""

    time_s: float | None
    blocks: float | None
    temp_blocks: float | None


def own(plan: Plan) -> list[OwnWork]:
    """For each node of a plan, in its order.

    A CTE is run by those that scan it, so that what it did is taken from them, in equal parts, and not from the node
    under which it is printed; what an InitPlan did from nobody: EXPLAIN does not say who asked it. Never below zero:
    clocks that are read for each row do not add up.
    """
    scans = _scans_of_ctes(plan)
    seconds = _left(plan, [node.measured.time_s for node in plan.nodes], scans)
    blocks = _left(plan, [node.measured.blocks for node in plan.nodes], scans)
    temporary = _left(plan, [node.measured.temp_blocks for node in plan.nodes], scans)
    return [
        OwnWork(time_s=time_s, blocks=read, temp_blocks=written)
        for time_s, read, written in zip(seconds, blocks, temporary, strict=True)
    ]


def _left(plan: Plan, whole: Sequence[float | None], scans: Mapping[str, Sequence[int]]) -> list[float | None]:
    """What is left of the amounts of each node without those that are contained in them. scans: of each CTE."""
    left = list(whole)
    # What is taken in equal parts from those that scan a CTE, by its name.
    of_ctes: dict[str, float] = {}
    for node, amount in zip(plan.nodes, whole, strict=True):
        if node.parent is None or amount is None:
            continue
        is_top = plan.nodes[node.parent].scope != node.scope
        if is_top and node.scope.startswith(_CTE):
            name = node.scope.removeprefix(_CTE)
            of_ctes[name] = of_ctes.get(name, 0.0) + amount
        elif not (is_top and node.scope.startswith(_INIT_PLAN)):
            _take(left, node.parent, amount)
    for name, amount in of_ctes.items():
        places = scans.get(name, ())
        for place in places:
            _take(left, place, amount / len(places))
    return [None if amount is None else max(0.0, amount) for amount in left]


def _take(left: list[float | None], place: int, amount: float) -> None:
    before = left[place]
    if before is not None:
        left[place] = before - amount


def _scans_of_ctes(plan: Plan) -> dict[str, list[int]]:
    scans: dict[str, list[int]] = {}
    for place, node in enumerate(plan.nodes):
        if node.op == "CTE Scan" and node.relation is not None:
            scans.setdefault(node.relation, []).append(place)
    return scans


def _number(raw: Mapping[str, Any], name: str) -> float | None:
    found = raw.get(name)
    return None if found is None else float(found)
