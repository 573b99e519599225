"""Which rows of a plan are told apart by which expressions: keys of sorts, of groups and of tables."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgversus.plans.expressions import outside_strings
from pgversus.plans.nodes import raw_nodes
from pgversus.plans.order import key_expression
from pgversus.text.sql import NAME, unquoted_name

Raw = Mapping[str, Any]
"""A node of EXPLAIN (VERBOSE, FORMAT JSON)."""

_COLUMN = re.compile(rf"(?:({NAME})\.)?({NAME})")

KEEP_ORDER = ("Limit", "LockRows", "Result", "Gather Merge", "Materialize")
"""Nodes that return rows in the order of the only node below them."""
SORTED = ("Sort", "Incremental Sort", "Merge Append")
JOINS = ("Nested Loop", "Hash Join", "Merge Join")
SIDES = ("Outer", "Inner")
"""Relationships of the nodes that provide the rows of a node."""
_KEEP_ROWS = (
    "Limit",
    "LockRows",
    "Result",
    "Sort",
    "Incremental Sort",
    "Gather",
    "Gather Merge",
    "Materialize",
    "Memoize",
    "Hash",
    "WindowAgg",
)
"""Nodes that return rows of the nodes below them, each at most once."""
_TABLE_SCANS = (
    "Seq Scan",
    "Index Scan",
    "Index Only Scan",
    "Bitmap Heap Scan",
    "Tid Scan",
    "Tid Range Scan",
    "Sample Scan",
)


@dataclass(frozen=True, kw_only=True)
class PlanKeys:
    """The keys of one plan."""

    root: Raw
    unique_keys: Mapping[tuple[str, str], Sequence[tuple[str, ...]]]
    """By schema and table: each set of columns without nulls that identifies a row."""

    def spelled(self, node: Raw, name: str) -> list[str]:
        """Return expressions of a node without directions, and without the alias if the plan has a single one.

        EXPLAIN (VERBOSE) prints a single alias in keys, but not in outputs.
        """
        return [self.without_alias(key_expression(text)) for text in node.get(name, ())]

    def without_alias(self, text: str) -> str:
        """Return an expression without the alias if the plan has a single one."""
        only = self._only_alias
        return text if only is None else outside_strings(text, lambda part: only.sub("", part))

    @cached_property
    def _only_alias(self) -> re.Pattern[str] | None:
        aliases = {str(node["Alias"]) for node in raw_nodes(self.root) if "Alias" in node}
        if len(aliases) != 1:
            return None
        alias = re.escape(aliases.pop().replace('"', '""'))
        return re.compile(rf'(?<![\w$".])(?:"{alias}"|{alias})\.(?=[\w"])')

    def sort_keys(self, node: Raw) -> set[str] | None:
        """Return the keys of the sort below a node; None if another node provides the order."""
        *_, last = chain(node, ("Unique", "WindowAgg", *KEEP_ORDER))
        return set(self.spelled(last, "Sort Key")) if last["Node Type"] in SORTED else None

    def has_total_order(self, node: Raw) -> bool:
        """Return whether the rows of a node are sorted by keys that identify them."""
        keys = self.sort_keys(node)
        return keys is not None and self.is_identified(node, keys)

    def is_identified(self, node: Raw, keys: AbstractSet[str]) -> bool:
        """Return whether no two rows of a node have the same values of these expressions."""
        kind = node["Node Type"]
        if kind in ("Aggregate", "Group"):
            is_whole = node.get("Partial Mode") != "Partial" and "Grouping Sets" not in node
            return is_whole and keys >= set(self.spelled(node, "Group Key"))
        if kind == "Unique":
            outputs = self.spelled(node, "Output")
            is_whole_row = bool(outputs) and keys >= set(outputs)
            return is_whole_row or all(self.is_identified(one, keys) for one in below(node))
        if kind in _TABLE_SCANS:
            alias = str(node.get("Alias"))
            columns = {column for of, column in _columns(keys) if of in ("", alias)}
            table = str(node.get("Schema")), str(node.get("Relation Name"))
            return any(columns.issuperset(key) for key in self.unique_keys.get(table, ()))
        if kind in _KEEP_ROWS:
            return all(self.is_identified(one, keys) for one in below(node))
        return kind in JOINS and all(self.is_identified(one, keys) for one in _multiplying(node))


def below(node: Raw) -> list[Raw]:
    """Return the nodes that provide the rows of a node: no subplans, and no members of an Append."""
    return [one for one in node.get("Plans", ()) if one.get("Parent Relationship") in SIDES]


def chain(node: Raw, kinds: Collection[str]) -> Iterator[Raw]:
    """Yield a node and the nodes below it, down to the first that is not one of these kinds."""
    yield node
    while node["Node Type"] in kinds and len(next_ones := below(node)) == 1:
        (node,) = next_ones
        yield node


def _multiplying(join: Raw) -> list[Raw]:
    """Return the sides of a join from which several rows may match one row of the other side."""
    kind = join.get("Join Type")
    if kind in ("Right Semi", "Right Anti"):
        # They return rows of their inner side, each once.
        return [one for one in below(join) if one["Parent Relationship"] == "Inner"]
    is_single = kind in ("Semi", "Anti") or (kind in ("Inner", "Left") and join.get("Inner Unique") is True)
    return [one for one in below(join) if not (is_single and one["Parent Relationship"] == "Inner")]


def _columns(expressions: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield alias and name of each expression that is a plain column; the alias is empty if none is printed."""
    for match in map(_COLUMN.fullmatch, expressions):
        if match is not None:
            yield unquoted_name(match[1] or ""), unquoted_name(match[2])
