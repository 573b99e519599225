"""Claims about two plans: made-up plans are changed at random, and every change that is found must be true of both."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from pgversus.plans.explain import read_plans
from pgversus.plans.plan import Plan
from tests.claims import check_claims
from tests.fuzz.target import Target

Node = dict[str, Any]

_RELATIONS = ("a", "b", "c", "d")
_COLUMNS = ("k1", "k2", "k3")
INDEX_KEYS = {f"{relation}_{column}": (column, "k3") for relation in _RELATIONS for column in _COLUMNS[:2]}
_UNARY = ("Sort", "Aggregate", "Limit", "Materialize", "Unique", "WindowAgg", "Gather", "Gather Merge", "LockRows")
_JOINS = ("Nested Loop", "Hash Join", "Merge Join")
_VALUE, _PARAMETER = " 1)", " $1)"
"""The value of the parameter in custom plans, and the parameter in generic plans."""
_BLOCK_SIZE = "Block Size"
"""EXPLAIN does not print it."""
_TYPES = ("Inner", "Inner", "Left", "Right", "Semi", "Anti")


def _node(kind: str, rng: Random, *below: Node, **more: Any) -> Node:
    rows = rng.choice((0, 1, 10, 1000))
    node = {
        "Node Type": kind,
        "Plan Rows": rng.choice((1, 10, 1000)),
        "Actual Rows": rows,
        "Actual Loops": rng.choice((1, 1, 1, 0, 3)),
        "Actual Total Time": rng.random() * 10,
        "Shared Hit Blocks": rng.randrange(1000),
        "Temp Written Blocks": rng.choice((0, 0, 5)),
        "Peak Memory Usage": rng.choice((100, 100, 5000)),
        "Heap Fetches": rng.choice((0, 0, 500)),
    }
    roles = ("Outer", "Inner")
    children = [{"Parent Relationship": roles[min(place, 1)], **child} for place, child in enumerate(below)]
    return {**node, **more, **({"Plans": children} if below else {})}


def _scan(rng: Random) -> Node:
    relation = rng.choice(_RELATIONS)
    alias = rng.choice((relation, relation, f"{relation}_1", f"x{rng.randrange(3)}"))
    kind = rng.choice(("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan"))
    more: Node = {"Relation Name": relation, "Alias": alias}
    if rng.random() < 0.5:
        more["Filter"] = _condition(rng, alias)
    if kind.startswith("Index"):
        more |= {"Index Name": f"{relation}_{rng.choice(_COLUMNS[:2])}", "Index Cond": _condition(rng, alias)}
        more["Scan Direction"] = rng.choice(("Forward", "Forward", "Backward"))
    elif kind.startswith("Bitmap"):
        parts = [
            _node("Bitmap Index Scan", rng, **{"Index Name": f"{relation}_k1", "Index Cond": f"(k1 = {number})"})
            for number in range(2)
        ]
        return _node(kind, rng, _node(rng.choice(("BitmapAnd", "BitmapOr")), rng, *parts), **more)
    return _node(kind, rng, **more)


def _condition(rng: Random, alias: str) -> str:
    table = f"{alias}." if rng.random() < 0.7 else ""
    parts = [
        f"({table}{rng.choice(_COLUMNS)} {rng.choice('=<>')} {rng.randrange(2)})" for _ in range(rng.randint(1, 2))
    ]
    return parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"


def _above(rng: Random, below: Node) -> Node:
    kind = rng.choice(_UNARY)
    more: Node = {}
    keys = rng.sample(_COLUMNS, rng.randint(1, 2))
    if kind == "Sort":
        more = {"Sort Key": [f"a.{key}" for key in keys], "Sort Method": rng.choice(("quicksort", "external merge"))}
    elif kind == "Aggregate":
        strategy = rng.choice(("Plain", "Sorted", "Hashed"))
        more = {"Strategy": strategy} | ({} if strategy == "Plain" else {"Group Key": keys})
    elif kind.startswith("Gather"):
        more = {"Workers Planned": rng.randint(1, 2)}
    return _node(kind, rng, below, **more)


def _join(rng: Random, outer: Node, inner: Node) -> Node:
    kind = rng.choice(_JOINS)
    more = {"Join Type": rng.choice(_TYPES)}
    if kind == "Hash Join":
        return _node(kind, rng, outer, _node("Hash", rng, inner), **more, **{"Hash Cond": "(a.k1 = b.k1)"})
    return _node(kind, rng, outer, inner, **more, **({"Merge Cond": "(a.k1 = b.k1)"} if kind == "Merge Join" else {}))


def _with_subplan(rng: Random, below: Node, number: int) -> Node:
    """Add a subplan to the top node of a plan."""
    kind = rng.choice(("SubPlan", "InitPlan"))
    sub = _tree(rng, 1) | {"Parent Relationship": kind, "Subplan Name": f"{kind} {number}"}
    test = rng.choice(("(ANY (a.k1 = ({}).col1))", "({})", "(ALL (a.k2 < ({}).col1))")).format(f"{kind} {number}")
    return below | {"Filter": test, "Plans": [sub, *below.get("Plans", [])]}


def _tree(rng: Random, depth: int) -> Node:
    if depth <= 0 or rng.random() < 0.2:
        return _scan(rng)
    if rng.random() < 0.5:
        return _above(rng, _tree(rng, depth - 1))
    return _join(rng, _tree(rng, depth - 1), _tree(rng, depth - 1))


def _all(root: Node) -> list[Node]:
    found, stack = [], [root]
    while stack:
        node = stack.pop()
        found.append(node)
        stack += node.get("Plans", [])
    return found


def _replace(node: Node, other: Node) -> None:
    """Put another node in the place of this one."""
    kept = {name: node[name] for name in ("Parent Relationship", "Subplan Name") if name in node}
    other = {name: value for name, value in other.items() if name not in ("Parent Relationship", "Subplan Name")}
    node.clear()
    node.update(other | kept)


def _swap(rng: Random, node: Node) -> None:  # noqa: ARG001 - the others need it
    below = [child for child in node.get("Plans", []) if child.get("Parent Relationship") in ("Outer", "Inner")]
    if len(below) == 2:
        one, other = deepcopy(below)
        _replace(below[0], other)
        _replace(below[1], one)


def _drop(rng: Random, node: Node) -> None:
    if below := [child for child in node.get("Plans", []) if child.get("Parent Relationship") == "Outer"]:
        _replace(node, deepcopy(rng.choice(below)))


def _insert(rng: Random, node: Node) -> None:
    _replace(node, _above(rng, deepcopy(node)))


def _rename(rng: Random, node: Node) -> None:
    for name in ("Relation Name", "Alias", "Index Name"):
        if name in node and rng.random() < 0.5:
            node[name] = _scan(rng).get(name, node[name])


def _new_scan(rng: Random, node: Node) -> None:
    if "Relation Name" in node:
        other = _scan(rng) | (
            {"Relation Name": node["Relation Name"], "Alias": node["Alias"]} if rng.random() < 0.8 else {}
        )
        _replace(node, other)


def _new_numbers(rng: Random, node: Node) -> None:
    fresh = _node("Seq Scan", rng)
    node.update({name: fresh[name] for name in fresh if name != "Node Type" and rng.random() < 0.5})


def _new_conditions(rng: Random, node: Node) -> None:
    for name in ("Filter", "Index Cond"):
        if name in node:
            node[name] = _condition(rng, str(node.get("Alias", "a")))
    if "Join Type" in node:
        node["Join Type"] = rng.choice(_TYPES)


def _pull_up(rng: Random, node: Node) -> None:
    """Make a join of a node and its subplan."""
    for sub in [child for child in node.get("Plans", []) if "Subplan Name" in child]:
        rest = {name: value for name, value in node.items() if name not in ("Plans", "Filter")}
        below = [child for child in node["Plans"] if child is not sub]
        inner = {name: value for name, value in sub.items() if name not in ("Parent Relationship", "Subplan Name")}
        _replace(node, _join(rng, rest | ({"Plans": below} if below else {}), deepcopy(inner)))
        return


def _new_subplan(rng: Random, node: Node) -> None:
    for child in node.get("Plans", []):
        if "Subplan Name" in child and rng.random() < 0.5:
            kind = "InitPlan" if child["Parent Relationship"] == "SubPlan" else "SubPlan"
            name = f"{kind} {child['Subplan Name'].split()[1]}"
            child |= {"Parent Relationship": kind, "Subplan Name": name}
            node["Filter"] = f"(ANY (a.{rng.choice(_COLUMNS)} = ({name}).col1))"


_CHANGES: tuple[Callable[[Random, Node], None], ...] = (
    _swap,
    _drop,
    _insert,
    _rename,
    _new_scan,
    _new_numbers,
    _new_conditions,
    _pull_up,
    _new_subplan,
)


def _make(rng: Random) -> tuple[str, str]:
    """Return two plans of one statement, where the second one is the first with some changes."""
    one = _tree(rng, rng.randint(0, 4))
    for number in range(1, 1 + rng.choice((0, 0, 1, 2))):
        place = rng.choice(_all(one))
        _replace(place, _with_subplan(rng, deepcopy(place), number))
    other = deepcopy(one)
    for _ in range(rng.randint(0, 4)):
        rng.choice(_CHANGES)(rng, rng.choice(_all(other)))
    return _entry(rng, one), _entry(rng, other)


def _entry(rng: Random, root: Node) -> str:
    """Return the output of EXPLAIN with this plan, which is generic or compiled at random, and the size of blocks."""
    functions, size = rng.choice((0, 0, 0, 7)), rng.choice((8192, 8192, 8192, 16384))
    text = json.dumps([{"Plan": root, "JIT": {"Functions": functions}, _BLOCK_SIZE: size}])
    return text.replace(_VALUE, _PARAMETER) if rng.random() < 0.2 else text


def plans_in(subject: tuple[str, str]) -> tuple[Plan, Plan]:
    """Return the two plans of an input."""
    baseline, contender = (
        replace(read_plans(text, "made up")[0], block_bytes=json.loads(text)[0][_BLOCK_SIZE]) for text in subject
    )
    return baseline, contender


def _check(subject: tuple[str, str], folder: Path) -> bool:  # noqa: ARG001 - the other targets need it
    check_claims(*plans_in(subject), INDEX_KEYS, parameters=1)
    return True


CLAIMS = Target(name="plan claims", share=10, make=_make, read=_check, most_seconds=5.0)
