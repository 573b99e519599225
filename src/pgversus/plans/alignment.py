"""Names that PostgreSQL gives to subplans and to repeated reads of a table, made equal in two plans.

Subplans are numbered in the order of each plan, so one that is gone changes the numbers of those after it. Tables
without an alias of their own are numbered in the order of the statement or of the plan.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from pgversus.plans.expressions import renumbered, with_aliases
from pgversus.plans.matching import NodeMatching
from pgversus.plans.plan import Plan, PlanNode

_SUBPLAN = re.compile(r"(InitPlan|SubPlan) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNames:
    """New names in one plan, by its own."""

    subplans: Mapping[str, str] = field(default_factory=dict)
    """Numbers, as text."""
    reads: Mapping[str, str] = field(default_factory=dict)
    """Names of repeated reads in conditions and keys."""

    @property
    def are_old(self) -> bool:
        """Whether nothing has to be renamed."""
        return all(old == new for names in (self.subplans, self.reads) for old, new in names.items())


def names_in_common(baseline: Plan, contender: Plan, matching: NodeMatching) -> PlanNames:
    """Return the names that give matched subplans and reads of the contender the names of the baseline."""
    return PlanNames(
        subplans=_names(baseline, contender, matching, _number_of_subplan, lambda _node, number: str(number)),
        reads=_names(
            baseline,
            contender,
            matching,
            lambda node: node.repeated_name or None,
            lambda node, number: f"{node.relation}_{number}",
        ),
    )


def renamed(plan: Plan, names: PlanNames) -> Plan:
    """Return a plan with new names of subplans and repeated reads."""
    return plan if names.are_old else replace(plan, nodes=tuple(_renamed(node, names) for node in plan.nodes))


def _names(
    baseline: Plan,
    contender: Plan,
    matching: NodeMatching,
    name: Callable[[PlanNode], str | None],
    free_name: Callable[[PlanNode, int], str],
) -> dict[str, str]:
    """Map the contender's names to those of the baseline's nodes with the most pairs.

    name: returns the name of a reading node; None for nodes without one. free_name: returns the name for a node and a
    number.
    """
    common: Counter[tuple[str, str]] = Counter()
    for place, there in matching.pairs:
        was, now = name(baseline.nodes[place]), name(contender.nodes[there])
        if was is not None and now is not None and baseline.nodes[place].relation is not None:
            common[now, was] += 1
    names: dict[str, str] = {}
    taken: set[str] = set()
    for (old, new), _ in common.most_common():
        if old not in names and new not in taken:
            names[old] = new
            taken.add(new)
    used = {found for plan in (baseline, contender) for node in plan.nodes if (found := name(node)) is not None}
    numbers = count(1)
    for node in contender.nodes:
        own = name(node)
        # The others keep their names, or get free ones.
        if own is not None and own not in names:
            free = (one for number in numbers if (one := free_name(node, number)) not in used)
            names[own] = next(free) if own in taken else own
    return names


def _number_of_subplan(node: PlanNode) -> str | None:
    match = _SUBPLAN.fullmatch(node.scope)
    return None if match is None else match[2]


def _renamed(node: PlanNode, names: PlanNames) -> PlanNode:
    def spelled(text: str) -> str:
        return with_aliases(renumbered(text, names.subplans), names.reads)

    return replace(
        node,
        scope=renumbered(node.scope, names.subplans),
        repeated_name=names.reads.get(node.repeated_name, node.repeated_name),
        conditions={name: tuple(sorted(map(spelled, texts))) for name, texts in node.conditions.items()},
        keys={name: tuple(map(spelled, texts)) for name, texts in node.keys.items()},
    )
