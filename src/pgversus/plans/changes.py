"""Changes between two plans: their kinds, and the rules that detect them in pairs of nodes."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain

from pgversus.plans.levels import SPILLED, ComparablePlan, PlanLevel
from pgversus.plans.matching import NodeMatching
from pgversus.plans.plan import COUNTS, INIT_PLAN, OperatorFamily, Plan, PlanNode
from pgversus.text.sql import without_literals


class ChangeKind(StrEnum):
    """The kinds of changes."""

    SUBPLAN_PULLED_UP = "subplan pulled up"
    SUBPLAN_PUSHED_DOWN = "subplan pushed down"
    JOIN = "join"
    JOIN_SIDES = "join sides"
    SUBPLAN_KIND = "subplan kind"
    ACCESS = "access"
    OPERATOR = "operator"
    ORDER_FROM_INDEX = "order from an index"
    ADDED = "added"
    REMOVED = "removed"
    NOT_READ = "relation not read"
    READ = "relation read"
    ARRANGEMENT = "arrangement"
    """The same operators in a different order."""
    GENERIC = "generic plan"
    """A custom plan, made for the values of the parameters, became a generic one, or the reverse."""
    CONDITION_MOVED = "condition moved"
    CONDITION_GONE = "condition gone"
    CONDITION_NEW = "condition new"
    KEY_ORDER = "key order"
    KEYS = "keys"
    SPILL_GONE = "spill gone"
    SPILL_NEW = "spill new"
    FACT = "fact"
    LOOPS = "loops"
    ROWS = "rows"
    ROWS_REMOVED = "rows removed"
    ESTIMATE = "estimate"
    MEMORY = "memory"
    TEMP_BLOCKS = "temporary blocks"
    """The size of a spill of both."""
    COUNT = "count"
    """A count of one node, such as heap fetches."""
    BLOCKS = "blocks"
    BYTES = "bytes"
    """Blocks of different sizes, in bytes."""
    JIT = "jit"


_LEVELS = {
    PlanLevel.OPERATORS: (
        ChangeKind.SUBPLAN_PULLED_UP,
        ChangeKind.SUBPLAN_PUSHED_DOWN,
        ChangeKind.JOIN,
        ChangeKind.JOIN_SIDES,
        ChangeKind.SUBPLAN_KIND,
        ChangeKind.ACCESS,
        ChangeKind.OPERATOR,
        ChangeKind.ORDER_FROM_INDEX,
        ChangeKind.ADDED,
        ChangeKind.REMOVED,
        ChangeKind.NOT_READ,
        ChangeKind.READ,
        ChangeKind.ARRANGEMENT,
    ),
    PlanLevel.CONDITIONS: (
        ChangeKind.GENERIC,
        ChangeKind.CONDITION_MOVED,
        ChangeKind.CONDITION_GONE,
        ChangeKind.CONDITION_NEW,
        ChangeKind.KEY_ORDER,
        ChangeKind.KEYS,
    ),
    PlanLevel.BEHAVIOUR: (ChangeKind.SPILL_GONE, ChangeKind.SPILL_NEW, ChangeKind.FACT, ChangeKind.JIT),
    PlanLevel.WORK: (
        ChangeKind.LOOPS,
        ChangeKind.ROWS,
        ChangeKind.ROWS_REMOVED,
        ChangeKind.ESTIMATE,
        ChangeKind.MEMORY,
        ChangeKind.TEMP_BLOCKS,
        ChangeKind.COUNT,
        ChangeKind.BLOCKS,
        ChangeKind.BYTES,
    ),
}
_ORDER = (ChangeKind.JOIN_SIDES, ChangeKind.ARRANGEMENT)
LEVEL_OF = {kind: level for level, kinds in _LEVELS.items() for kind in kinds}
"""The level of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change between two plans."""

    kind: ChangeKind
    node: str
    """The node as EXPLAIN prints it, in the contender's plan if it is in both."""
    was: str | float | None = None
    now: str | float | None = None
    are_rounded: tuple[bool, bool] = (False, False)
    """Whether `was` and `now` are products of rounded numbers, and so only about right."""
    name: str = ""
    """The changed part: a heading, a fact, a subplan."""
    details: tuple[str, ...] = ()
    """Further properties of a node that is in only one plan, such as `Hash Cond c.c2 = d.c2`."""
    places: tuple[int | None, int | None] = (None, None)
    """The positions of the node in both plans; None if it is missing."""


