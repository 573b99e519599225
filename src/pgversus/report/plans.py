"""Compared plans: their JSON document, trees side by side, and the settings that restore a plan."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgversus.plans.changes import ChangeKind
from pgversus.plans.difference import PlanDifference
from pgversus.plans.levels import PlanLevel
from pgversus.plans.plan import MAIN, Plan, PlanNode, own
from pgversus.plans.sentences import headline, sentences
from pgversus.records.plans import OverrideReason, PlanOverride, RemainingDifference
from pgversus.study.counterfactual import PlanRestoration, settings_together
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, Language, _, listed, use_language
from pgversus.text.units import latency, significant

SCHEMA = "pgversus.plans/1"
NOTHING_COMPARED = N_("no statement has a plan")
"""To be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """The plans of one statement on two arms."""

    statement: str
    """Its text, or which one it is where that is not known."""
    labels: tuple[str, str]
    """Of the baseline and of the contender."""
    plans: tuple[Plan, Plan]
    difference: PlanDifference
    same_rows: bool | None = None
    """Whether both returned the same rows, in whatever order; None where nobody looked, or nothing is returned."""
    undone_by: PlanOverride | None = None
    """Settings with which the contender plans it, or runs it, as the baseline does."""
    is_searched: bool = False
    """Whether such settings were looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikeStatistics:
    """Tables of which ANALYZE has found other things on two arms: by sampling, or by another target."""

    labels: tuple[str, str]
    tables: tuple[str, ...]

    @property
    def words(self) -> str:
        """What follows from it."""
        return _(
            "the statistics of {tables} differ between {baseline} and {contender}: plans may differ by chance (use "
            "--full-statistics to make them equal)",
            tables=listed(self.tables),
            baseline=self.labels[0],
            contender=self.labels[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansAnswer:
    """All that was compared."""

    compared: tuple[ComparedPlans, ...]
    unlike: tuple[UnlikeStatistics, ...] = ()

    def of(self, contender: str) -> tuple[ComparedPlans, ...]:
        """Those of one contender, by its label."""
        return tuple(one for one in self.compared if one.labels[1] == contender)

    @property
    def warnings(self) -> list[str]:
        """What has to be known before any plan is looked at."""
        rows = [
            _(
                "{contender} returns different rows from {baseline}: {statement}",
                contender=one.labels[1],
                baseline=one.labels[0],
                statement=one.statement,
            )
            for one in self.compared
            if one.same_rows is False
        ]
        return rows + [one.words for one in self.unlike]


def plans_document(answer: PlansAnswer) -> dict[str, Any]:
    """Every comparison as plain lists, dicts and numbers; times in seconds, sentences in English."""
    with use_language(Language.ENGLISH):
        return {
            "schema": SCHEMA,
            "comparisons": [_comparison(one) for one in answer.compared],
            "warnings": answer.warnings,
            "unlike_statistics": [asdict(one) for one in answer.unlike],
        }


def _comparison(one: ComparedPlans) -> dict[str, Any]:
    found = one.difference
    return {
        "statement": one.statement,
        "baseline": one.labels[0],
        "contender": one.labels[1],
        "level": found.level.value,
        "same_plan": found.is_same_plan,
        "same_rows": one.same_rows,
        "headline": headline(found.level),
        "sentences": sentences(found),
        "undone_by": None
        if one.undone_by is None
        else {
            "why": one.undone_by.candidate.why.value,
            "settings": dict(one.undone_by.candidate.settings),
            "but_for_sorts": one.undone_by.but_for is RemainingDifference.SORTS,
            "but_for": one.undone_by.but_for,
        },
        "changes": [
            {"kind": change.kind.value, "node": change.node, "name": change.name, "was": change.was, "now": change.now}
            for change in found.changes
        ],
        "fingerprints": {
            name: asdict(prints) for name, prints in zip(("baseline", "contender"), found.fingerprints, strict=True)
        },
        "time": None if found.time is None else asdict(found.time),
        "execution_s": [plan.execution_s for plan in one.plans],
        "settings": [dict(plan.settings) for plan in one.plans],
    }


_STEP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """One operator, as text."""

    depth: int
    words: str
    ran: str
    """Its rows, loops and own time where it was run, else the rows that were expected."""
    details: tuple[str, ...]
    """Its conditions and keys."""


def tree(plan: Plan) -> list[TreeNode]:
    """Its nodes in their order."""
    return [
        TreeNode(
            depth=node.depth,
            words=f"{_subplan(plan, node)}{node.words}",
            ran=_ran(node, mine.time_s),
            details=tuple(_details(node)),
        )
        for node, mine in zip(plan.nodes, own(plan), strict=True)
    ]


def plan_lines(plan: Plan) -> Iterator[str]:
    """The same as lines of text."""
    for node in tree(plan):
        indent = " " * _STEP * node.depth
        yield f"{indent}{node.words}  ({node.ran})"
        yield from (f"{indent}{' ' * _STEP}{text}" for text in node.details)


def _details(node: PlanNode) -> Iterator[str]:
    yield from (f"{heading}: {' AND '.join(parts)}" for heading, parts in node.conditions.items())
    yield from (f"{heading}: {', '.join(parts)}" for heading, parts in node.keys.items())


def _subplan(plan: Plan, node: PlanNode) -> str:
    """Of what is the top of a subplan its name."""
    above = MAIN if node.parent is None else plan.nodes[node.parent].scope
    return f"{node.scope}: " if node.scope != above else ""


def _ran(node: PlanNode, own_s: float | None) -> str:
    measured = node.measured
    if measured.loops is None or measured.rows is None:
        return _("estimated {rows}", rows=_rows(node.estimated_rows))
    if not measured.loops:
        return _("never executed")
    rows = _rows(measured.rows)
    if measured.loops > 1:
        rows = _("{rows} in {loops} loops", rows=rows, loops=significant(measured.loops))
    return rows if own_s is None else listed([rows, latency(own_s)])


def _rows(number: float) -> str:
    return _("1 row") if number == 1 else _("{rows} rows", rows=significant(number))


_OF_THE_WHOLE = frozenset({ChangeKind.BLOCKS, ChangeKind.JIT})
"""Amounts of the whole plan, which are told at its top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A node of each plan, or of one of them alone."""

    baseline: TreeNode | None
    contender: TreeNode | None
    is_changed: bool
    """Whether a change is about it."""


def plan_rows(one: ComparedPlans) -> list[PlanRow]:
    """Every node of both plans, each plan's in its order.

    Where nodes have changed places, as many of them stand side by side as can without breaking the order.
    """
    trees = [tree(plan) for plan in one.plans]
    told = [change for change in one.difference.changes if change.kind not in _OF_THE_WHOLE]
    changed = [{change.places[side] for change in told} for side in (0, 1)]
    rows = []
    for ours, theirs in _places(one.difference.pairs, len(trees[0]), len(trees[1])):
        rows.append(
            PlanRow(
                baseline=None if ours is None else trees[0][ours],
                contender=None if theirs is None else trees[1][theirs],
                # One that stands alone is gone, new, or elsewhere.
                is_changed=ours is None or theirs is None or ours in changed[0] or theirs in changed[1],
            )
        )
    return rows


def _places(pairs: Sequence[tuple[int, int]], ours: int, theirs: int) -> Iterator[tuple[int | None, int | None]]:
    left = right = 0
    for one, other in [*_in_order(pairs), (ours, theirs)]:
        yield from ((place, None) for place in range(left, one))
        yield from ((None, place) for place in range(right, other))
        if (one, other) != (ours, theirs):
            yield one, other
        left, right = one + 1, other + 1


def _in_order(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The most of them that ascend on both sides: a longest increasing subsequence (Schensted)."""
    ends: list[int] = []
    """Of the chains of each length that end lowest: where in `ordered` they end."""
    lowest: list[int] = []
    """With which place on the other side they end."""
    before: list[int | None] = []
    ordered = sorted(pairs)
    for number, (_unused, other) in enumerate(ordered):
        length = bisect_left(lowest, other)
        before.append(ends[length - 1] if length else None)
        ends[length : length + 1] = [number]
        lowest[length : length + 1] = [other]
    chain: list[tuple[int, int]] = []
    number_or_none = ends[-1] if ends else None
    while number_or_none is not None:
        chain.append(ordered[number_or_none])
        number_or_none = before[number_or_none]
    return chain[::-1]


