"""A plan: nodes in EXPLAIN's order, normalized across major versions, with measurements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MAIN = "main"
"""The scope of nodes outside all subplans."""
INIT_PLAN = "InitPlan "
"""The beginning of the scope of an InitPlan."""

COUNTS = ("Heap Fetches", "Lossy Heap Blocks", "Index Searches")
"""Counts of one node over all its executions."""
REMOVED = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
BLOCKS = ("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks")
"""Numbers of a node that are added up."""

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
    """Rows returned over all loops. Up to 17 EXPLAIN rounds the rows of each loop; `rounding` is the maximum error."""
    rounding: float = 0.0
    rows_removed: float | None = None
    """Rows read and discarded by a condition, over all loops."""
    rounding_of_removed: float = 0.0
    """Maximum error of `rows_removed`: every major rounds it to a whole number for each loop."""
    time_s: float | None = None
    """Time measured by EXPLAIN ANALYZE, over all loops of all processes."""
    rounding_of_time_s: float = 0.0
    """Maximum error of `time_s`: EXPLAIN rounds the time of each loop to thousandths of a millisecond."""
    blocks: float | None = None
    """Blocks of tables and indexes, read or found in buffers."""
    temp_blocks: float | None = None
    """Blocks written to temporary files."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Those of COUNTS that EXPLAIN reports."""
    memory_bytes: float | None = None
    """The most memory for its rows at any time; None for a sort on disk, or if the node ran more than once."""


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
    schema: str
    """Schema of the relation; empty without VERBOSE."""
    alias: str | None
    given_alias: str | None
    """The alias without the number that PostgreSQL adds to repeated aliases (t_1)."""
    repeated_name: str
    """The name in conditions and keys of one of several reads without an alias of their own; empty for other nodes."""
    indexes: str
    """The index that the node reads, or a combination of several: `BitmapOr(a_idx, b_idx)`."""
    detail: str
    """Properties of the operator that are not conditions: scan direction, command of a ModifyTable or SetOp."""
    conditions: Mapping[str, tuple[str, ...]]
    """Conditions by heading (Filter, Index Cond, ...), split at AND, normalized, sorted."""
    keys: Mapping[str, tuple[str, ...]]
    """Keys by heading (Sort Key, Group Key, ...), in order, and other choices of the planner (Workers Planned)."""
    facts: Mapping[str, Fact]
    """Behavior: sort method, batches, spills. Facts that a major does not report are missing."""
    measured: NodeMeasurement
    estimated_rows: float
    """Rows per loop, estimated by the planner."""
    stops_early: bool = False
    """Whether a join stops reading its inner side at the first match."""

    @property
    def target(self) -> str:
        """The relation and its alias: `t_corr_d d`."""
        if self.relation is None:
            return self.alias or ""
        return self.relation if self.alias in (None, self.relation) else f"{self.relation} {self.alias}"

    @property
    def own_alias(self) -> str:
        """The alias that the statement gives; empty for none."""
        return "" if self.given_alias is None or self.given_alias == self.relation else self.given_alias

    @property
    def text(self) -> str:
        """The node as in EXPLAIN's text format: `Index Scan using t_pkey on t`."""
        using = f" using {self.indexes}" if self.indexes else ""
        return f"{self.op}{using} on {self.target}" if self.target else f"{self.op}{using}"

    @property
    def details(self) -> tuple[str, ...]:
        """Conditions and keys as text: `Filter: a = 1 AND b = 2`."""
        conditions = (f"{name}: {' AND '.join(parts)}" for name, parts in self.conditions.items())
        return (*conditions, *(f"{name}: {', '.join(parts)}" for name, parts in self.keys.items()))


