"""A plan as people know it: an operator on each line, what it is asked by further to the left."""

from collections.abc import Iterator

from pgversus.plans.measured import own
from pgversus.plans.plan import MAIN, Plan, PlanNode
from pgversus.report.units import latency, significant

_STEP = 2


def plan_lines(plan: Plan) -> Iterator[str]:
    """Each node with its rows, loops and own time where it was run, then its conditions and keys."""
    for place, (node, mine) in enumerate(zip(plan.nodes, own(plan), strict=True)):
        indent = " " * _STEP * node.depth
        yield f"{indent}{_subplan(plan, place)}{node.words}{_ran(node, mine.time_s)}"
        for heading, parts in (*node.conditions.items(), *node.keys.items()):
            joint = " AND " if heading in node.conditions else ", "
            yield f"{indent}{' ' * _STEP}{heading}: {joint.join(parts)}"


def _subplan(plan: Plan, place: int) -> str:
    """Of what is the top of a subplan its name."""
    node = plan.nodes[place]
    above = MAIN if node.parent is None else plan.nodes[node.parent].scope
    return f"{node.scope}: " if node.scope != above else ""


def _ran(node: PlanNode, own_s: float | None) -> str:
    measured = node.measured
    if measured.loops is None or measured.rows is None:
        return f"  ({_rows(node.estimated_rows)} expected)"
    if not measured.loops:
        return "  (never ran)"
    loops = f" in {significant(measured.loops)} loops" if measured.loops > 1 else ""
    time = "" if own_s is None else f", {latency(own_s)}"
    return f"  ({_rows(measured.rows)}{loops}{time})"


def _rows(number: float) -> str:
    return "1 row" if number == 1 else f"{significant(number)} rows"