def changed_plans(compared: Sequence[ComparedPlans]) -> list[ComparedPlans]:
    """Statements that are planned otherwise; where none is, those that go another way."""
    changed = [one for one in compared if not one.difference.is_same_plan]
    return changed or [one for one in compared if one.difference.level is PlanLevel.BEHAVIOUR]


def recall_of(compared: Sequence[ComparedPlans], workload: PgbenchWorkload) -> PlanRestoration | None:
    """What brings all changed plans of a contender back; None where nothing has changed, or no way back is known."""
    changed = changed_plans(compared)
    if not changed:
        return None
    if workload.rewrite is not None:
        return PlanRestoration(rewrite=workload.rewrite)
    found = {
        number: one.undone_by.candidate.settings for number, one in enumerate(changed) if one.undone_by is not None
    }
    settings = settings_together(found) if len(found) == len(changed) else None
    return None if settings is None else PlanRestoration(settings=settings)


_WHY = {
    OverrideReason.NEW_SWITCH: N_("a switch that {old} does not have"),
    OverrideReason.CHANGED_DEFAULT: N_("the default of {old}"),
    OverrideReason.OTHER_VALUE: N_("as it is set on {old}"),
    OverrideReason.SWITCH: N_("a switch available on both"),
    OverrideReason.MEMORY: N_("the same setting on both, but {new} needs a different amount of memory"),
}
_PLANNED = {
    None: N_("with {settings} ({why}), {new} uses the plan of {old}"),
    RemainingDifference.SORTS: N_(
        "with {settings} ({why}), {new} uses the plan of {old}, except for sorts of rows that are already in order"
    ),
    RemainingDifference.BATCHES: N_(
        "with {settings} ({why}), {new} uses the plan of {old}, except for the number of batches"
    ),
}
_RUN = {
    None: N_("with {settings} ({why}), {new} executes the plan as {old} does"),
    RemainingDifference.SORTS: N_(
        "with {settings} ({why}), {new} executes the plan as {old} does, except for sorts of rows that are already in "
        "order"
    ),
    RemainingDifference.BATCHES: N_(
        "with {settings} ({why}), {new} executes the plan as {old} does, except for the number of batches"
    ),
}