_BLOCKING = ("Aggregate", "Hash", "Sort")
# The last words of operators that read everything before they return a row; those of _LAZY do not.
_LAZY = ("Incremental Sort", "GroupAggregate", "MixedAggregate")
_DISTINCT = ("Unique", "Group", "HashAggregate")
# Workers remove equal rows, and the leader does it again.
_STOPPING = ("Limit", "Merge", "Recursive Union", "SetOp", "HashSetOp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The output of EXPLAIN for one statement."""

    nodes: tuple[PlanNode, ...]
    """Nodes in EXPLAIN's order: the root first, parents before children."""
    execution_s: float | None = None
    serialization_s: float | None = None
    """Part of execution_s; reported by 17 and newer, on request."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings with non-default values, from EXPLAIN (SETTINGS)."""
    jit_functions: int | None = None
    query: str | None = None
    """The statement, in entries of auto_explain."""
    reruns: tuple["Plan", ...] = ()
    """Further executions."""
    index_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The keys of the server's indexes, as in an ORDER BY for which a forward scan needs no sort. EXPLAIN does not
    print them."""
    block_bytes: int | None = None
    """Size of the server's blocks of data, which EXPLAIN does not print; None if unknown."""

    @property
    def root(self) -> PlanNode:
        """The node that returns the rows."""
        return self.nodes[0]

    @property
    def is_measured(self) -> bool:
        """Whether the plan was executed, with ANALYZE."""
        return self.root.measured.loops is not None

    @property
    def gathers(self) -> list[tuple[tuple[str, ...], float | None]]:
        """For each Gather: the planned workers, and how often the nodes below it ran, in all processes."""
        return [
            (node.keys.get("Workers Planned", ()), self.nodes[node.children[-1]].measured.loops)
            for node in self.nodes
            if node.family is OperatorFamily.GATHER and node.children
        ]

    def in_workers(self) -> list[bool]:
        """Return for each node whether parallel workers run it, so that their number multiplies its executions."""
        found: list[bool] = []
        for node in self.nodes:
            above = None if node.parent is None else self.nodes[node.parent]
            is_below = above is not None and above.family is OperatorFamily.GATHER and node.role != "InitPlan"
            found.append(is_below or (above is not None and found[node.parent or 0]))
        return found

    def processes(self) -> list[float | None]:
        """Return for each node the number on which its rows depend by chance: how often parallel workers ran it.

        The partial results that a Gather passes on depend on it as well, up to the node that finalizes them.
        """
        in_workers = self.in_workers()
        found = [node.measured.loops if inside else None for node, inside in zip(self.nodes, in_workers, strict=True)]
        for place, node in enumerate(self.nodes):
            if node.family is not OperatorFamily.GATHER or not node.children:
                continue
            is_distinct = any(in_workers[one] and self.nodes[one].op in _DISTINCT for one in self.below(place))
            ends = ("Finalize", *(_DISTINCT if is_distinct else ()))
            above: list[int] = []
            one: int | None = place
            while one is not None and not self.nodes[one].op.startswith(ends):
                above.append(one)
                one = self.nodes[one].parent
            for partial_result in above if one is not None else ():
                found[partial_result] = found[node.children[-1]]
        return found

    def read_to_the_end(self) -> list[bool]:
        """Return for each node whether it surely returned all of its rows, so that its estimate can be judged.

        A Limit, a Merge Join, a semi-join or the user of a subplan may stop earlier.
        """
        found: list[bool] = []
        for node in self.nodes:
            if node.parent is None:
                found.append(True)
                continue
            above = self.nodes[node.parent]
            if node.scope != above.scope:
                found.append(False)
            elif above.op.endswith(_BLOCKING) and not above.op.endswith(_LAZY):
                found.append(True)
            else:
                found.append(found[node.parent] and not self._may_stop(above, node))
        return found

    def _may_stop(self, above: PlanNode, node: PlanNode) -> bool:
        """Return whether a node may stop reading the one below it."""
        if above.op.startswith(_STOPPING) or "Run Condition" in above.conditions:
            return True
        if above.family is not OperatorFamily.JOIN:
            return False
        if node.role == "Inner":
            return above.stops_early
        # If the inner side has no rows, a join may leave its outer side unread.
        inner = (self.nodes[child] for child in above.children if self.nodes[child].role == "Inner")
        return any(not other.measured.rows for other in inner)

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
_THOUSANDTHS = 0.0005
# EXPLAIN rounds the rows of a loop to whole numbers up to 17, and to hundredths from 18 on.
_KILOBYTE = 1024


def measured(raw: Mapping[str, Any]) -> NodeMeasurement:
    """Return the measurements of a raw node, over all loops."""
    loops = _number(raw, "Actual Loops")
    if loops is None:
        return NodeMeasurement()
    each = _number(raw, "Actual Rows")
    time = _number(raw, "Actual Total Time")
    removed = [found for name in REMOVED if (found := _number(raw, name)) is not None]
    blocks = [found for name in BLOCKS if (found := _number(raw, name)) is not None]
    return NodeMeasurement(
        loops=loops,
        rows=None if each is None else each * loops,
        rounding=(_HUNDREDTHS if isinstance(raw.get("Actual Rows"), float) else _WHOLE_ROWS) * loops
        if loops > 1
        else 0.0,
        rows_removed=sum(removed) * loops if removed else None,
        rounding_of_removed=_WHOLE_ROWS * len(removed) * loops if loops > 1 else 0.0,
        time_s=None if time is None else time * loops / _MS_PER_S,
        rounding_of_time_s=0.0 if time is None else _THOUSANDTHS * loops / _MS_PER_S,
        blocks=sum(blocks) if blocks else None,
        temp_blocks=_number(raw, "Temp Written Blocks"),
        counts={name: found for name in COUNTS if (found := _number(raw, name)) is not None},
        memory_bytes=_memory(raw) if loops == 1 else None,
    )


def _memory(raw: Mapping[str, Any]) -> float | None:
    """Return the memory of a sort, or of the hash table of a Hash, Aggregate or Memoize."""
    name = "Sort Space Used" if raw.get("Sort Space Type") == "Memory" else "Peak Memory Usage"
    kilobytes = _number(raw, name)
    return None if kilobytes is None else kilobytes * _KILOBYTE


def _number(raw: Mapping[str, Any], name: str) -> float | None:
    found = raw.get(name)
    return None if found is None else float(found)
