"""What a plan is: nodes in the order in which EXPLAIN prints them, each in a spelling that no major changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MAIN = "main"
"""The scope of what is in no subplan."""

Fact = str | int | float | bool | None


class Family(StrEnum):
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
class Measured:
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
    family: Family
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
    measured: Measured
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
