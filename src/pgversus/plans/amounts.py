"""Changes in the amounts of work of two plans: rows, estimates, executions, memory, blocks and temporary files."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from pgversus.plans.changes import Change, ChangeKind
from pgversus.plans.levels import SPILLED, ComparablePlan
from pgversus.plans.matching import NodeMatching
from pgversus.plans.plan import COUNTS, Plan, PlanNode

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
