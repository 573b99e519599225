"""Compared plans: their JSON document, trees side by side, and the settings that restore a plan."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgversus.answers.plans import ComparedPlans, PlansAnswer, StatisticsCause, UnlikeStatistics
from pgversus.plans.changes import ChangeKind
from pgversus.plans.difference import TimeSplit
from pgversus.plans.levels import PlanLevel
from pgversus.plans.own_work import own
from pgversus.plans.plan import MAIN, Plan, PlanNode
from pgversus.plans.sentences import headline, sentences
from pgversus.records.plans import OverrideReason, RemainingDifference, StatementName, Uncertainty, UncertaintyKind
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, Language, _, listed, translate_stored, use_language
from pgversus.text.units import latency, significant

SCHEMA = "pgversus.plans/1"
NOTHING_COMPARED = N_("no statement has a plan")
"""Untranslated."""


def statement_text(name: StatementName) -> str:
    """Return script, number and text of a statement; for a plan from a file, the text or the number of the plan."""
    if not name.script:
        return name.text or _("plan {number}", number=name.number)
    return _("{script}, statement {number}: {text}", script=name.script, number=name.number, text=name.text)


_UNCERTAIN = {
    UncertaintyKind.VOLATILE: N_("{name} is volatile: rows may differ by chance"),
    UncertaintyKind.CLOCK: N_("{name} depends on the time of execution"),
    UncertaintyKind.SERVER: N_("the result of {name} depends on the server, not on its data"),
    UncertaintyKind.SAMPLE: N_("TABLESAMPLE returns a sample of the rows"),
    UncertaintyKind.LIMIT: N_("{name} without ORDER BY may return any of the rows"),
    UncertaintyKind.LIMIT_WITH_TIES: N_("{name} may return any of the rows that tie in the ORDER BY"),
    UncertaintyKind.INNER_LIMIT: N_("a LIMIT in a subquery or view may choose different rows"),
    UncertaintyKind.DISTINCT_ON: N_("DISTINCT ON may return any of the rows that tie in the ORDER BY"),
    UncertaintyKind.WINDOW_TIES: N_("{name} depends on the order of rows that may be ties"),
    UncertaintyKind.AGGREGATE_ORDER: N_("the result of {name} without ORDER BY depends on the order of its input rows"),
    UncertaintyKind.FLOAT: N_("{name} of floating-point numbers depends on their order"),
    UncertaintyKind.EARLIER: N_("an earlier statement writes values that may differ by chance"),
}


def uncertainty_text(one: Uncertainty) -> str:
    """Return why the same data may give different rows."""
    return _(_UNCERTAIN[one.kind], name=one.name)


def uncertain_text(name: StatementName, reasons: Sequence[Uncertainty]) -> str:
    """Return a statement with the reasons why its rows cannot be compared."""
    return _("{statement} ({reasons})", statement=statement_text(name), reasons=listed(map(uncertainty_text, reasons)))


def plan_warnings(answer: PlansAnswer) -> list[str]:
    """Return caveats to read before the plans: different rows, missing plans, then different statistics."""
    rows = [text for one in answer.compared if (text := _rows_warning(one))]
    missing = [
        _("not compared: {statement} ({reason})", statement=one.statement, reason=translate_stored(one.reason))
        for one in answer.not_compared
    ]
    return rows + missing + [statistics_note(one) for one in answer.unlike]


def _rows_warning(one: ComparedPlans) -> str:
    """Return how the rows differ, or why they cannot be compared; empty if they are the same or were not checked."""
    if one.rows is None or one.rows.is_same:
        return ""
    values = {"contender": one.labels[1], "baseline": one.labels[0], "statement": statement_text(one.statement)}
    if one.rows.uncertainties:
        uncertain = uncertain_text(one.statement, one.rows.uncertainties)
        return _(
            "the rows of {contender} and {baseline} cannot be compared: {uncertain}",
            uncertain=uncertain,
            **values,
        )
    if one.rows.differs_only_in_order:
        return _("{contender} returns the rows in a different order from {baseline}: {statement}", **values)
    return _("the rows of {contender} differ from those of {baseline}: {statement}", **values)


def statistics_note(one: UnlikeStatistics) -> str:
    """Return the consequence of different statistics, as a sentence."""
    values = {"tables": listed(one.tables), "baseline": one.labels[0], "contender": one.labels[1]}
    if one.cause is StatisticsCause.TARGET:
        return _(
            "the statistics of {tables} differ between {baseline} and {contender}, whose default_statistics_target "
            "differs: plans may differ because of it",
            **values,
        )
    if one.cause is StatisticsCause.UNKNOWN:
        return _(
            "the statistics of {tables} differ between {baseline} and {contender}: plans may differ because of it (run "
            "ANALYZE on both servers, with the same statistics targets and extended statistics)",
            **values,
        )
    if one.may_be_full:
        return _(
            "the statistics of {tables} differ between {baseline} and {contender}: plans may differ by chance "
            "(--full-statistics makes those of tables of up to 3 million rows equal)",
            **values,
        )
    return _(
        "the statistics of {tables} differ between {baseline} and {contender}: plans may differ by chance", **values
    )


def plans_document(answer: PlansAnswer) -> dict[str, Any]:
    """Return every comparison as lists, dicts and numbers; times in seconds, sentences in English."""
    with use_language(Language.ENGLISH):
        return {
            "schema": SCHEMA,
            "comparisons": [_comparison(one) for one in answer.compared],
            "warnings": plan_warnings(answer),
            "unlike_statistics": [asdict(one) for one in answer.unlike],
            "not_compared": [asdict(one) for one in answer.not_compared],
        }


def _comparison(one: ComparedPlans) -> dict[str, Any]:
    found = one.difference
    return {
        "statement": statement_text(one.statement),
        "baseline": one.labels[0],
        "contender": one.labels[1],
        "level": found.level.value,
        "same_plan": found.is_same_plan,
        "same_rows": None if one.rows is None else one.rows.is_same,
        "rows_compared": None if one.rows is None else one.rows.method.value,
        "rows_uncertain": [] if one.rows is None else list(map(uncertainty_text, one.rows.uncertainties)),
        "headline": headline(found),
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
        "time": None if found.time is None else _time(found.time),
        "execution_s": [plan.execution_s for plan in one.plans],
        "settings": [dict(plan.settings) for plan in one.plans],
    }


def _time(time: TimeSplit) -> dict[str, float | None]:
    parts = {"changed": time.changed, "unchanged": time.unchanged, "unexplained": time.unexplained}
    seconds = {f"{name}_s": part.seconds for name, part in parts.items()}
    return seconds | {f"{name}_error_s": part.error_s for name, part in parts.items()}


_STEP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A plan node, as text."""

    depth: int
    text: str
    ran: str
    """Rows, loops and own time if executed, otherwise the estimated rows."""
    details: tuple[str, ...]
    """Conditions and keys."""


