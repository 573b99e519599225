"""EXPLAIN's raw nodes to ours: one list, in the order in which they are printed, in one spelling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.plans.bitmaps import Bitmap, bitmap_below, is_part
from pgversus.plans.expressions import Expressions
from pgversus.plans.measured import measured
from pgversus.plans.operators import family, operator
from pgversus.plans.plan import MAIN, Fact, PlanNode
from pgversus.plans.subplans import SubplanNames

_CONDITIONS = ("Cond", "Filter", "Order By", "Run Condition")
_RECHECK = "Recheck Cond"
# Says again what the index's own condition says.
_KEYS = ("Sort Key", "Group Key", "Presorted Key", "Cache Key")
_CALLS = ("Function Call", "Table Function Call")
_READ = ("Relation Name", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name")
_DETAILS = ("Scan Direction", "Sampling Method", "Conflict Resolution")
_USUAL_DETAILS = ("Forward", "NoMovement")
_FACTS = (
    "Sort Method",
    "Sort Space Type",
    "Hash Batches",
    "HashAgg Batches",
    "Planned Partitions",
    "Cache Mode",
    "Workers Planned",
    "Subplans Removed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawNode:
    """A node of EXPLAIN's JSON, and where in the plan it stands."""

    raw: Mapping[str, Any]
    depth: int
    parent: int | None
    children: tuple[int, ...]
    scope: str
    bitmap: Bitmap | None


def plan_nodes(root: Mapping[str, Any]) -> tuple[PlanNode, ...]:
    """All nodes of a plan. root: its "Plan", a mapping with a "Node Type" as each below it."""
    subplans = SubplanNames(_subplan_names(root))
    found = _in_order(root, subplans)
    aliases = ((str(node.raw["Alias"]), _relation(node.raw)) for node in found if "Alias" in node.raw)
    spelling = Expressions(subplans, aliases)
    return tuple(_node(node, spelling) for node in found)


def _subplan_names(root: Mapping[str, Any]) -> Iterator[str]:
    stack = [root]
    while stack:
        raw = stack.pop()
        if "Subplan Name" in raw:
            yield str(raw["Subplan Name"])
        stack += reversed(raw.get("Plans", []))


def _in_order(root: Mapping[str, Any], subplans: SubplanNames) -> list[RawNode]:
    """Each below the one that asks it. Bitmap index scans are part of the heap scan above them."""
    found: list[RawNode] = []
    children: list[list[int]] = []
    stack: list[tuple[Mapping[str, Any], int, int | None, str]] = [(root, 0, None, MAIN)]
    while stack:
        raw, depth, parent, above = stack.pop()
        place = len(found)
        scope = subplans.scope(str(raw["Subplan Name"])) if "Subplan Name" in raw else above
        bitmap = bitmap_below(raw)
        found.append(RawNode(raw=raw, depth=depth, parent=parent, children=(), scope=scope, bitmap=bitmap))
        children.append([])
        if parent is not None:
            children[parent].append(place)
        below = [child for child in raw.get("Plans", []) if bitmap is None or not is_part(child)]
        stack += [(child, depth + 1, place, scope) for child in reversed(below)]
    return [
        RawNode(
            raw=node.raw,
            depth=node.depth,
            parent=node.parent,
            children=tuple(places),
            scope=node.scope,
            bitmap=node.bitmap,
        )
        for node, places in zip(found, children, strict=True)
    ]


def _node(node: RawNode, spelling: Expressions) -> PlanNode:
    raw = node.raw
    return PlanNode(
        op=operator(raw),
        family=family(str(raw["Node Type"])),
        depth=node.depth,
        parent=node.parent,
        children=node.children,
        role=str(raw.get("Parent Relationship", "")),
        scope=node.scope,
        relation=_relation(raw),
        alias=None if raw.get("Alias") is None else str(raw["Alias"]),
        indexes=node.bitmap.indexes if node.bitmap is not None else str(raw.get("Index Name", "")),
        detail=_detail(raw),
        conditions=_conditions(node, spelling),
        keys=_keys(raw, spelling),
        facts=_facts(raw),
        measured=measured(raw),
        estimated_rows=float(raw.get("Plan Rows", 0)),
    )


def _relation(raw: Mapping[str, Any]) -> str | None:
    return next((str(raw[name]) for name in _READ if raw.get(name) is not None), None)


def _detail(raw: Mapping[str, Any]) -> str:
    return " ".join(str(raw[name]) for name in _DETAILS if raw.get(name) not in (None, *_USUAL_DETAILS))


def _conditions(node: RawNode, spelling: Expressions) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in node.raw.items():
        if name.endswith(_CONDITIONS) and name != _RECHECK and isinstance(value, str):
            found[name] = spelling.conjuncts(value)
    if node.bitmap is not None and node.bitmap.conditions:
        parts = [part for text in node.bitmap.conditions for part in spelling.conjuncts(text)]
        found["Index Cond"] = tuple(sorted(parts))
    return found


def _keys(raw: Mapping[str, Any], spelling: Expressions) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in (*_KEYS, *_CALLS):
        value = raw.get(name)
        if isinstance(value, str):
            found[name] = (spelling.respell(value),)
        elif isinstance(value, list):
            found[name] = tuple(spelling.respell(str(part)) for part in value)
    if sets := raw.get("Grouping Sets"):
        found["Grouping Sets"] = tuple(spelling.respell(text) for text in _grouping_sets(sets))
    return found


def _grouping_sets(sets: Any) -> Iterator[str]:
    for one in sets if isinstance(sets, list) else []:
        for name, value in one.items() if isinstance(one, Mapping) else ():
            yield f"{name} {_flat(value)}"


def _flat(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"({', '.join(_flat(part) for part in value)})"
    return str(value)


def _facts(raw: Mapping[str, Any]) -> dict[str, Fact]:
    found: dict[str, Fact] = {name: raw[name] for name in _FACTS if raw.get(name) is not None}
    for name in ("Full-sort Groups", "Pre-sorted Groups"):
        if isinstance(groups := raw.get(name), Mapping):
            methods = groups.get("Sort Methods Used")
            found[f"{name} Sort Methods"] = ", ".join(sorted(map(str, methods))) if isinstance(methods, list) else ""
    return found
