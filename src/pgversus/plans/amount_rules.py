"""Changes of amounts of work: loops, rows, estimates, blocks. They differ a little between any two runs."""

from collections.abc import Iterator

from pgversus.plans.changes import Change, Kind
from pgversus.plans.matching import Matching
from pgversus.plans.plan import Plan, PlanNode

_MUCH = 1.1
"""A ratio below which an amount is the same: parallel workers, samples and caches differ that much by themselves."""
_FEW_BLOCKS = 10.0
_OTHER_ESTIMATE = 2.0
"""By how much more or less an estimate must be off to be told."""

_Amounts = tuple[Kind, float, float] | tuple[Kind, str, str]


def amount_changes(baseline: Plan, contender: Plan, matching: Matching) -> Iterator[Change]:
    """Of nodes in both plans; blocks of the whole."""
    for place, there in matching.pairs:
        was, now = baseline.nodes[place], contender.nodes[there]
        found: list[_Amounts] = [*_amounts(was, now), *_estimates(was, now)]
        for kind, amount, amount_there in found:
            yield Change(kind=kind, node=now.words, was=amount, now=amount_there, places=(place, there))
    before, after = baseline.root.measured.blocks, contender.root.measured.blocks
    if before is not None and after is not None and abs(after - before) > _FEW_BLOCKS and _is_much(before, after):
        yield Change(kind=Kind.BLOCKS, node=contender.root.words, was=before, now=after, places=(0, 0))


def _amounts(was: PlanNode, now: PlanNode) -> Iterator[tuple[Kind, float, float]]:
    mine, theirs = was.measured, now.measured
    if mine.loops is None or theirs.loops is None:
        return
    if _is_much(mine.loops, theirs.loops):
        yield Kind.LOOPS, mine.loops, theirs.loops
    rounding = mine.rounding + theirs.rounding
    rows = mine.rows or 0.0, theirs.rows or 0.0
    if abs(rows[0] - rows[1]) > rounding and _is_much(*rows):
        yield Kind.ROWS, *rows
    before, after = mine.rows_removed or 0.0, theirs.rows_removed or 0.0
    if abs(after - before) > rounding and _is_much(before, after):
        yield Kind.ROWS_REMOVED, before, after


def _estimates(was: PlanNode, now: PlanNode) -> Iterator[tuple[Kind, str, str]]:
    before, after = _off(was), _off(now)
    if before is not None and after is not None and max(before, after) / min(before, after) >= _OTHER_ESTIMATE:
        yield Kind.ESTIMATE, _estimate(was, before), _estimate(now, after)


def _off(node: PlanNode) -> float | None:
    """How many times too high or too low the planner's rows are; None for a node that did not run."""
    if not node.measured.loops or node.measured.rows is None:
        return None
    actual = max(1.0, node.measured.rows / node.measured.loops)
    expected = max(1.0, node.estimated_rows)
    return max(actual / expected, expected / actual)


def _estimate(node: PlanNode, off: float) -> str:
    assert node.measured.rows is not None  # noqa: S101 - or there would be no `off`
    assert node.measured.loops  # noqa: S101 - the same
    return f"{node.estimated_rows:.0f}/{node.measured.rows / node.measured.loops:.0f}/{off:.1f}"


def _is_much(before: float, after: float) -> bool:
    low, high = sorted((before, after))
    return high > low * _MUCH if low > 0 else high > 0
