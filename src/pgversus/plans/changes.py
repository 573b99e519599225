"""Changes between two plans: their kinds, and the rules that detect them in conditions, keys and facts."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from pgversus.plans.levels import SPILLED, ComparablePlan, PlanLevel
from pgversus.plans.matching import NodeMatching
from pgversus.plans.plan import INIT_PLAN, OperatorFamily, Plan, PlanNode
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
