"""Whether a JSON value is a plan: nodes with a type, in lists; what else a major puts there passes through."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from pgversus.errors import PlanError

_TEXTS = (
    "Node Type",
    "Strategy",
    "Partial Mode",
    "Join Type",
    "Operation",
    "Command",
    "Parent Relationship",
    "Subplan Name",
    "Relation Name",
    "Alias",
    "Index Name",
    "CTE Name",
    "Sort Method",
    "Sort Space Type",
)
_NUMBERS = (
    "Plan Rows",
    "Actual Rows",
    "Actual Loops",
    "Actual Total Time",
    "Temp Written Blocks",
    "Shared Hit Blocks",
    "Shared Read Blocks",
    "Local Hit Blocks",
    "Local Read Blocks",
    "Rows Removed by Filter",
    "Rows Removed by Join Filter",
    "Rows Removed by Index Recheck",
)
_NUMBER, _ENDLESS = "a number", "a number without end"
_LARGEST = 1e18
"""No counter of a server comes so far; what is larger is no number that EXPLAIN printed."""
_PLAN = "Plan"
_BELOW = "Plans"
MOST_DEPTH = 250
"""Nodes below each other. Joins of so many tables take a planner hours."""
MOST_NODES = 20_000
"""Of one plan. It has as many where it reads ten thousand partitions."""
_LONGEST_SHOWN = 60


def checked_root(entry: Any, where: str) -> Mapping[str, Any]:
    """The "Plan" of one explained statement, all of its nodes looked at; PlanError that says which is none."""
    if not isinstance(entry, Mapping):
        raise _malformed(where, _kind(entry), 'an object with "Plan" in it')
    if not isinstance(root := entry.get(_PLAN), Mapping):
        # A utility statement (CREATE INDEX, ...) has no plan.
        found = _keys(entry)
        raise _malformed(where, found if _PLAN not in entry else f'"Plan" is {_kind(root)}', '"Plan", an object')
    stack, nodes = [(root, f"{where}, Plan", 1)], 0
    while stack:
        node, path, depth = stack.pop()
        nodes += 1
        if depth > MOST_DEPTH or nodes > MOST_NODES:
            raise _malformed(
                where, "more nodes than any plan has", f"at most {MOST_NODES} nodes, {MOST_DEPTH} below each other"
            )
        _check(node, path)
        below = node.get(_BELOW, [])
        if not isinstance(below, list) or not all(isinstance(child, Mapping) for child in below):
            raise _malformed(f"{path}, Plans", _kind(below), "a list of nodes")
        stack += [(child, f"{path}, Plans[{number}]", depth + 1) for number, child in enumerate(below)]
    return root


def _check(node: Mapping[str, Any], path: str) -> None:
    if "Node Type" not in node:
        raise _malformed(path, _keys(node), 'a node with a "Node Type"')
    for name in _TEXTS:
        if name in node and not isinstance(node[name], str):
            raise _malformed(f"{path}, {name}", _kind(node[name]), "text")
    for name in _NUMBERS:
        if name in node and not is_number(node[name]):
            found = _kind(node[name])
            raise _malformed(f"{path}, {name}", _ENDLESS if found == _NUMBER else found, _NUMBER)


def is_number(value: Any) -> bool:
    """Whether it is one that can be reckoned with: neither true nor false, and not beyond all bounds."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _keys(found: Mapping[str, Any]) -> str:
    """The first of them, as they stand in a message."""
    shown = [repr(key if len(key) <= _LONGEST_SHOWN else f"{key[:_LONGEST_SHOWN]}...") for key in islice(found, 5)]
    return ", ".join(shown) or "an empty object"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), _NUMBER)


def _malformed(where: str, found: str, expected: str) -> PlanError:
    return PlanError(
        "this is not a plan as EXPLAIN (FORMAT JSON) prints it",
        slug="plan-malformed",
        where=where,
        found=found,
        expected=expected,
        to_do="give what EXPLAIN printed, unchanged; only statements that have a plan can be compared",
    )
