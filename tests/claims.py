"""Check sentences about two plans against these plans, by independent rules."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pgversus.plans.changes import Change, ChangeKind
from pgversus.plans.difference import difference
from pgversus.plans.levels import PlanLevel, in_common_form
from pgversus.plans.plan import MAIN, OperatorFamily, Plan, PlanNode
from pgversus.plans.sentences import sentence, sentences

_CONSUMERS = ("Limit", "Merge", "Unique", "WindowAgg", "GroupAggregate", "Group")
_STOPPERS = ("Limit", "Merge")
_DRAINING = ("Hash", "HashAggregate", "Aggregate", "Partial Aggregate", "Sort")


def check_claims(
    baseline: Plan, contender: Plan, index_keys: Mapping[str, tuple[str, ...]], parameters: int = 0
) -> None:
    """Raise AssertionError with the sentence if a change that is reported between the two plans is not true.

    index_keys: the keys of all indexes. parameters: number of parameters of a prepared statement.
    """
    found = difference(baseline, replace(contender, index_keys=index_keys), parameters=parameters)
    assert sentences(found) or found.level is PlanLevel.IDENTICAL
    plans = in_common_form(baseline, found.contender, parameters)
    for change in found.changes:
        assert _TRUTHS[change.kind](plans, change, index_keys), f"{change.kind}: {sentence(change)} {change}"


_Plans = tuple[Plan, Plan]
_Keys = Mapping[str, tuple[str, ...]]


def _nodes(plans: _Plans, change: Change) -> tuple[PlanNode, PlanNode]:
    was, now = change.places
    assert was is not None
    assert now is not None
    return plans[0].nodes[was], plans[1].nodes[now]


def _place(change: Change, side: int) -> int:
    found = change.places[side]
    assert found is not None
    return found


def _reads(plan: Plan, place: int) -> Counter[tuple[str | None, str | None]]:
    """Return the relations that a node and the nodes below it read, with their own aliases."""
    nodes = [plan.nodes[place], *(plan.nodes[other] for other in plan.below(place))]
    return Counter((node.relation, _alias(node)) for node in nodes if node.relation)


def _alias(node: PlanNode) -> str:
    """Return the alias that the statement gave, without the number of a repetition."""
    given, _, number = (node.alias or "").rpartition("_")
    alias = given if number.isdigit() else node.alias or ""
    return "" if node.relation in (alias, node.alias) else alias


def _above(plan: Plan, place: int) -> Iterator[tuple[PlanNode, PlanNode]]:
    """Yield the nodes above a node, each with its child on the path to the node."""
    node = plan.nodes[place]
    while node.parent is not None:
        above = plan.nodes[node.parent]
        yield above, node
        node = above


def _in_workers(plan: Plan, place: int) -> bool:
    return any(
        above.family is OperatorFamily.GATHER and below.role != "InitPlan" for above, below in _above(plan, place)
    )


def _kinds(plan: Plan, scope: str) -> int:
    kind = scope.partition(" ")[0]
    return len({node.scope for node in plan.nodes if node.scope.partition(" ")[0] == kind})


def _moved_up(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return (
        (was.scope, now.scope) == (change.name, MAIN)
        and (was.relation, _alias(was)) == (now.relation, _alias(now))
        and _kinds(plans[0], was.scope) > _kinds(plans[1], was.scope)
        and (change.was is None or not (_in_workers(plans[0], _place(change, 0))))
    )


def _moved_down(plans: _Plans, change: Change, keys: _Keys) -> bool:
    back = replace(change, places=change.places[::-1], was=change.now, now=change.was)
    return _moved_up((plans[1], plans[0]), back, keys)


def _other_kind(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return was.scope.partition(" ")[0] != now.scope.partition(" ")[0] and MAIN not in (was.scope, now.scope)


def _became(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    assert was.text in str(change.was)
    assert now.text in str(change.now)
    return _reads(plans[0], _place(change, 0)) == _reads(plans[1], _place(change, 1)) and change.was != change.now


def _access(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return (was.relation, _alias(was)) == (now.relation, _alias(now)) and change.was != change.now


def _swapped(plans: _Plans, change: Change, _: _Keys) -> bool:
    sides = []
    for plan, place in zip(plans, change.places, strict=True):
        assert place is not None
        by_role = {plan.nodes[child].role: child for child in plan.nodes[place].children}
        sides.append([_reads(plan, by_role[role]) for role in ("Outer", "Inner")])
    return sides[0] == sides[1][::-1] and sides[0] != sides[1]


def _ordered(plans: _Plans, change: Change, keys: _Keys) -> bool:
    sort = plans[0].nodes[_place(change, 0)]
    scans = [(place, node) for place, node in enumerate(plans[1].nodes) if node.indexes == change.name]
    return any(_gives_order(plans[1], place, node, sort, keys[change.name]) for place, node in scans)


def _gives_order(plan: Plan, place: int, scan: PlanNode, sort: PlanNode, keys: tuple[str, ...]) -> bool:
    if scan.op not in ("Index Scan", "Index Only Scan"):
        return False
    consumer = None
    for above, below in _above(plan, place):
        if above.op.endswith(("Sort", "Hash", "HashAggregate", "Append")) or above.op in ("Gather", "Hash Join"):
            return False
        if above.family is OperatorFamily.JOIN and above.op.startswith("Nested") and below.role == "Inner":
            return False
        if above.op.startswith(_CONSUMERS):
            consumer = above
            break
    if consumer is not None and (groups := consumer.keys.get("Group Key")):
        sorted_by = {key.split()[0].rpartition(".")[2] for key in sort.keys["Sort Key"]}
        return {key.rpartition(".")[2] for key in groups} == set(keys[: len(groups)]) == sorted_by
    wanted = [key.rpartition(".")[2] for key in sort.keys["Sort Key"]]
    return list(keys[: len(wanted)]) == wanted and scan.detail != "Backward"


def _gone(plans: _Plans, change: Change, _: _Keys) -> bool:
    node = plans[0].nodes[_place(change, 0)]
    assert change.places[1] is None
    return node.text in change.node


def _new(plans: _Plans, change: Change, _: _Keys) -> bool:
    node = plans[1].nodes[_place(change, 1)]
    assert change.places[0] is None
    return node.text in change.node


def _not_read(plans: _Plans, change: Change, _: _Keys) -> bool:
    node = plans[0].nodes[_place(change, 0)]
    is_gone = node.relation is not None and node.relation not in {other.relation for other in plans[1].nodes}
    return is_gone and node.measured.loops != 0


def _read(plans: _Plans, change: Change, _: _Keys) -> bool:
    node = plans[1].nodes[_place(change, 1)]
    return node.relation not in {other.relation for other in plans[0].nodes} and node.measured.loops != 0


def _arranged(plans: _Plans, change: Change, _: _Keys) -> bool:  # noqa: ARG001 - all have it
    one, other = (
        Counter((node.op, node.indexes, node.relation, _alias(node)) for node in plan.nodes) for plan in plans
    )
    return one == other


def _held(node: PlanNode, heading: str, text: object) -> bool:
    return text in node.conditions.get(heading, ())


def _condition_gone(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return _held(was, change.name, change.was) and not _held(now, change.name, change.was) and change.node in now.text


def _condition_new(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return _held(now, change.name, change.now) and not _held(was, change.name, change.now) and change.node in now.text


def _condition_moved(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    headings = str(change.was).partition(" of ")[0], str(change.now).partition(" of ")[0]
    is_certain = "." in change.name or was.target == now.target
    return _held(was, headings[0], change.name) and _held(now, headings[1], change.name) and is_certain


def _keys_of(plans: _Plans, change: Change) -> tuple[tuple[str, ...], tuple[str, ...]]:
    was, now = (node.keys.get(change.name, ()) for node in _nodes(plans, change))
    assert (", ".join(was), ", ".join(now)) == (change.was, change.now)
    return was, now


def _other_keys(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _keys_of(plans, change)
    return was != now


def _other_order(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _keys_of(plans, change)
    return was != now and Counter(was) == Counter(now)


def _generic(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = (any("$1" in str(node.conditions) for node in plan.nodes) for plan in plans)
    return was is not now and change.now == ("generic" if now else "custom")


def _spill(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    first, then = was.measured.temp_blocks or 0, now.measured.temp_blocks or 0
    # The numbers include the nodes below, so they are upper bounds for the node itself.
    assert float(change.was or 0) <= first
    assert float(change.now or 0) <= then
    return bool(change.now) if change.kind is ChangeKind.SPILL_NEW else bool(change.was) and not change.now


def _fact(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return (str(was.facts[change.name]), str(now.facts[change.name])) == (change.was, change.now) and was.op == now.op


def _loops(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    assert not any(_in_workers(plan, place or 0) for plan, place in zip(plans, change.places, strict=True))
    return (was.measured.loops, now.measured.loops) == (change.was, change.now)


def _rows(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return ((was.measured.rows or 0), (now.measured.rows or 0)) == (change.was, change.now)


def _removed_rows(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    return ((was.measured.rows_removed or 0), (now.measured.rows_removed or 0)) == (change.was, change.now)


def _estimate(plans: _Plans, change: Change, _: _Keys) -> bool:
    return not any(_may_be_stopped(plan, place or 0) for plan, place in zip(plans, change.places, strict=True))


def _may_be_stopped(plan: Plan, place: int) -> bool:
    for above, below in _above(plan, place):
        if above.op in _DRAINING:
            return False
        if above.op.startswith(_STOPPERS) or above.scope != below.scope:
            return True
    return False


def _memory(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    assert not any(_in_workers(plan, place or 0) for plan, place in zip(plans, change.places, strict=True))
    return was.op == now.op and (was.measured.memory_bytes, now.measured.memory_bytes) == (change.was, change.now)


def _count(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    assert (was.op, was.indexes) == (now.op, now.indexes)
    assert not any(_in_workers(plan, place or 0) for plan, place in zip(plans, change.places, strict=True))
    return (was.measured.counts[change.name], now.measured.counts[change.name]) == (change.was, change.now)


def _temp_blocks(plans: _Plans, change: Change, _: _Keys) -> bool:
    was, now = _nodes(plans, change)
    assert not any(_in_workers(plan, place or 0) for plan, place in zip(plans, change.places, strict=True))
    # The numbers of a node include the nodes below.
    amounts = (
        (float(change.was or 0), was.measured.temp_blocks or 0),
        (float(change.now or 0), now.measured.temp_blocks or 0),
    )
    return was.op == now.op and all(0 < own <= whole for own, whole in amounts)


def _blocks(plans: _Plans, change: Change, _: _Keys) -> bool:
    assert plans[0].block_bytes == plans[1].block_bytes
    return tuple(plan.root.measured.blocks for plan in plans) == (change.was, change.now)


def _bytes(plans: _Plans, change: Change, _: _Keys) -> bool:
    assert plans[0].block_bytes != plans[1].block_bytes
    found = tuple((plan.root.measured.blocks or 0) * (plan.block_bytes or 0) for plan in plans)
    return found == (change.was, change.now)


def _jit(plans: _Plans, change: Change, _: _Keys) -> bool:
    return tuple(plan.jit_functions or 0 for plan in plans) == (change.was, change.now)


_TRUTHS: Mapping[ChangeKind, Callable[[_Plans, Change, _Keys], bool]] = {
    ChangeKind.SUBPLAN_PULLED_UP: _moved_up,
    ChangeKind.SUBPLAN_PUSHED_DOWN: _moved_down,
    ChangeKind.SUBPLAN_KIND: _other_kind,
    ChangeKind.JOIN: _became,
    ChangeKind.JOIN_SIDES: _swapped,
    ChangeKind.ACCESS: _access,
    ChangeKind.OPERATOR: _became,
    ChangeKind.ORDER_FROM_INDEX: _ordered,
    ChangeKind.ADDED: _new,
    ChangeKind.REMOVED: _gone,
    ChangeKind.NOT_READ: _not_read,
    ChangeKind.READ: _read,
    ChangeKind.ARRANGEMENT: _arranged,
    ChangeKind.GENERIC: _generic,
    ChangeKind.CONDITION_MOVED: _condition_moved,
    ChangeKind.CONDITION_GONE: _condition_gone,
    ChangeKind.CONDITION_NEW: _condition_new,
    ChangeKind.KEY_ORDER: _other_order,
    ChangeKind.KEYS: _other_keys,
    ChangeKind.SPILL_GONE: _spill,
    ChangeKind.SPILL_NEW: _spill,
    ChangeKind.FACT: _fact,
    ChangeKind.LOOPS: _loops,
    ChangeKind.ROWS: _rows,
    ChangeKind.ROWS_REMOVED: _removed_rows,
    ChangeKind.ESTIMATE: _estimate,
    ChangeKind.MEMORY: _memory,
    ChangeKind.TEMP_BLOCKS: _temp_blocks,
    ChangeKind.COUNT: _count,
    ChangeKind.BLOCKS: _blocks,
    ChangeKind.BYTES: _bytes,
    ChangeKind.JIT: _jit,
}