def tree(plan: Plan) -> list[TreeNode]:
    """Return the nodes of a plan, in order."""
    return [
        TreeNode(
            depth=node.depth,
            text=f"{_subplan(plan, node)}{node.text}",
            ran=_ran(node, mine.time_s),
            details=node.details,
        )
        for node, mine in zip(plan.nodes, own(plan), strict=True)
    ]


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the nodes of a plan as lines of text."""
    for node in tree(plan):
        indent = " " * _STEP * node.depth
        yield f"{indent}{node.text}  ({node.ran})"
        yield from (f"{indent}{' ' * _STEP}{text}" for text in node.details)


def _subplan(plan: Plan, node: PlanNode) -> str:
    """Return the name of a subplan at its top node; otherwise an empty string."""
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


_OF_THE_WHOLE = frozenset({ChangeKind.BLOCKS, ChangeKind.BYTES, ChangeKind.JIT, ChangeKind.GENERIC})
"""Changes of the whole plan, which are reported at its top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """A node of each plan, or of only one of them."""

    baseline: TreeNode | None
    contender: TreeNode | None
    is_changed: bool
    """Whether a change concerns one of the nodes."""


def plan_rows(one: ComparedPlans) -> list[PlanRow]:
    """Return every node of both plans, each plan in its own order.

    If nodes have moved, as many as possible are side by side without breaking the order.
    """
    trees = [tree(plan) for plan in one.plans]
    own_changes = [change for change in one.difference.changes if change.kind not in _OF_THE_WHOLE]
    changed = [{change.places[side] for change in own_changes} for side in (0, 1)]
    rows = []
    for ours, theirs in _places(one.difference.pairs, len(trees[0]), len(trees[1])):
        rows.append(
            PlanRow(
                baseline=None if ours is None else trees[0][ours],
                contender=None if theirs is None else trees[1][theirs],
                # A node without a counterpart was removed, added or moved.
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
    """Return as many pairs as possible that ascend on both sides: a longest increasing subsequence (Schensted)."""
    ends: list[int] = []
    """For each length, the index in `ordered` of the last pair of the chain that ends lowest."""
    lowest: list[int] = []
    """The other side's place of that last pair."""
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


_WHY = {
    OverrideReason.NEW_SWITCH: N_("a planner setting that {old} does not have"),
    OverrideReason.CHANGED_DEFAULT: N_("the default of {old}"),
    OverrideReason.OTHER_VALUE: N_("the value on {old}"),
    OverrideReason.SWITCH: N_("a planner setting available on both"),
    OverrideReason.MEMORY: N_("both have the same memory limit, but the plans spilled differently"),
}
_PLANNED = {
    None: N_("with {settings} ({why}), {new} uses the plan of {old}"),
    RemainingDifference.SORTS: N_("with {settings} ({why}), {new} uses the plan of {old}, except for sorts"),
    RemainingDifference.BATCHES: N_(
        "with {settings} ({why}), {new} uses the plan of {old}, except for the number of batches"
    ),
}
_RUN = {
    None: N_("with {settings} ({why}), {new} executes the plan as {old} does"),
    RemainingDifference.SORTS: N_("with {settings} ({why}), {new} executes the plan as {old} does, except for sorts"),
    RemainingDifference.BATCHES: N_(
        "with {settings} ({why}), {new} executes the plan as {old} does, except for the number of batches"
    ),
}


def override_text(one: ComparedPlans) -> str:
    """Return a sentence on settings that restore a plan; empty if no plan has changed, or no search was made."""
    if not one.is_searched or one.difference.is_executed_alike:
        return ""
    old, new = one.labels
    is_run = one.difference.level is PlanLevel.BEHAVIOUR
    if one.undone_by is None:
        if is_run:
            return _("no setting was found that makes {new} execute the plan as {old} does", old=old, new=new)
        return _("no setting was found that makes {new} use the plan of {old}", old=old, new=new)
    candidate, found = one.undone_by.candidate, (_RUN if is_run else _PLANNED)[one.undone_by.but_for]
    why = _(_WHY[candidate.why], old=old, new=new)
    return _(found, settings=candidate.text, why=why, old=old, new=new)


_MOST_WITH_TREES = 20
"""Number of comparisons above which the trees of equal plans are omitted."""


def plans_text(answer: PlansAnswer) -> str:
    """Return the warnings, then a part for each comparison, and how many plans have changed if there are many."""
    warnings = [_("caveat: {caveat}", caveat=text) for text in plan_warnings(answer)]
    parts = [warnings] if warnings else []
    are_many = len(answer.compared) > _MOST_WITH_TREES
    parts += [
        list(_part(one, with_trees=not (are_many and one.difference.is_same_plan))) for one in answer.compared
    ] or [[_(NOTHING_COMPARED)]]
    if are_many:
        changed = sum(not one.difference.is_same_plan for one in answer.compared)
        parts.append([_("{changed} of {total} plans are different", changed=changed, total=len(answer.compared))])
    return "\n".join(visible("\n".join(lines)) + "\n" for lines in parts)


def _part(one: ComparedPlans, *, with_trees: bool) -> Iterator[str]:
    baseline, contender = one.labels
    yield statement_text(one.statement)
    yield f"{baseline} -> {contender}: {headline(one.difference)}"
    yield from (f"  - {text}" for text in sentences(one.difference))
    if undone := override_text(one):
        yield f"  {undone}"
    if timing := times(one):
        yield f"  {timing}"
    for label, plan in zip(one.labels, one.plans, strict=True) if with_trees else ():
        yield ""
        yield f"{label}:"
        yield from (f"  {line}" for line in plan_lines(plan))


def times(one: ComparedPlans) -> str:
    """Return the parts whose EXPLAIN timing differs by more than its own spread; empty for none, or for equal plans.

    The spread of a single execution, or of executions with different plans, is unknown.
    EXPLAIN's timing slows down nodes unequally, so speed is measured without it.
    """
    time = one.difference.time
    if time is None or time.changed.error_s is None or one.difference.is_executed_alike:
        return ""
    parts = {
        N_("{time} in changed nodes"): time.changed,
        N_("{time} in all other nodes"): time.unchanged,
        N_("{time} outside the nodes"): time.unexplained,
    }
    shown = [_(text, time=_signed(part.seconds)) for text, part in parts.items() if not part.is_noise]
    return _("EXPLAIN timing, mean of several executions: {parts}", parts=listed(shown)) if shown else ""


def _signed(seconds: float) -> str:
    # Anything below a nanosecond is rounding error.
    seconds = round(seconds, 9)
    return f"{'+' if seconds > 0 else '-' if seconds < 0 else ''}{latency(abs(seconds))}"
