"""Converts EXPLAIN's raw nodes: operator names, bitmap scans, subplans, in normalized form."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.plans.call_syntax import as_plain_calls
from pgversus.plans.expressions import Expressions, SubplanNames, outside_strings, own_names
from pgversus.plans.plan import MAIN, Fact, OperatorFamily, PlanNode, measured

_OF_STRATEGY = {"Plain": "Aggregate", "Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_JOINS = {"Nested Loop": "Nested Loop", "Hash Join": "Hash", "Merge Join": "Merge"}
_FAMILIES = {
    **dict.fromkeys(("Nested Loop", "Hash Join", "Merge Join"), OperatorFamily.JOIN),
    **dict.fromkeys(("Aggregate", "Group", "Unique"), OperatorFamily.AGGREGATE),
    **dict.fromkeys(("Sort", "Incremental Sort"), OperatorFamily.SORT),
    **dict.fromkeys(("Append", "Merge Append"), OperatorFamily.APPEND),
    **dict.fromkeys(("Gather", "Gather Merge"), OperatorFamily.GATHER),
    **dict.fromkeys(("Hash", "Materialize", "Memoize"), OperatorFamily.AUXILIARY),
}


def operator(raw: Mapping[str, Any]) -> str:
    """Return the operator, such as `Parallel Hash Left Join`. raw: a node of EXPLAIN's JSON."""
    name = _named(raw)
    mode = raw.get("Partial Mode", "Simple")
    words = [mode] if mode in ("Partial", "Finalize") else []
    if raw.get("Parallel Aware") is True:
        words.append("Parallel")
    if raw.get("Async Capable") is True:
        words.append("Async")
    return " ".join([*words, name])


def family(node_type: str) -> OperatorFamily:
    """Return the family of comparable operators; unknown scans of future majors are scans."""
    found = _FAMILIES.get(node_type)
    if found is not None:
        return found
    return OperatorFamily.SCAN if node_type.endswith("Scan") else OperatorFamily.OTHER


def _named(raw: Mapping[str, Any]) -> str:
    node_type = str(raw["Node Type"])
    if node_type == "Aggregate":
        return _OF_STRATEGY.get(raw.get("Strategy", "Plain"), node_type)
    if node_type == "SetOp":
        kind = "HashSetOp" if raw.get("Strategy") == "Hashed" else node_type
        return f"{kind} {raw.get('Command', '')}".rstrip()
    if node_type == "ModifyTable":
        return str(raw.get("Operation", node_type))
    if node_type in _JOINS:
        return _join(node_type, str(raw.get("Join Type", "Inner")))
    if node_type in ("Foreign Scan", "Custom Scan"):
        return f"{node_type} {raw.get('Custom Plan Provider', raw.get('Operation', ''))}".rstrip()
    return node_type


def _join(node_type: str, kind: str) -> str:
    if kind == "Inner":
        return node_type
    # "Nested Loop Left Join", "Hash Left Join": as in the text format.
    return f"{_JOINS[node_type]} {kind} Join"


