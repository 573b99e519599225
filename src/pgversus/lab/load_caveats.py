"""Caveats from the counters of servers and host, and from how the windows of a block compare.

Each is a reason to distrust a number; none changes it. The limits are those of docs/statistics.md, "Caveats".

Waiting for a processor is not a sign of pressure: more clients than processors wait by design, and the number of
processes that a server starts is often what is compared. CPU time used by other programs is measured directly.

If an arm does not keep up with a rate (`-R`), pgbench begins transactions later and later, and latencies count from the
scheduled start.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgversus.records.preparation import Caveat
from pgversus.records.trials import Block, Trial
from pgversus.stats.counters import FOREIGN, STEAL, CounterTable, counter_table, foreign_cpu_s
from pgversus.stats.effects import Samples
from pgversus.study.comparison import BASELINE, Arm, CacheState, Comparison
from pgversus.study.counters import MAINTENANCE, PAGE_BYTES
from pgversus.study.design import WindowKind
from pgversus.study.metrics import QUANTILES, Metric, percentile_name, transactions_for_quantile
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.translation import N_, _
from pgversus.text.units import significant


@dataclass(frozen=True, slots=True)
class ArmMeasurement:
    """The finished trials of an arm."""

    arm: Arm
    trials: Sequence[Trial]
    counters: CounterTable
    seconds: float
    """Sum of all windows."""


def measured_of(arm: Arm, blocks: Sequence[Block]) -> ArmMeasurement:
    """Return the finished trials of an arm from all blocks that contain it."""
    trials = [block.trials[arm.index] for block in blocks if arm.index in block.trials]
    return ArmMeasurement(arm, trials, counter_table(trials), math.fsum(trial.seconds for trial in trials))


_MEMORY = 0.01
"""Share of the windows. Both working sets must fit into memory, in which case nothing ever waits for it."""
_DISK = 0.10
_QUIET_BYTES_PER_S = 1e6
"""What any disk transfers in 1 % of the time: servers that move less cannot cause waits for 10 % of it."""
_MOVED_PAGES = ("buffers_read", "checkpoint_buffers_written", "background_buffers_written")
_MOVED_BYTES = ("wal_bytes", "temp_bytes", "server_io_write_bytes", "server_io_extend_bytes")


def pressure_caveats(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    """Yield caveats for avoidable waits. measured: every arm of the comparison."""
    for one in measured:
        memory, disk = (_waited(one, f"pressure_{what}_s") for what in ("memory", "io"))
        if memory > _MEMORY:
            yield Caveat(
                slug="memory-pressure",
                arm=one.arm.index or None,
                text=_(
                    "processes waited for memory during {share} of the windows of {arm}: the servers and their data "
                    "do not fit into memory together, or another program uses the memory",
                    share=f"{100 * memory:.0f} %",
                    arm=one.arm.label,
                ),
            )
        if disk > _DISK and all(_leaves_disk_alone(other) for other in measured):
            yield Caveat(
                slug="disk-disturbed",
                arm=one.arm.index or None,
                text=_(
                    "processes waited for the disk during {share} of the windows of {arm}, although the servers of "
                    "this comparison read and wrote hardly any data: another program used the disk",
                    share=f"{100 * disk:.0f} %",
                    arm=one.arm.label,
                ),
            )


def _waited(one: ArmMeasurement, name: str) -> float:
    """Return the share of all windows spent waiting; 0 if a trial does not report it."""
    total = one.counters.total(name)
    return 0.0 if total is None else total / one.seconds


def _leaves_disk_alone(one: ArmMeasurement) -> bool:
    """Return whether its server requested almost no I/O. Check all arms, as one's pages may be written in any window.

    Requested pages may have been in the page cache; in doubt no caveat is better than blaming other programs.
    """
    pages = sum(one.counters.column(name) for name in _MOVED_PAGES)
    others = np.nansum([one.counters.column(name) for name in _MOVED_BYTES], axis=0)
    limits = np.array([_QUIET_BYTES_PER_S * trial.seconds for trial in one.trials])
    # NaN, for values that are not reported, compares as false.
    return bool((PAGE_BYTES * pages + others < limits).all())


_REACHED = 0.95
"""Share of the rate, over all windows together."""
_CHANCE = 3.5
"""Standard deviations of the number of scheduled transactions; it is Poisson distributed, so that is its root."""


def rate_caveats(comparison: Comparison, one: ArmMeasurement) -> Iterator[Caveat]:
    """Yield a caveat if this arm finished fewer transactions than its rate requires; none for a load without a rate."""
    workload = one.arm.workload
    if not isinstance(workload, PgbenchWorkload) or workload.rate is None:
        return
    # Failed transactions were begun as well.
    begun = sum(trial.transactions + trial.failed for trial in one.trials)
    asked = workload.rate * one.seconds
    # A window lasts until its last transactions end, and none are scheduled meanwhile: at most one for each client.
    last = workload.clients * comparison.design.rounds * len(one.trials)
    if begun < _REACHED * asked and asked - begun > last + _CHANCE * math.sqrt(asked):
        yield Caveat(
            slug="rate-not-reached",
            arm=one.arm.index or None,
            text=_(
                "{arm} reached only {reached} of {rate} transactions per second, so its latencies measure a queue "
                "that grows throughout each window",
                arm=one.arm.label,
                reached=significant(begun / one.seconds, 4),
                rate=significant(workload.rate, 4),
            ),
        )


_CLIENT_BOUND = 0.9
"""Share of one processor for each thread of pgbench."""
_THROTTLED = 0.01
_STILL_CACHED = 0.05
_TREND = 0.05
_TREND_T = 3.5
_FEWEST_FOR_TREND = 4
_CORRELATION, _FEWEST_FOR_CORRELATION = 0.5, 12
_FEW_TRANSACTIONS = 3
"""For each client and window: below this, the end of the last transaction is a large part of the window."""

_BECAME_FASTER = N_(
    "{arm} became {share} faster from the first to the second half of each block: use a longer warm-up to measure its "
    "steady state"
)
_BECAME_SLOWER = N_(
    "{arm} became {share} slower from the first to the second half of each block: use a longer warm-up to measure its "
    "steady state"
)


def load_caveats(
    comparison: Comparison, samples: Samples, measured: Sequence[ArmMeasurement], *, cpus: int
) -> Iterator[Caveat]:
    """Yield problems of the load or the host, the gravest first.

    measured: every arm in the blocks of these samples. cpus: processors available to the host.
    """
    for one in measured:
        if one.trials:
            yield from _client_bound(one)
            yield from rate_caveats(comparison, one)
            yield from _disturbed(one, cpus)
            yield from _throttled(one)
            yield from _not_cold(comparison, one)
            yield from _not_steady(comparison, one.arm, one.trials)
            yield from _few_transactions(comparison, one.arm, one.trials)
    yield from pressure_caveats(measured)
    yield from _checkpoints(measured)
    yield from _autovacuum(measured)
    yield from _drift(comparison, samples)
    if isinstance(comparison.workload, PgbenchWorkload):
        yield from _few_for_percentile(measured)


def _share(one: ArmMeasurement, seconds: float | None, capacity: float) -> float | None:
    """Return the share of what all windows could have had; None if a trial does not report it."""
    return None if seconds is None else seconds / (capacity * one.seconds)


def _client_bound(one: ArmMeasurement) -> Iterator[Caveat]:
    arm = one.arm
    if not isinstance(arm.workload, PgbenchWorkload):
        # An operation includes the work of its client.
        return
    share = _share(one, one.counters.total("client_cpu_s"), arm.workload.threads)
    if share is not None and share > _CLIENT_BOUND:
        yield Caveat(
            slug="client-bound",
            arm=arm.index or None,
            text=_(
                "pgbench was the bottleneck on {arm}: it used {share} of the CPU time available to its threads, so "
                "the server may be faster than measured (use more pgbench threads to find out)",
                arm=arm.label,
                share=_percent(share),
            ),
        )


def _disturbed(one: ArmMeasurement, cpus: int) -> Iterator[Caveat]:
    arm = one.arm
    foreign = _share(one, _foreign_cpu_s(one.counters), cpus)
    steal = _share(one, one.counters.total("host_steal_s"), cpus)
    if foreign is not None and foreign > FOREIGN:
        yield Caveat(
            slug="host-disturbed",
            arm=arm.index or None,
            text=_(
                "other programs used {share} of the CPU time in user mode during the windows of {arm}",
                share=_percent(foreign),
                arm=arm.label,
            ),
        )
    if steal is not None and steal > STEAL:
        yield Caveat(
            slug="host-stolen",
            arm=arm.index or None,
            text=_(
                "the hypervisor gave {share} of the CPU time to other guests during the windows of {arm}",
                share=_percent(steal),
                arm=arm.label,
            ),
        )


def _foreign_cpu_s(counters: CounterTable) -> float | None:
    """Return the sum over all trials; None if a trial does not report it."""
    total = float(np.maximum(foreign_cpu_s(counters.column), 0.0).sum())
    return None if math.isnan(total) else total


def _throttled(one: ArmMeasurement) -> Iterator[Caveat]:
    arm = one.arm
    share = _share(one, one.counters.total("cpu_throttled_s"), 1)
    if share is not None and share > _THROTTLED:
        yield Caveat(
            slug="throttled",
            arm=arm.index or None,
            text=_(
                "a CPU limit throttled all processes during {share} of the windows of {arm}",
                share=_percent(share),
                arm=arm.label,
            ),
        )


def _not_cold(comparison: Comparison, one: ArmMeasurement) -> Iterator[Caveat]:
    if comparison.cache is not CacheState.COLD:
        return
    arm = one.arm
    most = float(np.nan_to_num(one.counters.column("still_cached_share"), nan=1.0).max())
    if most > _STILL_CACHED:
        yield Caveat(
            slug="cache-not-cold",
            arm=arm.index or None,
            text=_(
                "up to {share} of the data of {arm} was still in the operating system's page cache, or the amount "
                "could not be determined; shared buffers were empty",
                share=_percent(most),
                arm=arm.label,
            ),
        )


def _not_steady(comparison: Comparison, arm: Arm, trials: Sequence[Trial]) -> Iterator[Caveat]:
    trends = [trial.trend for trial in trials if trial.trend is not None]
    if comparison.cache is CacheState.COLD or len(trends) < _FEWEST_FOR_TREND:
        return
    mean = math.fsum(trends) / len(trends)
    error = math.sqrt(math.fsum((t - mean) ** 2 for t in trends) / (len(trends) - 1) / len(trends))
    if abs(mean) > _TREND and abs(mean) > _TREND_T * error:
        yield Caveat(
            slug="not-steady",
            arm=arm.index or None,
            text=_(
                _BECAME_FASTER if mean > 0 else _BECAME_SLOWER,
                arm=arm.label,
                share=_percent(abs(math.expm1(mean))),
            ),
        )


def _few_transactions(comparison: Comparison, arm: Arm, trials: Sequence[Trial]) -> Iterator[Caveat]:
    if not isinstance(arm.workload, PgbenchWorkload) or comparison.design.window_kind is not WindowKind.RUN:
        # Short windows end with their transactions, or are fitted to hold many.
        return
    windows = len(trials) * comparison.design.rounds
    each = sum(trial.transactions for trial in trials) / windows
    needed = _FEW_TRANSACTIONS * arm.workload.clients
    if comparison.cache is not CacheState.COLD and not arm.workload.is_open_loop and each < needed:
        yield Caveat(
            slug="few-transactions",
            arm=arm.index or None,
            text=_(
                "only {each} transactions of {arm} per window, fewer than {few} per client: use longer windows",
                each=f"{each:.1f}",
                arm=arm.label,
                few=_FEW_TRANSACTIONS,
            ),
        )


def _checkpoints(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    for arm, counts in _one_sided(measured, ("checkpoints_timed", "checkpoints_requested")):
        text = _("checkpoints during measurement: {counts}", counts=counts)
        yield Caveat(slug="checkpoint-on-one-side", arm=arm, text=text)


def _autovacuum(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    for arm, counts in _one_sided(measured, MAINTENANCE):
        text = _("autovacuum runs during measurement: {counts}", counts=counts)
        yield Caveat(slug="autovacuum-on-one-side", arm=arm, text=text)


def _one_sided(measured: Sequence[ArmMeasurement], names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield contenders on which something happened that did not on the baseline, or vice versa, with both counts.

    Whether by chance or because the arms differ, it affects one side only.
    """
    sums = [_sum(one, names) for one in measured]
    counts = [number for number in sums if number is not None]
    if len(counts) < len(sums):
        return
    base = measured[BASELINE].arm
    for one, count in zip(measured, counts, strict=True):
        if (count > 0) != (counts[BASELINE] > 0):
            told = _(
                "{baseline_count} on {baseline}, {contender_count} on {contender}",
                baseline_count=f"{counts[BASELINE]:.0f}",
                baseline=base.label,
                contender_count=f"{count:.0f}",
                contender=one.arm.label,
            )
            yield one.arm.index, told


