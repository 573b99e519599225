"""Plans as EXPLAIN prints them, built node by node."""

import json
from typing import Any

from pgversus.plans.explain import read_plans
from pgversus.plans.plan import Plan


def node(kind: str, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a raw node, which ran once in no time and returned one row. Keys are written like `Index_Cond`."""
    usual = {"Plan Rows": 1, "Actual Rows": 1, "Actual Loops": 1, "Actual Total Time": 0.0}
    given = {name.replace("_", " "): value for name, value in more.items()}
    roles = ("Outer", "Inner")
    children = [{"Parent Relationship": roles[min(place, 1)], **child} for place, child in enumerate(below)]
    return {"Node Type": kind, **usual, **given, **({"Plans": children} if below else {})}


def scan(relation: str, kind: str = "Seq Scan", **more: Any) -> dict[str, Any]:
    """Return a raw node that reads a table."""
    return node(kind, **{"Relation_Name": relation, "Alias": relation, **more})


def plan(root: dict[str, Any], **more: Any) -> Plan:
    """Return the parsed plan."""
    (found,) = read_plans(json.dumps([{"Plan": root, **more}]), "made up")
    return found