def is_only_order(changes: Iterable[Change]) -> bool:
    """Return whether the same operators are in a different order."""
    return all(change.kind in _ORDER for change in changes if LEVEL_OF[change.kind] is PlanLevel.OPERATORS)


_QUALIFIED = re.compile(r"[\w\"]\.[\w\"]*[A-Za-z_\"](?![\w\"]*\()")
_STRING = re.compile(r"'(?:[^']|'')*'")
_MUCH = 1.1
"""Smaller ratios are ignored: parallel workers, samples and caches cause such differences by themselves."""
_FEW_BLOCKS = 10.0
_MUCH_MEMORY = 1.5
_LITTLE_MEMORY = 2**20
_PER_EXECUTION = "per execution"
_WRITING = ("Insert", "Update", "Delete", "Merge")
_OTHER_ESTIMATE = 2.0
"""The ratio of estimation errors from which a change is reported."""

_Amounts = tuple[ChangeKind, float, float] | tuple[ChangeKind, str, str]


def spill_sizes(one: ComparablePlan, other: ComparablePlan, matching: NodeMatching) -> Iterator[Change]:
    """Yield changes in the size of the temporary files of nodes that spill in both plans."""
    if one.plan.block_bytes != other.plan.block_bytes:
        return
    in_workers = one.plan.in_workers(), other.plan.in_workers()
    for place, there in matching.pairs:
        was, now = one.own[place].temp_blocks or 0.0, other.own[there].temp_blocks or 0.0
        is_one_process = not (in_workers[0][place] or in_workers[1][there])
        is_same_node = one.plan.nodes[place].op == other.plan.nodes[there].op
        have_spilled = one.facts[place].get(SPILLED) is True and other.facts[there].get(SPILLED) is True
        if is_one_process and is_same_node and have_spilled and _is_much(was, now):
            text = other.plan.nodes[there].text
            yield Change(kind=ChangeKind.TEMP_BLOCKS, node=text, was=was, now=now, places=(place, there))


