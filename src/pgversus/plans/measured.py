"""What nodes did, as EXPLAIN ANALYZE told it, in base units; and what of it was their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.plans.plan import Measured, Plan

_MS_PER_S = 1000.0
_WHOLE_ROWS = 0.5
_HUNDREDTHS = 0.005
# EXPLAIN rounds the rows of one loop to a whole number up to 17, to hundredths from 18 on.
_REMOVED = ("Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck")
_BLOCKS = ("Shared Hit Blocks", "Shared Read Blocks", "Local Hit Blocks", "Local Read Blocks")
_CTE = "CTE "
_INIT_PLAN = "InitPlan "


def measured(raw: Mapping[str, Any]) -> Measured:
    """Of one raw node, over all of its loops."""
    loops = _number(raw, "Actual Loops")
    if loops is None:
        return Measured()
    each = _number(raw, "Actual Rows")
    time = _number(raw, "Actual Total Time")
    removed = [found for name in _REMOVED if (found := _number(raw, name)) is not None]
    blocks = [found for name in _BLOCKS if (found := _number(raw, name)) is not None]
    return Measured(
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
class Own:
    """What one node did itself, without the nodes below it."""

    time_s: float | None
    blocks: float | None
    temp_blocks: float | None


def own(plan: Plan) -> list[Own]:
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
        Own(time_s=time_s, blocks=read, temp_blocks=written)
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
