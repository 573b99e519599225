"""Caveats from what was seen: shown beside the verdict, never fixed in silence."""

from collections.abc import Iterator, Sequence

from pgversus.lab.gates.load_gates import load_caveats
from pgversus.lab.gates.measured import Measured, measured_of
from pgversus.lab.gates.plan_gates import plan_caveats
from pgversus.stats.samples import Samples
from pgversus.stats.trials import Block
from pgversus.study.captured import CapturedPlans
from pgversus.study.caveats import Caveat, Difference
from pgversus.study.comparison import Comparison
from pgversus.study.counters import ROWS_WRITTEN
from pgversus.study.design import StopReason
from pgversus.study.preparation import RUNNING_SERVER, ArmFacts, Preparation
from pgversus.study.workload import PgbenchWorkload

_MOST_UNCLOCKED = 0.01
_MOST_SHOWN = 8


def caveats(
    comparison: Comparison,
    preparation: Preparation,
    samples: Samples,
    stopped: StopReason,
    *,
    cpus: int,
    failure: str | None = None,
    plans: CapturedPlans | None = None,
) -> tuple[Caveat, ...]:
    """Every reason to trust this comparison less, the gravest first.

    cpus: that the host could use. failure: why the last run could not go on with it.
    plans: as they were captured, where they were.
    """
    facts, differences, blocks = preparation.arms, preparation.differences, samples.blocks
    measured = [measured_of(arm, blocks) for arm in comparison.arms]
    return (
        *_not_gone_on(failure),
        *_mixed_builds(comparison, facts, differences),
        *plan_caveats(comparison, plans, preparation.not_explained),
        *_unequal_databases(comparison, differences),
        *_unequal_settings(comparison, differences),
        *_unequal_indexes(comparison, differences),
        *_not_restarted(comparison, facts, writes=preparation.writes),
        *_late_writes(preparation, blocks, measured),
        *_failures(comparison, blocks),
        *_failed_transactions(measured),
        *_unclocked(comparison, measured),
        *load_caveats(comparison, samples, measured, cpus=cpus),
        *_interrupted(stopped),
    )


def _not_gone_on(failure: str | None) -> Iterator[Caveat]:
    if failure is not None:
        yield Caveat(slug="not-gone-on", text=f"the last run could not go on with the earlier blocks: {failure}")


def _mixed_builds(
    comparison: Comparison, facts: Sequence[ArmFacts], differences: Sequence[Difference]
) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        parts = _parts(differences, "build", arm.index)
        if parts:
            yield Caveat(
                slug="mixed-builds",
                arm=arm.index,
                text=f"{comparison.baseline.label} ({facts[0].origin}) and {arm.label} ({facts[arm.index].origin}) "
                f"were not built alike, which alone can change speed by up to 1.5 times: {_listed(parts)}",
            )