def amount_changes(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    """Yield changes in the amounts of nodes in both plans, and in the blocks of the whole plans."""
    in_workers = baseline.in_workers(), contender.in_workers()
    processes = baseline.processes(), contender.processes()
    to_the_end = baseline.read_to_the_end(), contender.read_to_the_end()
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        found: list[_Amounts] = []
        if not (in_workers[0][place] or in_workers[1][there]):
            found += _loops(was, now)
            found += _memory(was, now)
            yield from _counts(baseline, contender, (place, there))
        # Rows of partial results, and the share of a worker, depend on how many workers were launched.
        if processes[0][place] == processes[1][there]:
            found += _rows(was, now)
            if to_the_end[0][place] and to_the_end[1][there]:
                found += _estimates(was, now)
        runs = was.measured.loops, now.measured.loops
        for kind, amount, amount_there in found:
            if kind in _AMOUNT_OF and not _is_apart((baseline, contender), (place, there), _AMOUNT_OF[kind]):
                continue
            yield Change(
                kind=kind,
                node=now.text,
                name=_PER_EXECUTION if kind is ChangeKind.ESTIMATE and runs != (1, 1) else "",
                was=amount,
                now=amount_there,
                are_rounded=(_is_rounded(kind, was), _is_rounded(kind, now)),
                places=(place, there),
            )
    yield from _blocks(baseline, contender)


def _blocks(baseline: Plan, contender: Plan) -> Iterator[Change]:
    """Yield the change in the blocks of the whole plans; in bytes if they differ in size, none if a size is unknown."""
    kind, sizes, was, now = ChangeKind.BLOCKS, (1, 1), baseline.root.measured.blocks, contender.root.measured.blocks
    if baseline.block_bytes != contender.block_bytes:
        if baseline.block_bytes is None or contender.block_bytes is None:
            return
        kind, sizes = ChangeKind.BYTES, (baseline.block_bytes, contender.block_bytes)
    if was is None or now is None:
        return
    was, now = was * sizes[0], now * sizes[1]
    planned = [[workers for workers, _ in plan.gathers] for plan in (baseline, contender)]
    # How many of the planned workers are launched is chance, and each reads tables and catalogs of its own.
    is_chance = planned[0] == planned[1] and baseline.gathers != contender.gathers
    is_apart = _is_apart((baseline, contender), (0, 0), lambda node: node.measured.blocks, sizes)
    if is_apart and not is_chance and abs(now - was) > _FEW_BLOCKS * max(sizes) and _is_much(was, now):
        yield Change(kind=kind, node=contender.root.text, was=was, now=now, places=(0, 0))


_AMOUNT_OF: Mapping[ChangeKind, Callable[[PlanNode], float | None]] = {
    ChangeKind.LOOPS: lambda node: node.measured.loops,
    ChangeKind.ROWS: lambda node: node.measured.rows,
    ChangeKind.ROWS_REMOVED: lambda node: node.measured.rows_removed or 0.0,
}


def _is_rounded(kind: ChangeKind, node: PlanNode) -> bool:
    """Return whether the amount of a node is the product of a rounded number."""
    if kind is ChangeKind.ROWS:
        return node.measured.rounding > 0
    return kind is ChangeKind.ROWS_REMOVED and node.measured.rounding_of_removed > 0


def _is_apart(
    plans: tuple[Plan, Plan],
    places: tuple[int, int],
    amount: Callable[[PlanNode], float | None],
    scales: tuple[int, int] = (1, 1),
) -> bool:
    """Return whether the amounts of all executions of both plans are apart: a difference within them may be chance.

    scales: factors that make the amounts comparable.
    """
    ranges = []
    for plan, place, scale in zip(plans, places, scales, strict=True):
        runs = (plan, *(run for run in plan.reruns if len(run.nodes) == len(plan.nodes)))
        values = [scale * found for run in runs if (found := amount(run.nodes[place])) is not None]
        ranges.append((min(values), max(values)) if values else (math.inf, -math.inf))
    (low, high), (low_there, high_there) = ranges
    return high < low_there or high_there < low


def _counts(baseline: Plan, contender: Plan, places: tuple[int, int]) -> Iterator[Change]:
    """Yield changes of counts that both plans report, of nodes that read the same index in the same way."""
    was, now = baseline.nodes[places[0]], contender.nodes[places[1]]
    if (was.op, was.indexes) != (now.op, now.indexes):
        return
    for name in (one for one in COUNTS if one in was.measured.counts and one in now.measured.counts):
        before, after = was.measured.counts[name], now.measured.counts[name]
        is_apart = _is_apart((baseline, contender), places, partial(_count, name))
        if is_apart and abs(after - before) > _FEW_BLOCKS and _is_much(before, after):
            yield Change(kind=ChangeKind.COUNT, node=now.text, name=name, was=before, now=after, places=places)


def _count(name: str, node: PlanNode) -> float | None:
    return node.measured.counts.get(name)


def _loops(was: PlanNode, now: PlanNode) -> Iterator[tuple[ChangeKind, float, float]]:
    before, after = was.measured.loops, now.measured.loops
    if before is not None and after is not None and _is_much(before, after):
        yield ChangeKind.LOOPS, before, after


def _rows(was: PlanNode, now: PlanNode) -> Iterator[tuple[ChangeKind, float, float]]:
    mine, theirs = was.measured, now.measured
    if mine.loops is None or theirs.loops is None:
        return
    rows = mine.rows or 0.0, theirs.rows or 0.0
    if abs(rows[0] - rows[1]) > mine.rounding + theirs.rounding and _is_much(*rows):
        yield ChangeKind.ROWS, *rows
    before, after = mine.rows_removed or 0.0, theirs.rows_removed or 0.0
    if abs(after - before) > mine.rounding_of_removed + theirs.rounding_of_removed and _is_much(before, after):
        yield ChangeKind.ROWS_REMOVED, before, after


def _estimates(was: PlanNode, now: PlanNode) -> Iterator[tuple[ChangeKind, str, str]]:
    before, after = _off(was), _off(now)
    if before is not None and after is not None and max(before, after) / min(before, after) >= _OTHER_ESTIMATE:
        yield ChangeKind.ESTIMATE, _estimate(was, before), _estimate(now, after)


def _memory(was: PlanNode, now: PlanNode) -> Iterator[tuple[ChangeKind, float, float]]:
    before, after = was.measured.memory_bytes, now.measured.memory_bytes
    if was.op != now.op or before is None or after is None:
        return
    low, high = sorted((before, after))
    if high - low >= _LITTLE_MEMORY and high >= low * _MUCH_MEMORY:
        yield ChangeKind.MEMORY, before, after


def _off(node: PlanNode) -> float | None:
    """Return the factor by which the row estimate is off, in either direction; None if it cannot be judged.

    That is the case for a node that was not run, and for one that writes and, without RETURNING, returns no rows.
    """
    if not node.measured.loops or node.measured.rows is None or (node.op in _WRITING and not node.measured.rows):
        return None
    actual = max(1.0, node.measured.rows / node.measured.loops)
    expected = max(1.0, node.estimated_rows)
    return max(actual / expected, expected / actual)


def _estimate(node: PlanNode, off: float) -> str:
    assert node.measured.rows is not None  # noqa: S101 - guaranteed by `off`
    assert node.measured.loops  # noqa: S101 - the same
    return f"{node.estimated_rows:.0f}/{node.measured.rows / node.measured.loops:.0f}/{off:.1f}"


def _is_much(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high > low * _MUCH if low > 0 else high > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlacedCondition:
    """One condition at its node."""

    text: str
    heading: str
    place: int
    node: PlanNode

    @property
    def description(self) -> str:
        return f"{self.heading} of {self.node.text}"

    def is_same_as(self, other: "_PlacedCondition") -> bool:
        """Return whether both texts surely have the same meaning: without VERBOSE, columns lack their tables."""
        return self.node.target == other.node.target or _QUALIFIED.search(_STRING.sub("", self.text)) is not None


_PARAMETER = re.compile(r"\$(\d{1,5})\b")


def generic_changes(baseline: Plan, contender: Plan, parameters: int) -> Iterator[Change]:
    """Yield the change if only one of the plans is generic.

    parameters: number of parameters of the prepared statement. A custom plan contains their values, a generic plan `$1`
    and so on. Up to 16, EXPLAIN also prints `$1` for the result of an InitPlan, so a plan with an InitPlan is left out.
    """
    if any(node.scope.startswith(INIT_PLAN) for plan in (baseline, contender) for node in plan.nodes):
        return
    was, now = (_is_generic(plan, parameters) for plan in (baseline, contender))
    if was is not None and now is not None and was is not now:
        named = {True: "generic", False: "custom"}
        yield Change(kind=ChangeKind.GENERIC, node=contender.root.text, was=named[was], now=named[now], places=(0, 0))


def _is_generic(plan: Plan, parameters: int) -> bool | None:
    """Return whether a plan has a parameter; None if it may have one where it is not printed."""
    if _has_parameter(plan, parameters):
        return True
    return None if any(map(_hides_parameters, plan.nodes)) else False


def _hides_parameters(node: PlanNode) -> bool:
    """Return whether a node may have a parameter in a removed partition, or in a statement for another server."""
    return (
        bool(node.facts.get("Subplans Removed"))
        or (node.family is OperatorFamily.APPEND and not node.children)
        or node.op.startswith(("Foreign Scan", "Custom Scan"))
    )


def _has_parameter(plan: Plan, parameters: int) -> bool:
    lists = (found for node in plan.nodes for found in (*node.conditions.values(), *node.keys.values()))
    numbers = (int(match[1]) for text in chain(*lists) for match in _PARAMETER.finditer(without_literals(text)))
    return any(1 <= number <= parameters for number in numbers)


def condition_changes(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    """Yield moved, removed and added conditions, then changed keys."""
    yield from _conditions(baseline, contender, matching)
    for place, there in matching.pairs:
        yield from _keys(baseline.nodes[place], contender.nodes[there], (place, there))


def _conditions(baseline: Plan, contender: Plan, matching: NodeMatching) -> Iterator[Change]:
    there = dict(matching.pairs)
    held, held_there = _all(baseline), _all(contender)
    kept = Counter((there.get(one.place), one.heading, one.text) for one in held)
    kept_there = Counter((one.place, one.heading, one.text) for one in held_there)
    gone = [one for one in held if (there.get(one.place), one.heading, one.text) not in kept_there]
    new: dict[str, list[_PlacedCondition]] = {}
    for one in held_there:
        if (one.place, one.heading, one.text) not in kept:
            new.setdefault(one.text, []).append(one)
    for one in gone:
        now = next((now for now in new.get(one.text, ()) if now.is_same_as(one)), None)
        if now is not None:
            new[one.text].remove(now)
            yield Change(
                kind=ChangeKind.CONDITION_MOVED,
                node=now.node.text,
                name=one.text,
                was=one.description,
                now=now.description,
                places=(one.place, now.place),
            )
        # Conditions of removed nodes are reported with the nodes.
        elif one.place in there:
            yield Change(
                kind=ChangeKind.CONDITION_GONE,
                node=_subject(contender.nodes[there[one.place]]),
                name=one.heading,
                was=one.text,
                places=(one.place, there[one.place]),
            )
    back = {now: was for was, now in matching.pairs}
    for one in (one for left in new.values() for one in left):
        if one.place in back:
            yield Change(
                kind=ChangeKind.CONDITION_NEW,
                node=_subject(one.node),
                name=one.heading,
                now=one.text,
                places=(back[one.place], one.place),
            )


def _subject(node: PlanNode) -> str:
    """Return the relation that a node reads, which does not change with the operator; without one, the operator."""
    return node.target or node.text


def _all(plan: Plan) -> list[_PlacedCondition]:
    return [
        _PlacedCondition(text=text, heading=heading, place=place, node=node)
        for place, node in enumerate(plan.nodes)
        for heading, texts in node.conditions.items()
        for text in texts
    ]


def _keys(was: PlanNode, now: PlanNode, places: tuple[int, int]) -> Iterator[Change]:
    for heading in dict.fromkeys((*was.keys, *now.keys)):
        before, after = was.keys.get(heading, ()), now.keys.get(heading, ())
        if before != after:
            kind = ChangeKind.KEY_ORDER if sorted(before) == sorted(after) else ChangeKind.KEYS
            yield Change(
                kind=kind,
                node=now.text,
                name=heading,
                was=", ".join(before),
                now=", ".join(after),
                places=places,
            )


def fact_changes(one: ComparablePlan, other: ComparablePlan, matching: NodeMatching) -> Iterator[Change]:
    """Yield changed facts of nodes with the same operator; facts that one major does not report are ignored."""
    baseline, contender = one.plan, other.plan
    if not (baseline.is_measured and contender.is_measured):
        return
    if bool(baseline.jit_functions) != bool(contender.jit_functions):
        functions = baseline.jit_functions or 0, contender.jit_functions or 0
        yield Change(kind=ChangeKind.JIT, node=contender.root.text, was=functions[0], now=functions[1])
    for place, there in matching.pairs:
        was, now = one.facts[place], other.facts[there]
        node = contender.nodes[there]
        if baseline.nodes[place].op != node.op:
            continue
        for name in (one for one in was if one in now):
            if was[name] == now[name]:
                continue
            if name == SPILLED:
                kind = ChangeKind.SPILL_NEW if now[name] else ChangeKind.SPILL_GONE
                blocks = one.own[place].temp_blocks, other.own[there].temp_blocks
                yield Change(kind=kind, node=node.text, was=blocks[0], now=blocks[1], places=(place, there))
            else:
                yield Change(
                    kind=ChangeKind.FACT,
                    node=node.text,
                    name=name,
                    was=str(was[name]),
                    now=str(now[name]),
                    places=(place, there),
                )