def undoing(one: ComparedPlans) -> str:
    """A sentence; empty where nothing has changed that a setting could undo, or nobody has tried."""
    level = one.difference.level
    if not one.is_searched or level in (PlanLevel.WORK, PlanLevel.IDENTICAL):
        return ""
    old, new = one.labels
    is_run = level is PlanLevel.BEHAVIOUR
    if one.undone_by is None:
        if is_run:
            return _("no setting was found with which {new} executes the plan as {old} does", old=old, new=new)
        return _("no setting was found with which {new} uses the plan of {old}", old=old, new=new)
    candidate, found = one.undone_by.candidate, (_RUN if is_run else _PLANNED)[one.undone_by.but_for]
    why = _(_WHY[candidate.why], old=old, new=new)
    return _(found, settings=candidate.words, why=why, old=old, new=new)


def plans_text(answer: PlansAnswer) -> str:
    """What has to be known first, then a part for each comparison."""
    warnings = [_("caveat: {caveat}", caveat=text) for text in answer.warnings]
    parts = [warnings] if warnings else []
    parts += [list(_part(one)) for one in answer.compared] or [[_(NOTHING_COMPARED)]]
    return "\n".join(visible("\n".join(lines)) + "\n" for lines in parts)


def _part(one: ComparedPlans) -> Iterator[str]:
    baseline, contender = one.labels
    yield one.statement
    yield f"{baseline} -> {contender}: {headline(one.difference.level)}"
    yield from (f"  - {text}" for text in sentences(one.difference))
    if undone := undoing(one):
        yield f"  {undone}"
    if one.difference.time is not None:
        yield f"  {times(one)}"
    for label, plan in zip(one.labels, one.plans, strict=True):
        yield ""
        yield f"{label}:"
        yield from (f"  {line}" for line in plan_lines(plan))


def times(one: ComparedPlans) -> str:
    """Where EXPLAIN's clock saw a difference. It slows rows down, unequally: speed is what is measured without it."""
    time = one.difference.time
    assert time is not None  # noqa: S101 - asked of plans that were run
    return _(
        "EXPLAIN timing: {changed} in changed nodes, {unchanged} in all other nodes",
        changed=_signed(time.changed_s),
        unchanged=_signed(time.unchanged_s),
    )


def _signed(seconds: float) -> str:
    # What is below a nanosecond comes of adding and taking away.
    seconds = round(seconds, 9)
    return f"{'+' if seconds > 0 else '-' if seconds < 0 else ''}{latency(abs(seconds))}"