def _sum(one: ArmMeasurement, names: Sequence[str]) -> float | None:
    """Return the sum over all trials, 0 without trials; None if a trial does not report it."""
    totals = [one.counters.total(name) for name in names] if one.trials else [0.0]
    told = [total for total in totals if total is not None]
    return math.fsum(told) if len(told) == len(totals) else None


def _drift(comparison: Comparison, samples: Samples) -> Iterator[Caveat]:
    """Yield a caveat if the ratios of consecutive blocks are correlated: conditions change during the measurement."""
    if len(samples.blocks) < _FEWEST_FOR_CORRELATION:
        return
    for arm in comparison.contenders:
        ratios = _log_ratios(samples, comparison.design.metric, arm.index)
        if len(ratios) < _FEWEST_FOR_CORRELATION:
            continue
        mean = math.fsum(ratios) / len(ratios)
        spread = math.fsum((r - mean) ** 2 for r in ratios)
        follow = math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(ratios))
        if spread > 0 and follow / spread > _CORRELATION:
            yield Caveat(
                slug="drift",
                arm=arm.index,
                text=_(
                    "the ratios of {arm} are correlated from block to block ({correlation}), so the interval is too "
                    "narrow: conditions changed during the measurement",
                    arm=arm.label,
                    correlation=f"{follow / spread:.2f}",
                ),
            )


def _log_ratios(samples: Samples, metric: Metric, arm: int) -> list[float]:
    """Return ln(contender / baseline) of the metric that decides, for blocks that have both values."""
    pairs = zip(samples.logs(metric, arm), samples.logs(metric, BASELINE), strict=True)
    ratios = (other - base for other, base in pairs if other is not None and base is not None)
    return [ratio for ratio in ratios if math.isfinite(ratio)]


def _few_for_percentile(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    counts = [trial.transactions for one in measured for trial in one.trials]
    fewest = min(counts, default=0)
    lacking = [q for q in QUANTILES.values() if fewest < transactions_for_quantile(q)]
    if counts and lacking:
        names = ", ".join(map(percentile_name, lacking))
        yield Caveat(
            slug="few-for-percentile",
            text=_(
                "no interval for {percentiles}: a block had only {fewest} transactions of an arm, and {percentile} "
                "needs {needed}",
                percentiles=names,
                fewest=fewest,
                needed=transactions_for_quantile(lacking[0]),
                percentile=percentile_name(lacking[0]),
            ),
        )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
