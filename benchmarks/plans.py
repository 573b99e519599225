"""Measure the comparison of two plans of 1,000 nodes. `make bench-plans`.

For reference, the table also shows the time of Python's JSON reader for the same two plans, measured in turn.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from pgversus.plans.difference import difference
from pgversus.plans.explain import read_plans

NODES = 1_000
REPEATS = 15
DEPTH = 80
"""Number of tables in each tree of joins."""


def main() -> None:
    """Print the table."""
    heads = f"{'compared':>10}{'read':>10}{'json':>10}"
    print(f"{f'two plans of {NODES} nodes':<44}{heads}   medians of {REPEATS}, in turn")
    for name, one, other in (
        ("partitions, the same plan", partitions("Seq Scan"), partitions("Seq Scan")),
        ("partitions, each read in a different way", partitions("Seq Scan"), partitions("Index Scan")),
        ("partitions, half of them missing", partitions("Seq Scan"), partitions("Seq Scan", NODES // 2)),
        ("joins in deep trees, different join methods", joins("Nested Loop"), joins("Hash Join")),
        ("joins in deep trees, in a different order", joins("Merge Join"), joins("Merge Join", is_turned=True)),
    ):
        texts = [json.dumps([{"Plan": plan}]) for plan in (one, other)]
        read = [read_plans(text, "made up")[0] for text in texts]
        compared, reading, of_json = in_turn(
            partial(difference, *read), partial(each, read_one, texts), partial(each, json.loads, texts)
        )
        print(f"{name:<44}{compared * 1000:>7.1f} ms{reading * 1000:>7.1f} ms{of_json * 1000:>7.1f} ms")


def read_one(text: str) -> object:
    """Read one plan from text."""
    return read_plans(text, "made up")


def each(action: Callable[[str], object], texts: list[str]) -> None:
    """Apply an action to each text."""
    for text in texts:
        action(text)


def partitions(kind: str, count: int = NODES) -> dict[str, Any]:
    """Return a plan with one scan per partition."""
    return node("Append", *(scan(f"part_{number}", kind) for number in range(count - 1)))


def joins(method: str, *, is_turned: bool = False) -> dict[str, Any]:
    """Return a plan of deep join trees under one Append."""
    trees = []
    for tree in range(NODES // (2 * DEPTH)):
        names = [f"t_{tree}_{number}" for number in range(DEPTH)]
        found = scan(names[0], "Seq Scan")
        for name in reversed(names[1:]) if is_turned else names[1:]:
            condition = f"({names[0]}.id = {name}.id)"
            found = node(method, found, scan(name, "Seq Scan"), **{"Join Type": "Inner", "Join Filter": condition})
        trees.append(found)
    return node("Append", *trees)


def scan(relation: str, kind: str) -> dict[str, Any]:
    """Return a node that scans a table."""
    index = {"Index Name": f"{relation}_pkey"} if kind == "Index Scan" else {}
    return node(kind, **{"Relation Name": relation, "Alias": relation, "Filter": "((a > 1) AND (b = 2))", **index})


def node(kind: str, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a node as EXPLAIN (ANALYZE, BUFFERS) prints it."""
    usual = {"Plan Rows": 100, "Actual Rows": 90, "Actual Loops": 1, "Actual Total Time": 1.5, "Shared Hit Blocks": 8}
    return {"Node Type": kind, **usual, **more, **({"Plans": list(below)} if below else {})}


def in_turn(*actions: Callable[[], object]) -> list[float]:
    """Return the median seconds of each action."""
    rounds = [[timed(action) for action in actions] for _ in range(REPEATS)]
    return [median(column) for column in zip(*rounds, strict=True)]


def timed(action: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
