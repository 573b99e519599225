"""Changes of operators: subplans pulled up, joins, ways to a table, sorts that are not needed any more."""

from collections.abc import Iterator

from pgversus.plans.changes import Change, Kind
from pgversus.plans.matching import Matching
from pgversus.plans.plan import MAIN, Family, Plan, PlanNode

_ORDERED = ("Index Scan", "Index Only Scan")
_FOLLOWS_ITS_JOIN = "Hash"


def operator_changes(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    """Of two plans that do not have the same operators in the same places: one at least."""
    found = [
        *_moved_scopes(baseline, contender, matching),
        *_other_operators(baseline, contender, matching),
        *_gone(baseline, contender, matching),
        *_new(contender, matching),
    ]
    yield from found or [Change(kind=Kind.ARRANGEMENT, node=contender.root.words, places=(0, 0))]


def _moved_scopes(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    """What was read in a subplan is read in the main plan, or the other way round; once for each subplan."""
    told = set()
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        if was.relation is None or was.scope == now.scope or MAIN not in (was.scope, now.scope):
            continue
        subplan = was.scope if now.scope == MAIN else now.scope
        if subplan not in told:
            told.add(subplan)
            kind = Kind.SUBPLAN_PULLED_UP if now.scope == MAIN else Kind.SUBPLAN_PUSHED_DOWN
            loops = was.measured.loops, now.measured.loops
            yield Change(kind=kind, node=now.target, name=subplan, was=loops[0], now=loops[1], places=(place, there))


def _other_operators(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        if (was.op, was.indexes, was.detail) == (now.op, now.indexes, now.detail) or _is_hash(was, now):
            continue
        if was.family is Family.JOIN and now.family is Family.JOIN:
            kind = Kind.JOIN
        elif was.relation is not None and now.relation is not None:
            kind = Kind.ACCESS
        else:
            kind = Kind.OPERATOR
        yield Change(kind=kind, node=now.words, was=_full(was), now=_full(now), places=(place, there))


def _gone(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    there = dict(matching.pairs)
    for place in matching.removed:
        node = baseline.nodes[place]
        index = _index_in_order(baseline, contender, there, place) if node.family is Family.SORT else None
        if index is not None:
            kind = Kind.ORDER_FROM_INDEX
        elif node.relation is not None:
            kind = Kind.NOT_READ
        else:
            kind = Kind.REMOVED
        if not _is_hash(node):
            yield Change(
                kind=kind, node=_full(node), name=index or node.target, details=_details(node), places=(place, None)
            )


def _new(contender: Plan, matching: Matching) -> Iterator[Change]:
    for place in matching.added:
        node = contender.nodes[place]
        if not _is_hash(node):
            kind = Kind.ADDED if node.relation is None else Kind.READ
            yield Change(kind=kind, node=_full(node), name=node.target, details=_details(node), places=(None, place))


def _index_in_order(baseline: Plan, contender: Plan, there: dict[int, int], sort: int) -> str | None:
    """The index that now gives the order which a sort made: one that is scanned in order where it was not before."""
    for place in baseline.below(sort):
        was = baseline.nodes[place]
        if was.relation is None or place not in there:
            continue
        now = contender.nodes[there[place]]
        if now.op.endswith(_ORDERED) and (was.op, was.indexes) != (now.op, now.indexes):
            return now.indexes
    return None


def _is_hash(*nodes: PlanNode) -> bool:
    """A hash join says it already."""
    return all(node.op.endswith(_FOLLOWS_ITS_JOIN) for node in nodes)


def _full(node: PlanNode) -> str:
    return f"{node.words} {node.detail}".rstrip()


def _details(node: PlanNode) -> tuple[str, ...]:
    conditions = [f"{name}: {' AND '.join(parts)}" for name, parts in node.conditions.items()]
    return (*conditions, *(f"{name}: {', '.join(parts)}" for name, parts in node.keys.items()))
