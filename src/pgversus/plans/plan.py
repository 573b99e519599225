"""A plan: nodes in EXPLAIN's order, normalised across major versions, with measurements."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAIN = "main"
"""The scope of nodes outside all subplans."""

Fact = str | int | float | bool | None


class OperatorFamily(StrEnum):
    """Families of operators that can replace each other."""

    SCAN = "scan"
    JOIN = "join"
    AGGREGATE = "aggregate"
    """Also Unique and Group, which reduce equal rows to one."""
    SORT = "sort"
    APPEND = "append"
    GATHER = "gather"
    AUXILIARY = "auxiliary"
    """Hash, Materialize and Memoize, which store rows for the join above them."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMeasurement:
    """Measurements of a node including the nodes below it, over all loops. None if EXPLAIN does not report them."""

    loops: float | None = None
    """Number of executions; 0 if never executed."""
    rows: float | None = None
    """Over all loops. Up to 17 EXPLAIN rounds the rows of each loop; `rounding` is the maximum error."""
    rounding: float = 0.0
    rows_removed: float | None = None
    """Rows read and discarded by a condition, over all loops."""
    time_s: float | None = None
    """Time measured by EXPLAIN ANALYZE, over all loops."""
    blocks: float | None = None
    """Blocks of tables and indexes, read or found in buffers."""
    temp_blocks: float | None = None
    """Blocks written to temporary files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """One node of a plan."""

    op: str
    """The operator as in EXPLAIN's text format: `Hash Semi Join`, `Partial HashAggregate`, `Parallel Seq Scan`."""
    family: OperatorFamily
    depth: int
    parent: int | None
    """Position of the parent; None for the root."""
    children: tuple[int, ...]
    """Positions of the children, including attached subplans."""
    role: str
    """Outer, Inner, Member, Subquery, InitPlan, SubPlan; empty for the root."""
    scope: str
    """MAIN, `CTE name`, `InitPlan 1`, `SubPlan 2`; numbered in the order of the plan."""
    relation: str | None
    """The table, CTE or function that the node reads."""
    alias: str | None
    indexes: str
    """The index that the node reads, or a combination of several: `BitmapOr(a_idx, b_idx)`."""
    detail: str
    """Properties of the operator that are not conditions: scan direction, command of a ModifyTable or SetOp."""
    conditions: Mapping[str, tuple[str, ...]]
    """Conditions by heading (Filter, Index Cond, ...), split at AND, normalised, sorted."""
    keys: Mapping[str, tuple[str, ...]]
    """Keys by heading (Sort Key, Group Key, ...), in order."""
    facts: Mapping[str, Fact]
    """Behaviour: sort method, batches, spills. Facts that a major does not report are missing."""
    measured: NodeMeasurement
    estimated_rows: float
    """Rows per loop, estimated by the planner."""

    @property
    def target(self) -> str:
        """The relation and its alias: `t_corr_d d`."""
        if self.relation is None:
            return self.alias or ""
        return self.relation if self.alias in (None, self.relation) else f"{self.relation} {self.alias}"

    @property
    def text(self) -> str:
        """The node as in EXPLAIN's text format: `Index Scan using t_pkey on t`."""
        using = f" using {self.indexes}" if self.indexes else ""
        return f"{self.op}{using} on {self.target}" if self.target else f"{self.op}{using}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The output of EXPLAIN for one statement."""

    nodes: tuple[PlanNode, ...]
    """Nodes in EXPLAIN's order: the root first, parents before children."""
    planning_s: float | None = None
    execution_s: float | None = None
    serialization_s: float | None = None
    """Part of execution_s; reported by 17 and newer, on request."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings with non-default values, from EXPLAIN (SETTINGS)."""
    jit_functions: int | None = None
    query: str | None = None
    """The statement, in entries of auto_explain."""

    @property
    def root(self) -> PlanNode:
        """The node that returns the rows."""
        return self.nodes[0]

    @property
    def is_measured(self) -> bool:
        """Whether the plan was executed, with ANALYZE."""
        return self.root.measured.loops is not None

    def below(self, place: int) -> Iterator[int]:
        """Yield the positions of all nodes below a node."""
        depth = self.nodes[place].depth
        for other in range(place + 1, len(self.nodes)):
            if self.nodes[other].depth <= depth:
                return
            yield other


_MS_PER_S = 1000.0
_WHOLE_ROWS = 0.5
_HUNDREDTHS = 0.005
# EXPLAIN rounds the rows of a loop to whole numbers up to 17, and to hundredths from 18 on.
_REMOVED = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
_BLOCKS = ("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks")
_CTE = "CTE "
_INIT_PLAN = "InitPlan "


def measured(raw: Mapping[str, Any]) -> NodeMeasurement:
    """Return the measurements of a raw node, over all loops."""
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
    """The work of a node itself, without the nodes below it."""

    time_s: float | None
    blocks: float | None
    temp_blocks: float | None


def own(plan: Plan) -> list[OwnWork]:
    """Return the own work of each node, in the order of the plan.

    The work of a CTE is subtracted in equal parts from the nodes that scan it, because these run it, and not from the
    node under which it is printed. The work of an InitPlan is not subtracted from any node, because EXPLAIN does not
    report which node ran it. Results are not negative: clocks that are read for each row do not add up.
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
    """Return the amounts of each node without contained amounts. scans: positions of scans by CTE."""
    left = list(whole)
    # Amounts to subtract in equal parts from scans of a CTE, by its name.
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
