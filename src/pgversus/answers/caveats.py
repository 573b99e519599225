"""Caveats from observations, as data: problems are shown next to the verdict, never corrected silently."""

import math
import re
from collections.abc import Iterator, Sequence

from pgversus.answers.answer import NOT_RESTORED, OTHER_ORDER, OTHER_ROWS, Caveat, about, between
from pgversus.answers.load_caveats import ArmMeasurement, load_caveats, measured_of
from pgversus.answers.plans import rows_by_statement
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import DATABASE_LOCALE, RUNNING_SERVER, ArmFacts, Difference, Preparation
from pgversus.records.trials import Block
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import FARTHEST, Verdict, judge
from pgversus.stats.effects import Samples
from pgversus.stats.hosts import hosts_agree
from pgversus.study.comparison import BASELINE, CacheState, Comparison
from pgversus.study.counters import ROWS_WRITTEN
from pgversus.study.design import StopReason
from pgversus.study.metrics import Metric
from pgversus.study.servers import NEWEST_TESTED_MAJOR
from pgversus.study.workload import loads_of


def plan_caveats(comparison: Comparison, plans: CapturedPlans | None, not_explained: str) -> Iterator[Caveat]:
    """Yield caveats about plans and rows. not_explained: why requested plans are missing; empty if they are not."""
    if not_explained:
        yield Caveat(slug="plans-not-captured", values={"failure": not_explained})
    if plans is None:
        return
    for arm in comparison.contenders:
        rows = rows_by_statement(plans, arm.index)
        for slug, only_order in ((OTHER_ROWS, False), (OTHER_ORDER, True)):
            others = [name for name, one in rows if one.is_same is False and one.differs_only_in_order is only_order]
            if others:
                yield between(slug, comparison, arm, statements=others)
        if uncertain := [(name, one.uncertainties) for name, one in rows if one.uncertainties]:
            yield between("rows-not-comparable", comparison, arm, uncertain=uncertain)
    for arm, sampled in zip(comparison.arms, plans.sampled, strict=bool(plans.sampled)):
        if sampled.failure:
            yield about("plans-not-sampled", arm, failure=sampled.failure)
        elif sampled.others:
            yield about("other-plans-under-load", arm, others=sampled.others, plans=sampled.told)


_MOST_UNCLOCKED = 0.01
_MOST_FAILED = 0.01
_LEAST_SHARE_OF_SERVERS = 0.75
_LONG_WRITING_WINDOW_S = 5.0
_LARGE = 1.1
"""Ratio of throughput; the hidden part of a smaller difference is less than the noise (docs/statistics.md)."""


def caveats(
    comparison: Comparison,
    preparation: Preparation,
    samples: Samples,
    stopped: StopReason,
    *,
    cpus: int,
    failure: str | None = None,
    plans: CapturedPlans | None = None,
    shows_percentiles: bool = True,
    results: Sequence[ContenderResult] = (),
) -> tuple[Caveat, ...]:
    """Return every reason to trust this comparison less, the gravest first.

    cpus: processors available to the host. failure: why the last run could not continue this context.
    plans: as captured; None if they were not. shows_percentiles: whether the answer has percentiles of latencies.
    results: of all contenders; those that only one host has measured yield nothing.
    """
    facts, differences, blocks = preparation.arms, preparation.differences, samples.blocks
    measured = [measured_of(arm, blocks, one.block_bytes) for arm, one in zip(comparison.arms, facts, strict=True)]
    found = (
        *_not_resumed(failure),
        *(host_caveats(comparison, results) if results else ()),
        *_mixed_builds(comparison, facts, differences),
        *_untested_majors(comparison, facts),
        *plan_caveats(comparison, plans, preparation.not_explained),
        *_unchecked_settings(preparation.unchecked_settings),
        *_not_restored(comparison, facts),
        *_unequal_databases(comparison, differences),
        *_unequal_settings(comparison, differences),
        *_unequal_indexes(comparison, differences),
        *_unequal_tables(comparison, differences),
        *_not_restarted(comparison, facts, writes=preparation.writes),
        *_few_processors(comparison),
        *_late_writes(preparation, blocks, measured),
        *_short_writing_windows(comparison, preparation, blocks),
        *_failures(comparison, blocks),
        *_failed_transactions(comparison, measured),
        *_unclocked(comparison, measured),
        *load_caveats(comparison, samples, measured, cpus=cpus, shows_percentiles=shows_percentiles),
        *_interrupted(stopped),
    )
    return tuple(sorted(found, key=lambda caveat: caveat.rank))


