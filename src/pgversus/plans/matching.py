"""Matches the nodes of two plans by the relations that they read, and by the nodes below them.

Tree edit distance is not suitable: a match must show where each relation went, and a relation that moved from a
subplan to a join has moved across the whole tree.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from pgversus.plans.levels import own_logic
from pgversus.plans.plan import Plan, PlanNode

_ALIKE = 0.5
"""Minimum share of common relations below two nodes for a match."""
_MOST_PAIRS = 20_000
# Maximum number of pairs to compare among remaining nodes; beyond it, nodes are paired in order.

_Key = Callable[[PlanNode], Hashable | None]
# Nodes with equal keys match; None matches no node.


def _logic_of_read(node: PlanNode) -> str:
    """Return the logic of a node without the name of one of several reads, which may be another one's elsewhere."""
    logic = own_logic(node)
    if not node.repeated_name:
        return logic
    return re.sub(rf"(?<![\w$\".]){re.escape(node.repeated_name)}\.", "", logic)


# Two reads of a table with different aliases are never the same.
_OF_READERS: Sequence[_Key] = (
    # Several reads of a table may have no alias of their own. Those with the same number and conditions match first,
    # then those with the same conditions: the numbers may follow the order of the plan.
    lambda node: (
        (node.scope, node.relation, node.own_alias, node.repeated_name, own_logic(node)) if node.relation else None
    ),
    lambda node: (node.scope, node.relation, node.own_alias, _logic_of_read(node)) if node.relation else None,
    lambda node: (node.scope, node.schema, node.relation, node.own_alias) if node.relation else None,
    lambda node: (node.schema, node.relation, node.own_alias) if node.relation else None,
    lambda node: (node.scope, node.relation, node.own_alias) if node.relation else None,
    lambda node: (node.relation, node.own_alias) if node.relation else None,
    lambda node: None if node.relation else (node.scope, node.op),
)


# One node may be above another of the same operator: an aggregate of groups, and one of their sums.
_OF_OTHERS: Sequence[_Key] = (
    own_logic,
    lambda node: (node.family, *sorted(node.keys.items())) if node.keys else None,
    lambda node: node.op,
    lambda node: node.family,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMatching:
    """Matched and unmatched positions in both plans."""

    pairs: tuple[tuple[int, int], ...]
    """In the order of the baseline's plan."""
    removed: tuple[int, ...]
    added: tuple[int, ...]
    below: tuple[Sequence[int], Sequence[int]] = ((), ())
    """For each node of both plans, a bit set of the reading nodes at or below it. Matched nodes have the same bit."""


def match(baseline: Plan, contender: Plan) -> NodeMatching:
    """Match the nodes of two plans that do the same work.

    Reading nodes are matched first, by scope, relation and alias, then without the scope. Nodes above them are matched
    by the reading nodes below and operator, conditions and keys, then family and keys, then operator, then family.
    Remaining nodes with the same operator, conditions and keys are matched if at least half of the reading nodes below
    are common.
    """
    sides = _Side(baseline), _Side(contender)
    for key in _OF_READERS:
        _pair(*sides, key)
    numbers = count(len(sides[0].found))
    for side in sides:
        side.spread(numbers)
    one, other = sides
    for key in _OF_OTHERS:
        _pair_above(one, other, key)
    _pair_alike(one, other)
    return NodeMatching(
        pairs=tuple(sorted(one.found.items())),
        removed=tuple(place for place in range(len(one.nodes)) if place not in one.found),
        added=tuple(place for place in range(len(other.nodes)) if place not in other.found),
        below=(one.below, other.below),
    )


class _Side:
    """One of the plans, with its matches."""

    def __init__(self, plan: Plan) -> None:
        self.nodes = plan.nodes
        self.found: dict[int, int] = {}
        """Positions in the other plan, by position in this one."""
        self.below: list[int] = []
        """A bit set per node of the reading nodes at or below it."""
        self._readers: dict[int, int] = {}
        # Bits of reading nodes, by position; both nodes of a pair have the same.

    def is_reader(self, place: int) -> bool:
        """Return whether the node reads data: it has no nodes below it except its own subplans."""
        node = self.nodes[place]
        return node.relation is not None or all(
            self.nodes[child].role in ("InitPlan", "SubPlan") for child in node.children
        )

    def take(self, place: int, other: int, number: int | None = None) -> None:
        self.found[place] = other
        if number is not None:
            self._readers[place] = number

    def spread(self, numbers: Iterator[int]) -> None:
        """Compute the bit sets after reading nodes are matched. numbers: free bits, for nodes without a match."""
        self.below = [0] * len(self.nodes)
        for place in range(len(self.nodes) - 1, -1, -1):
            if self.is_reader(place):
                if place not in self._readers:
                    self._readers[place] = next(numbers)
                self.below[place] |= 1 << self._readers[place]
            parent = self.nodes[place].parent
            if parent is not None:
                self.below[parent] |= self.below[place]

    def left(self) -> list[int]:
        return [place for place in range(len(self.nodes)) if place not in self.found]


def _pair(one: _Side, other: _Side, key: _Key) -> None:
    def keyed(side: _Side) -> Iterable[tuple[Hashable, int]]:
        for place in side.left():
            if side.is_reader(place) and (found := key(side.nodes[place])) is not None:
                yield found, place

    for place, place_there in _in_turn(keyed(one), keyed(other)):
        number = len(one.found)
        one.take(place, place_there, number)
        other.take(place_there, place, number)


def _pair_above(one: _Side, other: _Side, key: _Key) -> None:
    def keyed(side: _Side) -> Iterator[tuple[Hashable, int]]:
        for place in side.left():
            node, below = side.nodes[place], side.below[place]
            # Without a common node below, any node would match.
            if below and (found := key(node)) is not None:
                yield (found, node.scope, below), place

    for place, place_there in _in_turn(keyed(one), keyed(other)):
        one.take(place, place_there)
        other.take(place_there, place)


def _in_turn(one: Iterable[tuple[Hashable, int]], other: Iterable[tuple[Hashable, int]]) -> Iterable[tuple[int, int]]:
    """Yield positions with equal keys; repeated keys are paired in order."""
    waiting: dict[Hashable, list[int]] = {}
    for key, place in other:
        waiting.setdefault(key, []).append(place)
    for places in waiting.values():
        places.reverse()
    # Copied before matches remove nodes from it.
    for key, place in list(one):
        if left := waiting.get(key):
            yield place, left.pop()


def _pair_alike(one: _Side, other: _Side) -> None:
    left, left_there = ([place for place in side.left() if side.below[place]] for side in (one, other))
    if len(left) * len(left_there) > _MOST_PAIRS:
        candidates = list(zip(left, left_there, strict=False))
    else:
        candidates = [(place, there) for place in left for there in left_there]
    ranked = []
    for place, there in candidates:
        # Any other pair would be reported as a change of one node into another.
        if own_logic(one.nodes[place]) != own_logic(other.nodes[there]):
            continue
        mine, theirs = one.below[place], other.below[there]
        alike = (mine & theirs).bit_count() / (mine | theirs).bit_count()
        if alike >= _ALIKE:
            ranked.append((-alike, place, there))
    for _, place, there in sorted(ranked):
        if place not in one.found and there not in other.found:
            one.take(place, there)
            other.take(there, place)
