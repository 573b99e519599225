"""What nodes are called: as EXPLAIN's text format says it, which tells more than the node type alone."""

from collections.abc import Mapping
from typing import Any

from pgversus.plans.plan import Family

_OF_STRATEGY = {"Plain": "Aggregate", "Sorted": "GroupAggregate", "Hashed": "HashAggregate", "Mixed": "MixedAggregate"}
_JOINS = {"Nested Loop": "Nested Loop", "Hash Join": "Hash", "Merge Join": "Merge"}
_FAMILIES = {
    **dict.fromkeys(("Nested Loop", "Hash Join", "Merge Join"), Family.JOIN),
    **dict.fromkeys(("Aggregate", "Group", "Unique"), Family.AGGREGATE),
    **dict.fromkeys(("Sort", "Incremental Sort"), Family.SORT),
    **dict.fromkeys(("Append", "Merge Append"), Family.APPEND),
    **dict.fromkeys(("Gather", "Gather Merge"), Family.GATHER),
    **dict.fromkeys(("Hash", "Materialize", "Memoize"), Family.AUXILIARY),
}


def operator(raw: Mapping[str, Any]) -> str:
    """`Parallel Hash Left Join`, `Finalize GroupAggregate`. raw: a node of EXPLAIN's JSON."""
    name = _named(raw)
    mode = raw.get("Partial Mode", "Simple")
    words = [mode] if mode in ("Partial", "Finalize") else []
    if raw.get("Parallel Aware") is True:
        words.append("Parallel")
    if raw.get("Async Capable") is True:
        words.append("Async")
    return " ".join([*words, name])


def family(node_type: str) -> Family:
    """Which operators can stand for it; scans are all that reads, whatever it is called in majors to come."""
    found = _FAMILIES.get(node_type)
    if found is not None:
        return found
    return Family.SCAN if node_type.endswith("Scan") else Family.OTHER


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
    # "Nested Loop Left Join", "Hash Left Join": as the text format has them.
    return f"{_JOINS[node_type]} {kind} Join"