def host_caveats(comparison: Comparison, results: Sequence[ContenderResult]) -> Iterator[Caveat]:
    """Yield the ratio of each contender on each host of a fleet, as a grave caveat if the hosts do not agree."""
    for arm, result in zip(comparison.contenders, results, strict=True):
        if result.hosts:
            known = [one for one in result.hosts if abs(one.log_ratio.point) < FARTHEST]
            ratios = [(one.host, math.exp(one.log_ratio.point)) for one in known]
            metric = comparison.design.metric
            shown = {"metric": metric, "hosts": ratios}
            margin = comparison.design.log_margin
            of_all = judge(result.interval, metric, margin)
            if of_all is not Verdict.UNDECIDED and not hosts_agree(of_all, result.hosts, metric, margin):
                yield between("hosts-disagree", comparison, arm, **shown)
            else:
                yield between("many-hosts", comparison, arm, **shown)


def _few_processors(comparison: Comparison) -> Iterator[Caveat]:
    """Yield a caveat if the servers had clearly fewer processors than the host."""
    servers = len(comparison.design.server_processors)
    cpus = servers + len(comparison.design.client_processors)
    if servers and servers < _LEAST_SHARE_OF_SERVERS * cpus:
        yield Caveat(slug="few-processors", values={"servers": servers, "cpus": cpus})


def _not_resumed(failure: str | None) -> Iterator[Caveat]:
    if failure is not None:
        yield Caveat(slug="not-resumed", values={"failure": failure})


def _untested_majors(comparison: Comparison, facts: Sequence[ArmFacts]) -> Iterator[Caveat]:
    """Yield a caveat for each arm whose major version is newer than any that was tested."""
    for arm, found in zip(comparison.arms, facts, strict=True):
        major = re.match(r"\d+", found.version)
        if major and int(major[0]) > NEWEST_TESTED_MAJOR:
            yield about("untested-major", arm, version=found.version, newest=NEWEST_TESTED_MAJOR)


def _mixed_builds(
    comparison: Comparison, facts: Sequence[ArmFacts], differences: Sequence[Difference]
) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        if parts := _parts(differences, "build", arm.index):
            yield between(
                "mixed-builds",
                comparison,
                arm,
                baseline_origin=facts[0].origin,
                contender_origin=facts[arm.index].origin,
                parts=parts,
            )


def _unchecked_settings(failure: str) -> Iterator[Caveat]:
    if failure:
        yield Caveat(slug="settings-not-checked", values={"failure": failure})


def _not_restored(comparison: Comparison, facts: Sequence[ArmFacts]) -> Iterator[Caveat]:
    """Yield caveats about the objects and the settings of a dump that a server did not accept."""
    for arm, found in zip(comparison.arms, facts, strict=True):
        objects = [one for one in found.not_restored if not one.is_setting and one.item != DATABASE_LOCALE]
        if problems := [(one.item, one.message) for one in objects]:
            yield about(NOT_RESTORED, arm, problems=problems)
        if problems := [(one.item, one.message) for one in found.not_restored if one.is_setting]:
            yield about("settings-not-restored", arm, problems=problems)
        for one in found.not_restored:
            if one.item == DATABASE_LOCALE:
                yield about("other-locale", arm, locale=one.message)


