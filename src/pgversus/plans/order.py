"""Whether an index replaces a sort: reported only if its keys and the nodes above its scan prove it."""

import re
from collections.abc import Mapping, Sequence

from pgversus.plans.expressions import bare
from pgversus.plans.plan import Plan, PlanNode

_ORDERED = ("Index Scan", "Index Only Scan")
_BACKWARD = "Backward"
_KEEP_ORDER = ("Limit", "LockRows", "Materialize", "Result", "Subquery Scan", "Gather Merge")
_KEEP_ORDER_OF_OUTER = "Nested Loop"
_GROUPS = ("GroupAggregate", "Group")
_NEED_ORDER = ("Limit", "Merge", "Unique", "WindowAgg")


def index_for_order(baseline: Plan, contender: Plan, there: Mapping[int, int], sort: int) -> str | None:
    """Return the index from which the contender gets the order that a removed sort gave; None if that is not proven.

    there: positions in the contender's plan by positions in the baseline's. sort: position of the removed sort.

    For a proof, the contender must read the index in order, and the node above the sort, or the client, must need that
    order. No node between them may change it. The index keys must begin with the keys of the sort or of the groups.
    """
    above = baseline.nodes[sort].parent
    if above is not None and above not in there:
        return None
    top = None if above is None else there[above]
    reads = {there[place] for place in baseline.below(sort) if place in there}
    scan = _scan_below(contender, top, reads)
    if scan is None:
        return None
    node = contender.nodes[scan]
    keys = contender.index_keys.get(node.indexes, ())
    if node.detail == _BACKWARD:
        keys = tuple(map(_reversed, keys))
    consumer = None if top is None else contender.nodes[top]
    return node.indexes if _gives(keys, baseline.nodes[sort], consumer) else None


def _scan_below(plan: Plan, top: int | None, reads: set[int]) -> int | None:
    """Return the position of the ordered scan whose rows reach `top` in order; None without one.

    top: None for the client. reads: positions of the nodes that were below the sort.
    """
    for place in reads:
        node = plan.nodes[place]
        if node.op not in _ORDERED:
            continue
        child, above = place, node.parent
        while above != top and above is not None and _keeps_order(plan, above, child):
            child, above = above, plan.nodes[above].parent
        if above == top:
            return place
    return None


def _keeps_order(plan: Plan, place: int, child: int) -> bool:
    node = plan.nodes[place]
    if node.op in _KEEP_ORDER:
        return plan.nodes[child].scope == node.scope
    return node.op.startswith(_KEEP_ORDER_OF_OUTER) and plan.nodes[child].role == "Outer"


def _gives(keys: Sequence[str], sort: PlanNode, consumer: PlanNode | None) -> bool:
    """Return whether these keys of an index give the order that is needed."""
    if consumer is not None and consumer.op.endswith(_GROUPS):
        groups = {column_name(text) for text in consumer.keys.get("Group Key", ())}
        # An aggregate may sort by more than its groups, for its own ORDER BY.
        sorted_by = {column_name(_parts_of_key(text)[0]) for text in sort.keys.get("Sort Key", ())}
        return bool(groups) and {column_name(text) for text in keys[: len(groups)]} == groups == sorted_by
    if consumer is not None and not consumer.op.startswith(_NEED_ORDER):
        return False
    wanted = [_key(text) for text in sort.keys.get("Sort Key", ())]
    return bool(wanted) and list(keys[: len(wanted)]) == wanted


_PLAIN = re.compile(r"(?:[\w$]+|\"[^\"]+\")\.((?:[\w$]+|\"[^\"]+\"))")
_ORDER = re.compile(r"(.*?)((?: DESC)?(?: NULLS (?:FIRST|LAST))?)", re.DOTALL)


def key_expression(key: str) -> str:
    """Return the expression of a sort key, without its direction and enclosing parentheses."""
    return bare(_parts_of_key(key)[0])


def _parts_of_key(key: str) -> tuple[str, str]:
    match = _ORDER.fullmatch(key)
    assert match is not None  # noqa: S101 - it matches everything
    return match[1], match[2]


def _key(text: str) -> str:
    """Return a sort key in the form of an index key: without the table of a plain column."""
    expression, direction = _parts_of_key(text)
    return f"{column_name(expression)}{direction}"


def column_name(text: str) -> str:
    """Return the name of a plain column without its table; other expressions without enclosing parentheses."""
    plain = _PLAIN.fullmatch(bare(text))
    return plain[1] if plain else bare(text)


_NULLS_FIRST, _NULLS_LAST, _DESCENDING = " NULLS FIRST", " NULLS LAST", " DESC"


def _reversed(key: str) -> str:
    """Return the key of a backward scan: descending order has nulls first unless it says otherwise."""
    nulls_first = key.endswith(_NULLS_FIRST) or (_DESCENDING in key and not key.endswith(_NULLS_LAST))
    column = key.removesuffix(_NULLS_FIRST).removesuffix(_NULLS_LAST).removesuffix(_DESCENDING)
    if _DESCENDING in key:
        return f"{column}{_NULLS_FIRST}" if not nulls_first else column
    return f"{column}{_DESCENDING}" if not nulls_first else f"{column}{_DESCENDING}{_NULLS_LAST}"
