"""Two plans as rows in which what is the same node stands side by side."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.plans.changes import Kind
from pgversus.report.plans.compared import ComparedPlans
from pgversus.report.plans.tree import TreeNode, tree

_OF_THE_WHOLE = frozenset({Kind.BLOCKS, Kind.JIT})
"""Amounts of the whole plan, which are told at its top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A node of each plan, or of one of them alone."""

    baseline: TreeNode | None
    contender: TreeNode | None
    is_changed: bool
    """Whether a change is about it."""


def plan_rows(one: ComparedPlans) -> list[PlanRow]:
    """Every node of both plans, each plan's in its order.

    Where nodes have changed places, as many of them stand side by side as can without breaking the order.
    """
    trees = [tree(plan) for plan in one.plans]
    told = [change for change in one.difference.changes if change.kind not in _OF_THE_WHOLE]
    changed = [{change.places[side] for change in told} for side in (0, 1)]
    rows = []
    for ours, theirs in _places(one.difference.pairs, len(trees[0]), len(trees[1])):
        rows.append(
            PlanRow(
                baseline=None if ours is None else trees[0][ours],
                contender=None if theirs is None else trees[1][theirs],
                # One that stands alone is gone, new, or elsewhere.
                is_changed=ours is None or theirs is None or ours in changed[0] or theirs in changed[1],
            )
        )
    return rows


def _places(pairs: Sequence[tuple[int, int]], ours: int, theirs: int) -> Iterator[tuple[int | None, int | None]]:
    left = right = 0
    for one, other in [*_in_order(pairs), (ours, theirs)]:
        yield from ((place, None) for place in range(left, one))
        yield from ((None, place) for place in range(right, other))
        if (one, other) != (ours, theirs):
            yield one, other
        left, right = one + 1, other + 1


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of them that ascend on both sides: a longest increasing subsequence (Schensted)."""
    ends: list[int] = []
    """Of the chains of each length that end lowest: where in `ordered` they end."""
    lowest: list[int] = []
    """With which place on the other side they end."""
    before: list[int | None] = []
    ordered = sorted(pairs)
    for number, (_, other) in enumerate(ordered):
        length = bisect_left(lowest, other)
        before.append(ends[length - 1] if length else None)
        ends[length : length + 1] = [number]
        lowest[length : length + 1] = [other]
    chain: list[tuple[int, int]] = []
    number_or_none = ends[-1] if ends else None
    while number_or_none is not None:
        chain.append(ordered[number_or_none])
        number_or_none = before[number_or_none]
    return chain[::-1]
