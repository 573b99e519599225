"""A plan as people know it: an operator on each line, what it is asked by further to the left."""

from collections.abc import Iterator
from dataclasses import dataclass

from pgversus.plans.plan import MAIN, Plan, PlanNode, own
from pgversus.text.translation import listed, tell
from pgversus.text.units import latency, significant

_STEP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """One operator, as text."""

    depth: int
    words: str
    ran: str
    """Its rows, loops and own time where it was run, else the rows that were expected."""
    details: tuple[str, ...]
    """Its conditions and keys."""


def tree(plan: Plan) -> list[TreeNode]:
    """Its nodes in their order."""
    return [
        TreeNode(
            depth=node.depth,
            words=f"{_subplan(plan, node)}{node.words}",
            ran=_ran(node, mine.time_s),
            details=tuple(_details(node)),
        )
        for node, mine in zip(plan.nodes, own(plan), strict=True)
    ]


def plan_lines(plan: Plan) -> Iterator[str]:
    """The same as lines of text."""
    for node in tree(plan):
        indent = " " * _STEP * node.depth
        yield f"{indent}{node.words}  ({node.ran})"
        yield from (f"{indent}{' ' * _STEP}{text}" for text in node.details)


def _details(node: PlanNode) -> Iterator[str]:
    yield from (f"{heading}: {' AND '.join(parts)}" for heading, parts in node.conditions.items())
    yield from (f"{heading}: {', '.join(parts)}" for heading, parts in node.keys.items())


def _subplan(plan: Plan, node: PlanNode) -> str:
    """Of what is the top of a subplan its name."""
    above = MAIN if node.parent is None else plan.nodes[node.parent].scope
    return f"{node.scope}: " if node.scope != above else ""


def _ran(node: PlanNode, own_s: float | None) -> str:
    measured = node.measured
    if measured.loops is None or measured.rows is None:
        return tell("{rows} expected", rows=_rows(node.estimated_rows))
    if not measured.loops:
        return tell("never ran")
    rows = _rows(measured.rows)
    if measured.loops > 1:
        rows = tell("{rows} in {loops} loops", rows=rows, loops=significant(measured.loops))
    return rows if own_s is None else listed([rows, latency(own_s)])


def _rows(number: float) -> str:
    return tell("1 row") if number == 1 else tell("{rows} rows", rows=significant(number))