def _unequal_databases(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        if parts := _parts(differences, "database", arm.index):
            yield between("unequal-databases", comparison, arm, parts=parts)


def _unequal_settings(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    requested = [difference for difference in differences if not difference.is_default]
    for arm in comparison.contenders:
        if settings := _parts(requested, "setting", arm.index):
            yield between("unequal-settings", comparison, arm, settings=settings)


def _unequal_indexes(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        if parts := _parts(differences, "index", arm.index):
            yield between("unequal-indexes", comparison, arm, indexes=[name for name, _, _ in parts])


def _unequal_tables(comparison: Comparison, differences: Sequence[Difference]) -> Iterator[Caveat]:
    for arm in comparison.contenders:
        if parts := _parts(differences, "table", arm.index):
            yield between("unequal-tables", comparison, arm, tables=[name for name, _, _ in parts])


def _not_restarted(comparison: Comparison, facts: Sequence[ArmFacts], *, writes: bool) -> Iterator[Caveat]:
    labels = [arm.label for arm, fact in zip(comparison.arms, facts, strict=True) if fact.origin == RUNNING_SERVER]
    if labels:
        yield Caveat(slug="not-restarted", values={"arms": labels})
        if writes:
            yield Caveat(slug="worn-data", values={"arms": labels})


def _late_writes(
    preparation: Preparation, blocks: Sequence[Block], measured: Sequence[ArmMeasurement]
) -> Iterator[Caveat]:
    """Yield a caveat for a load that seemed read-only in the first run, was measured as such, and then wrote."""
    totals = (one.counters.total(name) for one in measured for name in ROWS_WRITTEN)
    if preparation.writes or all(total == 0 for total in totals):
        return
    writing = [block for block in blocks if any(trial.has_written for trial in block.trials.values())]
    if writing:
        yield Caveat(
            slug="late-writes",
            values={"first": writing[0].number, "writing": len(writing), "blocks": len(blocks)},
        )


def _short_writing_windows(
    comparison: Comparison, preparation: Preparation, blocks: Sequence[Block]
) -> Iterator[Caveat]:
    """Yield a caveat if windows were too short to show the whole of a large difference under a load that writes."""
    if not preparation.writes or comparison.workload.runs_once:
        return
    if preparation.design.window_s >= _LONG_WRITING_WINDOW_S or comparison.cache is CacheState.COLD:
        return
    if all(load.is_rolled_back for load in loads_of([comparison.workload])):
        # None of its commits waits for the disk.
        return
    for arm in comparison.contenders:
        both = [block.trials for block in blocks if block.has(BASELINE, arm.index)]
        tps = [math.fsum(trials[index].tps for trials in both) for index in (BASELINE, arm.index)]
        if both and max(tps) > _LARGE * min(tps):
            yield between("short-writing-windows", comparison, arm, window_s=preparation.design.window_s)


def _failures(comparison: Comparison, blocks: Sequence[Block]) -> Iterator[Caveat]:
    found = [failure for block in blocks for failure in block.failures]
    for arm in comparison.arms if found else ():
        failures = [failure for failure in found if failure.arm == arm.index]
        if failures:
            yield about(
                "failed-trials",
                arm,
                failed=len(failures),
                blocks=sum(arm.index in (*block.trials, *(one.arm for one in block.failures)) for block in blocks),
                phase=failures[0].phase,
                failure=failures[0].message,
            )


def _failed_transactions(comparison: Comparison, measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    metric = comparison.design.metric
    for one in measured:
        if failed := sum(trial.failed for trial in one.trials):
            yield about("failed-transactions", one.arm, failed=failed)
            share = failed / (failed + sum(trial.transactions for trial in one.trials))
            # They may be the slowest ones. More than a fifth of the tail would change a percentile.
            most = _MOST_FAILED if metric.quantile is None else (1 - metric.quantile) / 5
            if metric is not Metric.TPS and share > most:
                yield about("latency-without-failed", one.arm, share=share)


def _unclocked(comparison: Comparison, measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    """With a rate, latencies that pgbench did not measure cannot be recovered (workload/pgbench_log.py)."""
    if not comparison.workload.is_open_loop:
        return
    for one in measured:
        transactions = sum(trial.transactions for trial in one.trials)
        share = sum(trial.unclocked for trial in one.trials) / max(1, transactions)
        if share > _MOST_UNCLOCKED:
            yield about("unclocked-transactions", one.arm, share=share)


def _interrupted(stopped: StopReason) -> Iterator[Caveat]:
    if stopped is StopReason.INTERRUPTED:
        yield Caveat(slug="interrupted")


def _parts(differences: Sequence[Difference], kind: str, arm: int) -> list[tuple[str, str, str]]:
    """Return the differences of this kind between an arm and the baseline: name, value of the baseline, of the arm."""
    return [
        (one.name, one.values[0], one.values[arm])
        for one in differences
        if one.kind == kind and one.values[0] != one.values[arm]
    ]
