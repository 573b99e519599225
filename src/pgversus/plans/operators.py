"""Changed operators: joins, scans, subplans, and nodes that only one plan has."""

from collections import Counter
from collections.abc import Iterator

from pgversus.plans.changes import Change, ChangeKind
from pgversus.plans.matching import NodeMatching
from pgversus.plans.order import index_for_order
from pgversus.plans.plan import MAIN, OperatorFamily, Plan, PlanNode

_FOLLOWS_ITS_JOIN = "Hash"
_HIDING = ("Foreign Scan", "Custom Scan")
_CALLING = frozenset({"Function Scan", "ProjectSet"})
_MOST_NAMES = 3
_RUNNING_OTHERWISE = (OperatorFamily.JOIN, OperatorFamily.APPEND, OperatorFamily.AUXILIARY)
"""Nodes that may run the nodes below them more or less often than they run themselves."""


def operator_changes(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    """Yield at least one change for two plans with different operators or arrangement."""
    found = [
        *_moved_scopes(baseline, contender, matching),
        *_swapped_sides(baseline, contender, matching),
        *_other_operators(baseline, contender, matching),
        *_gone(baseline, contender, matching),
        *_new(baseline, contender, matching),
    ]
    if not found:
        # Unusual, since a Hash comes and goes with its join; one for each of the other plan is only elsewhere.
        gone, new = (list(one(baseline, contender, matching, hashes=True)) for one in (_gone, _new))
        found = [*gone, *new] if len(gone) != len(new) else []
    yield from found or [Change(kind=ChangeKind.ARRANGEMENT, node=contender.root.text, places=(0, 0))]


def _moved_scopes(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    """Yield relations that moved between a subplan and the main plan, once per subplan, and subplans of changed kind.

    The other plan must have fewer subplans of this kind: otherwise the table is read there for another reason.
    """
    in_workers = baseline.in_workers(), contender.in_workers()
    number, number_there = (
        Counter(_kind_of_scope(scope) for scope in {node.scope for node in plan.nodes})
        for plan in (baseline, contender)
    )
    seen = set()
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        if was.relation is None or was.scope == now.scope:
            continue
        subplan = was.scope if now.scope == MAIN else now.scope
        if subplan in seen:
            continue
        seen.add(subplan)
        loops: tuple[float | None, float | None] = (was.measured.loops, now.measured.loops)
        # A read inside a join of a subplan runs more often than the subplan.
        if in_workers[0][place] or in_workers[1][there] or not (_is_top(baseline, place) and _is_top(contender, there)):
            loops = None, None
        if MAIN not in (was.scope, now.scope):
            if _kind_of_scope(was.scope) != _kind_of_scope(now.scope):
                yield Change(
                    kind=ChangeKind.SUBPLAN_KIND,
                    node=now.target,
                    was=was.scope,
                    now=now.scope,
                    places=(place, there),
                )
            continue
        is_up = now.scope == MAIN
        more = number_there[_kind_of_scope(subplan)] - number[_kind_of_scope(subplan)]
        if more < 0 if is_up else more > 0:
            kind = ChangeKind.SUBPLAN_PULLED_UP if is_up else ChangeKind.SUBPLAN_PUSHED_DOWN
            yield Change(kind=kind, node=now.target, name=subplan, was=loops[0], now=loops[1], places=(place, there))


def _is_top(plan: Plan, place: int) -> bool:
    """Return whether a node is in the main plan, or at the top of its subplan apart from aggregates and sorts."""
    node = plan.nodes[place]
    while node.scope != MAIN and node.parent is not None and plan.nodes[node.parent].scope == node.scope:
        node = plan.nodes[node.parent]
        if node.family in _RUNNING_OTHERWISE:
            return False
    return True


def _kind_of_scope(scope: str) -> str:
    return scope.partition(" ")[0]


def _swapped_sides(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    """Yield joins whose sides are swapped. Two sides that read the same table without aliases look the same."""
    for place, there in matching.pairs:
        sides, sides_there = _sides(baseline, place), _sides(contender, there)
        if sides is None or sides_there is None:
            continue
        below = [matching.below[0][side] for side in sides]
        below_there = [matching.below[1][side] for side in sides_there]
        if below == below_there[::-1] and _reads(baseline, sides[0]) != _reads(baseline, sides[1]):
            yield Change(
                kind=ChangeKind.JOIN_SIDES,
                node=contender.nodes[there].text,
                was=_names(baseline, sides[0]),
                now=_names(contender, sides_there[0]),
                places=(place, there),
            )


def _reads(plan: Plan, place: int) -> Counter[tuple[str | None, str]]:
    nodes = (plan.nodes[place], *(plan.nodes[other] for other in plan.below(place)))
    return Counter((node.relation, node.own_alias) for node in nodes if node.relation is not None)


def _sides(plan: Plan, place: int) -> tuple[int, int] | None:
    """Return the outer and the inner side of a join; None for other nodes."""
    node = plan.nodes[place]
    if node.family is not OperatorFamily.JOIN:
        return None
    by_role = {plan.nodes[child].role: child for child in node.children}
    return (by_role["Outer"], by_role["Inner"]) if {"Outer", "Inner"} <= by_role.keys() else None


def _names(plan: Plan, place: int) -> str:
    """Return the relations that a subtree reads, as text."""
    nodes = [plan.nodes[place], *(plan.nodes[other] for other in plan.below(place))]
    names = list(dict.fromkeys(node.target for node in nodes if node.target)) or [nodes[0].text]
    return ", ".join(names[:_MOST_NAMES] + ["..."] * (len(names) > _MOST_NAMES))


def _other_operators(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        has_moved = was.schema != now.schema
        is_same = (was.op, was.indexes, was.detail) == (now.op, now.indexes, now.detail)
        if _is_hash(was, now) or (is_same and not has_moved):
            continue
        if was.family is OperatorFamily.JOIN and now.family is OperatorFamily.JOIN:
            kind = ChangeKind.JOIN
        elif was.relation is not None and now.relation is not None:
            kind = ChangeKind.ACCESS
        else:
            kind = ChangeKind.OPERATOR
        texts = [f"{_full(node)} ({node.schema})" if has_moved else _full(node) for node in (was, now)]
        yield Change(kind=kind, node=now.text, was=texts[0], now=texts[1], places=(place, there))


def _gone(baseline: Plan, contender: Plan, matching: NodeMatching, *, hashes: bool = False) -> Iterator[Change]:
    there = dict(matching.pairs)
    still_read = _relations(contender, baseline)
    for place in matching.removed:
        node = baseline.nodes[place]
        index = None
        if node.family is OperatorFamily.SORT:
            index = index_for_order(baseline, contender, there, place)
        if index is not None:
            kind = ChangeKind.ORDER_FROM_INDEX
        elif node.relation is not None and still_read is not None and node.relation not in still_read:
            kind = ChangeKind.NOT_READ if node.measured.loops != 0 else ChangeKind.REMOVED
        else:
            kind = ChangeKind.REMOVED
        if hashes or not _is_hash(node):
            yield Change(
                kind=kind, node=_full(node), name=index or node.target, details=node.details, places=(place, None)
            )


def _new(baseline: Plan, contender: Plan, matching: NodeMatching, *, hashes: bool = False) -> Iterator[Change]:
    read_before = _relations(baseline, contender)
    for place in matching.added:
        node = contender.nodes[place]
        if _is_hash(node) and not hashes:
            continue
        is_read = node.relation is not None and read_before is not None and node.relation not in read_before
        kind = ChangeKind.READ if is_read and node.measured.loops != 0 else ChangeKind.ADDED
        yield Change(kind=kind, node=_full(node), name=node.target, details=node.details, places=(None, place))


def _relations(plan: Plan, other: Plan) -> set[str] | None:
    """Return the relations that a plan reads; None if it may read others: on another server, or in a function."""
    if any(name in node.op for node in plan.nodes for name in _HIDING):
        return None
    if {node.text for node in plan.nodes if node.op in _CALLING} - {node.text for node in other.nodes}:
        # The other plan may have inlined the function.
        return None
    return {node.relation for node in plan.nodes if node.relation is not None}


def _is_hash(*nodes: PlanNode) -> bool:
    """Return whether all nodes are Hash nodes, which are reported with changes of their joins."""
    return all(node.op.endswith(_FOLLOWS_ITS_JOIN) for node in nodes)


def _full(node: PlanNode) -> str:
    return f"{node.text} {node.detail}".rstrip()