def _unequal_databases(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        parts = _parts(differences, "database", arm.index)
        if parts:
            yield Caveat(
                slug="unequal-databases",
                arm=arm.index,
                text=f"the databases of {comparison.baseline.label} and {arm.label} are not alike, so that text is "
                f"compared and sorted in another time: {_listed(parts)}",
            )


def _unequal_settings(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        names = [
            f"{d.name} {_quoted(d.values[0])} against {_quoted(d.values[arm.index])}"
            for d in differences
            if d.kind == "setting" and not d.is_default and d.values[0] != d.values[arm.index]
        ]
        if names:
            yield Caveat(
                slug="unequal-settings",
                arm=arm.index,
                text=f"{comparison.baseline.label} and {arm.label} also differ in settings: {'; '.join(names)}",
            )


def _unequal_indexes(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        names = [d.name for d in differences if d.kind == "index" and d.values[0] != d.values[arm.index]]
        if names:
            yield Caveat(
                slug="unequal-indexes",
                arm=arm.index,
                text=f"{comparison.baseline.label} and {arm.label} do not have the same indexes: {', '.join(names)}",
            )


def _not_restarted(comparison: Comparison, facts: Sequence[ArmFacts], *, writes: bool) -> Iterator[Caveat]:
    labels = [arm.label for arm, fact in zip(comparison.arms, facts, strict=True) if fact.origin == RUNNING_SERVER]
    if not labels:
        return
    yield Caveat(
        slug="not-restarted",
        text=f"{' and '.join(labels)}: not ours to restart, so the luck of one start is part of the result",
    )
    if writes:
        yield Caveat(
            slug="worn-data",
            text=f"{' and '.join(labels)}: the load writes, and each block began with what the last one left",
        )


def _late_writes(preparation: Preparation, blocks: Sequence[Block], measured: Sequence[Measured]) -> Iterator[Caveat]:
    """A load that did not write when it was tried, so that it was measured as one that reads only."""
    totals = (one.counters.total(name) for one in measured for name in ROWS_WRITTEN)
    if preparation.writes or all(total == 0 for total in totals):
        return
    writing = [block for block in blocks if any(trial.has_written for trial in block.trials.values())]
    if writing:
        yield Caveat(
            slug="late-writes",
            text=f"the load seemed to read only and then wrote, first in block {writing[0].number} and in "
            f"{len(writing)} of {len(blocks)}: its windows are those of a load that reads, and big data were not put "
            "back before that",
        )


def _failures(comparison: Comparison, blocks: Sequence[Block]) -> Iterator[Caveat]:
    found = [failure for block in blocks for failure in block.failures]
    for arm in comparison.arms if found else ():
        failures = [failure for failure in found if failure.arm == arm.index]
        if failures:
            first = failures[0]
            yield Caveat(
                slug="failed-trials",
                arm=arm.index or None,
                text=f"{len(failures)} of {len(blocks)} trials of {arm.label} failed and count for nothing; "
                f"the first while in {first.phase}: {first.words}",
            )


def _failed_transactions(measured: Sequence[Measured]) -> Iterator[Caveat]:
    for one in measured:
        failed = sum(trial.failed for trial in one.trials)
        if failed:
            yield Caveat(
                slug="failed-transactions",
                arm=one.arm.index or None,
                text=f"{failed} transactions of {one.arm.label} ended in a serialization failure or a deadlock",
            )


def _unclocked(comparison: Comparison, measured: Sequence[Measured]) -> Iterator[Caveat]:
    """With a rate there is no way around what pgbench did not measure (workload/pgbench_log.py)."""
    workload = comparison.workload
    if not isinstance(workload, PgbenchWorkload) or not workload.is_open_loop:
        return
    for one in measured:
        transactions = sum(trial.transactions for trial in one.trials)
        share = sum(trial.unclocked for trial in one.trials) / max(1, transactions)
        if share > _MOST_UNCLOCKED:
            yield Caveat(
                slug="unclocked-transactions",
                arm=one.arm.index or None,
                text=f"pgbench did not look at its clock at the end of {100 * share:.0f} % of the transactions of "
                f"{one.arm.label}, whose replies were there already: their latencies are too low",
            )


def _interrupted(stopped: StopReason) -> Iterator[Caveat]:
    if stopped is StopReason.INTERRUPTED:
        yield Caveat(slug="interrupted", text="interrupted: these are the verdicts so far")


def _parts(differences: Sequence[Difference], kind: str, arm: int) -> list[str]:
    """What of this kind an arm has otherwise than the baseline."""
    return [
        f"{d.name} {_quoted(d.values[0])} against {_quoted(d.values[arm])}"
        for d in differences
        if d.kind == kind and d.values[0] != d.values[arm]
    ]


def _listed(parts: Sequence[str]) -> str:
    more = f"; and {len(parts) - _MOST_SHOWN} more" if len(parts) > _MOST_SHOWN else ""
    return "; ".join(parts[:_MOST_SHOWN]) + more


def _quoted(value: str) -> str:
    return f'"{value}"' if value else "nothing"
