"""Kinds of changes between two plans, each with what a sentence about it needs. Values are those of both plans."""

from dataclasses import dataclass
from enum import StrEnum

from pgversus.plans.levels import Level


class Kind(StrEnum):
    """What has changed."""

    SUBPLAN_PULLED_UP = "subplan pulled up"
    SUBPLAN_PUSHED_DOWN = "subplan pushed down"
    JOIN = "join"
    ACCESS = "access"
    OPERATOR = "operator"
    ORDER_FROM_INDEX = "order from an index"
    ADDED = "added"
    REMOVED = "removed"
    NOT_READ = "relation not read"
    READ = "relation read"
    ARRANGEMENT = "arrangement"
    """The same operators stand in another order."""
    CONDITION_MOVED = "condition moved"
    CONDITION_GONE = "condition gone"
    CONDITION_NEW = "condition new"
    KEY_ORDER = "key order"
    KEYS = "keys"
    SPILL_GONE = "spill gone"
    SPILL_NEW = "spill new"
    FACT = "fact"
    LOOPS = "loops"
    ROWS = "rows"
    ROWS_REMOVED = "rows removed"
    ESTIMATE = "estimate"
    BLOCKS = "blocks"
    JIT = "jit"


_LEVELS = {
    Level.OPERATORS: (
        Kind.SUBPLAN_PULLED_UP,
        Kind.SUBPLAN_PUSHED_DOWN,
        Kind.JOIN,
        Kind.ACCESS,
        Kind.OPERATOR,
        Kind.ORDER_FROM_INDEX,
        Kind.ADDED,
        Kind.REMOVED,
        Kind.NOT_READ,
        Kind.READ,
        Kind.ARRANGEMENT,
    ),
    Level.CONDITIONS: (
        Kind.CONDITION_MOVED,
        Kind.CONDITION_GONE,
        Kind.CONDITION_NEW,
        Kind.KEY_ORDER,
        Kind.KEYS,
    ),
    Level.BEHAVIOUR: (Kind.SPILL_GONE, Kind.SPILL_NEW, Kind.FACT, Kind.JIT),
    Level.WORK: (Kind.LOOPS, Kind.ROWS, Kind.ROWS_REMOVED, Kind.ESTIMATE, Kind.BLOCKS),
}
LEVEL_OF = {kind: level for level, kinds in _LEVELS.items() for kind in kinds}
"""The level to which each kind belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change."""

    kind: Kind
    node: str
    """Where: the node in the words of EXPLAIN; of the contender's plan where it is in both."""
    was: str | float | None = None
    now: str | float | None = None
    name: str = ""
    """Of what: a heading, a fact, a subplan."""
    details: tuple[str, ...] = ()
    """What else EXPLAIN says of a node that is in one plan only, `Hash Cond c.c2 = d.c2`."""
    places: tuple[int | None, int | None] = (None, None)
    """The node in both plans; None where it is not there."""