_NUMBERED = re.compile(r"(.+)_\d+")
_HEAP = "Bitmap Heap Scan"
_INDEX = "Bitmap Index Scan"
_PARTS = (_INDEX, "BitmapAnd", "BitmapOr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitmap:
    """The bitmap of a heap scan."""

    indexes: str
    """`a_idx`, or `BitmapOr(a_idx, b_idx)`."""
    condition: str
    """The conditions of all indexes, as EXPLAIN would print a single one: `((a = 1) OR (b = 2))`."""


def bitmap_below(raw: Mapping[str, Any]) -> Bitmap | None:
    """Return the bitmap of a bitmap heap scan; None for other nodes."""
    if raw["Node Type"] != _HEAP:
        return None
    parts = [_part(part) for part in raw.get("Plans", []) if is_part(part)]
    return Bitmap(
        indexes=", ".join(part.indexes for part in parts),
        condition=next((part.condition for part in parts if part.condition), ""),
    )


def _below_bitmap(raw: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes below a bitmap heap scan or a part of its bitmap, without its parts: subplans of conditions."""
    for child in raw.get("Plans", []):
        if is_part(child):
            yield from _below_bitmap(child)
        else:
            yield child


def is_part(raw: Mapping[str, Any]) -> bool:
    """Return whether a node below a bitmap heap scan is a part of its bitmap."""
    return raw["Node Type"] in _PARTS


def _part(raw: Mapping[str, Any]) -> Bitmap:
    if raw["Node Type"] == _INDEX:
        return Bitmap(indexes=str(raw.get("Index Name", "")), condition=str(raw.get("Index Cond", "")))
    parts = [_part(part) for part in raw.get("Plans", [])]
    word = " OR " if raw["Node Type"] == "BitmapOr" else " AND "
    conditions = word.join(part.condition for part in parts if part.condition)
    return Bitmap(
        indexes=f"{raw['Node Type']}({', '.join(part.indexes for part in parts)})",
        condition=f"({conditions})" if conditions else "",
    )


_CONDITIONS = ("Cond", "Filter", "Order By", "Run Condition")
_RECHECK = "Recheck Cond"
# Repeats the condition of the index.
REMOTE = "Remote SQL"
"""The statement that a foreign scan sends to another server."""
_KEYS = ("Sort Key", "Group Key", "Presorted Key", "Cache Key")
_REMOTE_NAME = re.compile(r"\br\d+\b")
_CALLS = ("Function Call", "Table Function Call")
_READ = ("Relation Name", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name", "Relations")
_DETAILS = ("Scan Direction", "Sampling Method", "Conflict Resolution")
_USUAL_DETAILS = ("Forward", "NoMovement")
_TEMPORARY = "pg_temp"
_MEMBER = "Member"
_STOPPING_JOINS = ("Semi", "Anti")
_FACTS = (
    "Sort Method",
    "Sort Space Type",
    "Hash Batches",
    "HashAgg Batches",
    "Planned Partitions",
    "Subplans Removed",
)
_CHOICES = ("Cache Mode", "Workers Planned")
# Choices of the planner, like keys.


@dataclass(frozen=True, slots=True, kw_only=True)
class RawNode:
    """A node of EXPLAIN's JSON, and its position in the plan."""

    raw: Mapping[str, Any]
    depth: int
    parent: int | None
    children: list[int]
    """Filled while the nodes below it are read."""
    scope: str
    bitmap: Bitmap | None
    is_alias_generated: bool
    """Whether PostgreSQL numbered the alias: `t_1`."""
    role: str
    """Its relationship to the node above it."""
    is_lone_member: bool
    """Whether it is below a member of an Append, and the only node that reads its relation.

    Its alias is not from the statement: majors up to 12 show a partition p1 of p as `p1`, later ones as `p1 p_1`.
    """


def plan_nodes(root: Mapping[str, Any]) -> tuple[PlanNode, ...]:
    """Return all nodes of a plan. root: its "Plan", a mapping with a "Node Type" like all nodes below it."""
    subplans = SubplanNames(str(raw["Subplan Name"]) for raw in raw_nodes(root) if "Subplan Name" in raw)
    found = _in_order(root, subplans)
    generated = _generated_aliases(found)
    written = {str(node.raw["Alias"]) for node in found if "Alias" in node.raw} - generated.keys()
    bases = written & {_base_and_number(alias)[0] for alias in generated}
    # The first of several reads keeps its name, without quotes like the others.
    names = {base: base for base in bases} | own_names(written, generated)
    spelling = Expressions(subplans, names, _names_of_lone_members(found))
    return tuple(_node(node, spelling, names) for node in found)


def _generated_aliases(found: Iterable[RawNode]) -> dict[str, str | None]:
    """Map aliases that PostgreSQL numbered to their relations, in the order of their numbers.

    It numbers the tables of a statement in their order, but those of subqueries that are planned on their own in the
    order of the plan. The numbers of two plans must therefore be matched (alignment.py).
    """
    aliases = {str(node.raw["Alias"]): _relation(node.raw) for node in found if node.is_alias_generated}
    return dict(sorted(aliases.items(), key=lambda alias: _base_and_number(alias[0])))


def _base_and_number(alias: str) -> tuple[str, int]:
    base, _, number = alias.rpartition("_")
    return base, int(number)


def raw_nodes(root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a node of EXPLAIN's JSON and all nodes below it, in EXPLAIN's order."""
    stack = [root]
    while stack:
        raw = stack.pop()
        yield raw
        stack += reversed(raw.get("Plans", []))


def _in_order(root: Mapping[str, Any], subplans: SubplanNames) -> list[RawNode]:
    """Return nodes before their children. Bitmap index scans are part of the heap scan above them."""
    aliases = {str(raw["Alias"]) for raw in raw_nodes(root) if "Alias" in raw}
    reads = Counter(_relation(raw) for raw in raw_nodes(root))
    found: list[RawNode] = []
    stack: list[tuple[Mapping[str, Any], int, int | None, str, bool]] = [(root, 0, None, MAIN, False)]
    while stack:
        raw, depth, parent, above, is_member = stack.pop()
        place = len(found)
        role = _role(raw, None if parent is None else found[parent].raw)
        is_member = is_member or role == _MEMBER or (parent is not None and _writes_partition(found[parent].raw, role))
        scope = subplans.scope(str(raw["Subplan Name"])) if "Subplan Name" in raw else above
        bitmap = bitmap_below(raw)
        found.append(
            RawNode(
                raw=raw,
                depth=depth,
                parent=parent,
                children=[],
                scope=scope,
                bitmap=bitmap,
                role=role,
                is_alias_generated=_is_generated(raw, aliases, is_member=is_member),
                is_lone_member=is_member and "Alias" in raw and reads[_relation(raw)] == 1,
            )
        )
        if parent is not None:
            found[parent].children.append(place)
        below = raw.get("Plans", []) if bitmap is None else list(_below_bitmap(raw))
        stack += [(child, depth + 1, place, scope, is_member) for child in reversed(below)]
    return found


def _role(raw: Mapping[str, Any], above: Mapping[str, Any] | None) -> str:
    """Return the relationship of a node to the one above it, as 14 and newer print it.

    Up to 13, the only node below a ModifyTable is a member, as if it could have several.
    """
    role = str(raw.get("Parent Relationship", ""))
    if role == _MEMBER and above is not None and above["Node Type"] == "ModifyTable":
        members = [one for one in above["Plans"] if one.get("Parent Relationship") == _MEMBER]
        return "Outer" if len(members) == 1 else role
    return role


def _writes_partition(above: Mapping[str, Any], role: str) -> bool:
    """Return whether a node below this one reads the only partition that a statement writes."""
    return above["Node Type"] == "ModifyTable" and "Target Tables" in above and role == "Outer"


def _is_generated(raw: Mapping[str, Any], aliases: Collection[str], *, is_member: bool) -> bool:
    """Return whether PostgreSQL numbered the alias of a node: `t_1` next to `t`, or for a partition of `t`.

    A statement may use such an alias itself, usually without using `t` as well. aliases: all in the plan. is_member: it
    is below a member of an Append.
    """
    relation, match = _relation(raw), _NUMBERED.fullmatch(str(raw.get("Alias", "")))
    if relation is None or match is None or match[0] == relation:
        return False
    return is_member or match[1] in aliases


def _names_of_lone_members(found: Sequence[RawNode]) -> Mapping[str, str]:
    """Map aliases of relations that are read once, below an Append, to the relation itself.

    The nodes above show the parent's alias, from 13 on without a number: it stands for the first member.
    """
    names: dict[str, str] = {}
    all_aliases = {str(node.raw.get("Alias")) for node in found}
    for node in found:
        alias, relation = str(node.raw.get("Alias")), _relation(node.raw)
        # A statement may give the name of a partition to another table.
        if node.is_lone_member and relation is not None and (alias == relation or relation not in all_aliases):
            names[alias] = relation
    numbered = [node for node in found if node.is_lone_member and node.is_alias_generated]
    # The order of members depends on the plan.
    for node in sorted(numbered, key=lambda node: _base_and_number(str(node.raw["Alias"]))):
        if (parent := _given_alias(node)) not in all_aliases:
            names.setdefault(str(parent), names.get(str(node.raw["Alias"]), str(parent)))
    return names


def _node(node: RawNode, spelling: Expressions, names: Mapping[str, str]) -> PlanNode:
    """names: of repeated reads in expressions, by alias."""
    raw = node.raw
    return PlanNode(
        op=operator(raw),
        family=family(str(raw["Node Type"])),
        depth=node.depth,
        parent=node.parent,
        children=tuple(node.children),
        role=node.role,
        scope=node.scope,
        relation=_relation(raw),
        schema=_schema(raw),
        alias=None if raw.get("Alias") is None else str(raw["Alias"]),
        given_alias=_relation(raw) if node.is_lone_member else _given_alias(node),
        repeated_name="" if node.is_lone_member else names.get(str(raw.get("Alias")), ""),
        indexes=node.bitmap.indexes if node.bitmap is not None else str(raw.get("Index Name", "")),
        detail=_detail(raw),
        conditions=_conditions(node, spelling),
        keys=_keys(raw, spelling),
        facts=_facts(raw),
        measured=measured(raw),
        estimated_rows=float(raw.get("Plan Rows", 0)),
        stops_early=raw.get("Inner Unique") is True or raw.get("Join Type") in _STOPPING_JOINS,
    )


def _given_alias(node: RawNode) -> str | None:
    alias = node.raw.get("Alias")
    if alias is None:
        return None
    return _base_and_number(str(alias))[0] if node.is_alias_generated else str(alias)


def _relation(raw: Mapping[str, Any]) -> str | None:
    return next((str(raw[name]) for name in _READ if raw.get(name) is not None), None)


def _schema(raw: Mapping[str, Any]) -> str:
    name = str(raw.get("Schema", ""))
    # Temporary schemas are numbered by session.
    return _TEMPORARY if name.startswith(_TEMPORARY) else name


def _detail(raw: Mapping[str, Any]) -> str:
    return " ".join(str(raw[name]) for name in _DETAILS if raw.get(name) not in (None, *_USUAL_DETAILS))


def _conditions(node: RawNode, spelling: Expressions) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in node.raw.items():
        if name.endswith(_CONDITIONS) and name != _RECHECK and isinstance(value, str):
            found[name] = spelling.conjuncts(as_plain_calls(value))
    if node.bitmap is not None and node.bitmap.condition:
        found["Index Cond"] = spelling.conjuncts(as_plain_calls(node.bitmap.condition))
    return found


def _keys(raw: Mapping[str, Any], spelling: Expressions) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in (*_KEYS, *_CALLS):
        value = raw.get(name)
        if isinstance(value, str):
            found[name] = (spelling.respell(as_plain_calls(value)),)
        elif isinstance(value, list):
            found[name] = tuple(spelling.respell(as_plain_calls(str(part))) for part in value)
    found |= {name: (str(raw[name]),) for name in _CHOICES if raw.get(name) is not None}
    if isinstance(remote := raw.get(REMOTE), str):
        found[REMOTE] = (_remote(remote),)
    if sets := raw.get("Grouping Sets"):
        found["Grouping Sets"] = tuple(spelling.respell(as_plain_calls(text)) for text in _grouping_sets(sets))
    return found


def _remote(statement: str) -> str:
    """Return a statement for another server with the aliases r1, r2 and so on in their order.

    Their numbers are those of the tables in the local statement, which depend on the major version.
    """
    numbers: dict[str, str] = {}
    return outside_strings(
        statement,
        lambda part: _REMOTE_NAME.sub(lambda match: numbers.setdefault(match[0], f"r{len(numbers) + 1}"), part),
    )


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
