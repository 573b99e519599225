"""The work of each node of a plan itself, without that of the nodes below it."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from pgversus.plans.plan import INIT_PLAN, MAIN, OperatorFamily, Plan

_CTE, _CTE_SCAN = "CTE ", "CTE Scan"
_NEARLY = 0.9
"""The share of an InitPlan's time that the node which ran it must have at least; times do not add up exactly."""
_NONE = -1
_RESULT = re.compile(r"\b((?:InitPlan|SubPlan) \d+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWork:
    """The work of a node itself, without the nodes below it."""

    time_s: float | None
    temp_blocks: float | None


def own(plan: Plan) -> list[OwnWork]:
    """Return the own work of each node, in the order of the plan.

    The work of a CTE is subtracted from the nodes that scan it, because they run it, not from the node under which it
    is printed. It is subtracted first from the node with the largest amount, which has run most of it. The work of an
    InitPlan is subtracted from the first node that may have run it and has taken long enough. The times of nodes below
    a Gather are parts of the Gather's time, since their processes run at once. A negative result becomes 0: times
    measured for each row do not add up exactly.
    """
    runners = _runners(plan)
    times = [node.measured.time_s for node in plan.nodes]
    left, of_init_plans = _left(plan, times, runners)
    seconds = _in_wall_time(plan, left, of_init_plans)
    temporary, _ = _left(plan, [node.measured.temp_blocks for node in plan.nodes], runners)
    return [OwnWork(time_s=time_s, temp_blocks=written) for time_s, written in zip(seconds, temporary, strict=True)]


def _left(
    plan: Plan, whole: Sequence[float | None], runners: Mapping[int, Sequence[int]]
) -> tuple[list[float | None], dict[int, float]]:
    """Return the amount of each node without the nodes that it contains, and the amounts of InitPlans that it ran.

    runners: the result of _runners().
    """
    left = list(whole)
    init_plans = {place for place in runners if plan.nodes[place].scope.startswith(INIT_PLAN)}
    for place, amount in enumerate(whole):
        parent = plan.nodes[place].parent
        if parent is None or amount is None or place in init_plans:
            continue
        rest = amount
        for one in sorted(runners.get(place, (parent,)), key=lambda one: -(left[one] or 0.0)):
            before = left[one]
            if before is not None:
                left[one] = max(0.0, before - rest) if place in runners else before - rest
                rest = max(0.0, rest - before)
    of_init_plans: dict[int, float] = {}
    for place in sorted(init_plans):
        amount = whole[place]
        if amount is None:
            continue
        # The times below a Gather are those of several processes.
        own = {
            one: whole[one] if plan.nodes[one].family is OperatorFamily.GATHER else left[one] for one in runners[place]
        }
        enough = (one for one, had in own.items() if (had or 0.0) >= amount * _NEARLY)
        runner = next(enough, _NONE)
        if runner == _NONE:
            runner = max(own, key=lambda one: own[one] or 0.0)
        left[runner] = (left[runner] or 0.0) - amount
        of_init_plans[runner] = of_init_plans.get(runner, 0.0) + amount
    return [None if amount is None else max(0.0, amount) for amount in left], of_init_plans


def _runners(plan: Plan) -> dict[int, Sequence[int]]:
    """Return the nodes that run each CTE, and each SubPlan of several nodes, and those that may run each InitPlan.

    By the position of its top node.
    """
    scans, uses = _scans_of_ctes(plan), _uses_of_subplans(plan)
    above = _gathers_and_appends(plan)
    everywhere = cache(partial(_nodes_of_same_scope, plan))
    found: dict[int, Sequence[int]] = {}
    for place, node in enumerate(plan.nodes):
        if node.parent is None or plan.nodes[node.parent].scope == node.scope:
            continue
        users = uses.get(node.scope, [])
        if node.scope.startswith(_CTE):
            found[place] = scans.get(node.scope.removeprefix(_CTE), ())
        elif node.scope.startswith(INIT_PLAN):
            users = users[bisect_left(users, node.parent) :]
            # EXPLAIN need not print select lists, where any node at or below the parent may use the result.
            candidates = (one for user in users or everywhere(node.parent) for one in (*above[user], user))
            found[place] = tuple(dict.fromkeys(one for one in candidates if one >= node.parent))
        else:
            # Partitions share the SubPlan of a condition, and EXPLAIN prints it once, at the first of them. Nodes above
            # print it as a key, and only read the result.
            users = users[bisect_left(users, node.parent) :]
            if len(users) > 1 and users[0] == node.parent:
                found[place] = users
    return found


def _nodes_of_same_scope(plan: Plan, top: int) -> list[int]:
    """Return a node and those below it that belong to no other subplan."""
    scope = plan.nodes[top].scope
    return [top, *(one for one in plan.below(top) if plan.nodes[one].scope == scope)]


def _gathers_and_appends(plan: Plan) -> list[tuple[int, ...]]:
    """Return for each node those above it that may compute an InitPlan for it: a Gather and an Append, if any.

    A Gather does it for its workers, and an Append to decide which of its members to read.
    """
    found: list[tuple[int, ...]] = []
    for node in plan.nodes:
        if node.parent is None:
            found.append(())
            continue
        above, parent = found[node.parent], plan.nodes[node.parent]
        if parent.family in (OperatorFamily.GATHER, OperatorFamily.APPEND):
            # Of nested ones, the nearest.
            others = [one for one in above if plan.nodes[one].family is not parent.family]
            above = (*others, node.parent)
        found.append(above)
    return found


def _scans_of_ctes(plan: Plan) -> dict[str, list[int]]:
    """Return the positions of the nodes that scan each CTE, by its name."""
    found: dict[str, list[int]] = {}
    for place, node in enumerate(plan.nodes):
        if node.op == _CTE_SCAN and node.relation is not None:
            found.setdefault(node.relation, []).append(place)
    return found


def _uses_of_subplans(plan: Plan) -> dict[str, list[int]]:
    """Return the positions of the nodes that use the result of each InitPlan and SubPlan, by its scope."""
    found: dict[str, list[int]] = {}
    if all(node.scope == MAIN for node in plan.nodes):
        return found
    for place, node in enumerate(plan.nodes):
        texts = (text for texts in (*node.conditions.values(), *node.keys.values()) for text in texts)
        for name in {name for text in texts for name in _RESULT.findall(text)}:
            if name != node.scope:
                found.setdefault(name, []).append(place)
    return found


def _in_wall_time(
    plan: Plan, seconds: Sequence[float | None], of_init_plans: Mapping[int, float]
) -> list[float | None]:
    """Return the own times of nodes; the times below each Gather are scaled down to its total time.

    of_init_plans: seconds of InitPlans that a node ran.
    """
    found = list(seconds)
    in_workers = plan.in_workers()
    for place, node in enumerate(plan.nodes):
        whole = node.measured.time_s
        if node.family is not OperatorFamily.GATHER or whole is None:
            continue
        whole = max(0.0, whole - of_init_plans.get(place, 0.0))
        together = {other: own_s for other in plan.below(place) if in_workers[other] and (own_s := found[other])}
        total = sum(together.values())
        for other, own_s in together.items():
            found[other] = own_s * min(1.0, whole / total)
        found[place] = max(0.0, whole - total)
    return found
