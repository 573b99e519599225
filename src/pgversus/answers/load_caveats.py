"""Caveats from the counters of servers and host, and from how the windows of a block compare.

Each is a reason to distrust a number; none changes it. The limits are those of docs/statistics.md, "Caveats".

Waiting for a processor is not a sign of pressure: more clients than processors wait by design, and the number of
processes that a server starts is often what is compared. CPU time used by other programs is measured directly.

If an arm does not keep up with a rate (`-R`), pgbench begins transactions later and later, and latencies count from the
scheduled start.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pgversus.answers.answer import Caveat, about, between
from pgversus.records.trials import Block, Trial
from pgversus.stats.counters import FOREIGN, STEAL, CounterTable, Numbers, counter_table, foreign_cpu_s
from pgversus.stats.effects import Samples, paired_logs
from pgversus.study.comparison import BASELINE, Arm, CacheState, Comparison
from pgversus.study.counters import DISTURBED_WINDOWS, MAINTENANCE, PAGE_BYTES
from pgversus.study.design import WindowKind
from pgversus.study.metrics import QUANTILES, transactions_for_quantile


@dataclass(frozen=True, slots=True)
class ArmMeasurement:
    """The finished trials of an arm."""

    arm: Arm
    trials: Sequence[Trial]
    counters: CounterTable
    seconds: float
    """Sum of all windows."""
    block_bytes: int
    """Size of the blocks in which its server counts; the usual one if unknown."""


def measured_of(arm: Arm, blocks: Sequence[Block], block_bytes: int | None = None) -> ArmMeasurement:
    """Return the finished trials of an arm from all blocks that contain it. block_bytes: None if unknown."""
    trials = [block.trials[arm.index] for block in blocks if arm.index in block.trials]
    seconds = math.fsum(trial.seconds for trial in trials)
    return ArmMeasurement(arm, trials, counter_table(trials), seconds, block_bytes or PAGE_BYTES)


_MEMORY = 0.01
"""Share of the windows. Both working sets must fit into memory, in which case nothing ever waits for memory."""
_DISK = 0.10
_QUIET_PAGES_PER_S = 10.0
"""Requests of 10 ms each, as on a hard disk: servers with fewer cannot cause waits for 10 % of the time."""
_QUIET_WAL_BYTES_PER_S = 1000.0
"""WAL of a few transactions, each of which may wait for the disk."""
_MOVED_PAGES = ("buffers_read", "checkpoint_buffers_written", "background_buffers_written")
_MOVED_BYTES = ("temp_bytes", "server_io_write_bytes", "server_io_extend_bytes")


def pressure_caveats(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    """Yield caveats for avoidable waits. measured: every arm of the comparison."""
    for one in measured:
        memory, disk = (_share(one, one.counters.total(f"pressure_{what}_s")) for what in ("memory", "io"))
        if memory > _MEMORY:
            yield about("memory-pressure", one.arm, share=memory)
        if disk > _DISK and all(_leaves_disk_alone(other) for other in measured):
            yield about("disk-disturbed", one.arm, share=disk)


def _share(one: ArmMeasurement, seconds: float | None, capacity: int = 1) -> float:
    """Return seconds as a share of the time of all windows, times capacity; 0 if a trial does not report them."""
    return 0.0 if seconds is None else seconds / (capacity * one.seconds)


def _leaves_disk_alone(one: ArmMeasurement) -> bool:
    """Return whether its server requested almost no I/O. Check all arms: pages of one may be written in any window.

    Requested pages may have been in the page cache; in doubt no caveat is better than blaming other programs.
    """
    column = one.counters.column
    pages = np.sum([*map(column, _MOVED_PAGES), *(column(name) / one.block_bytes for name in _MOVED_BYTES)], axis=0)
    seconds = np.array([trial.seconds for trial in one.trials])
    # NaN, for values that are not reported, compares as false.
    is_quiet = (pages < _QUIET_PAGES_PER_S * seconds) & (column("wal_bytes") < _QUIET_WAL_BYTES_PER_S * seconds)
    return bool(is_quiet.all())


_MOST_MISSING = 0.05
"""Share of the rate, over all windows together."""
_CHANCE = 3.5
"""In standard deviations of the Poisson-distributed number of scheduled transactions: its square root."""


def rate_caveats(comparison: Comparison, one: ArmMeasurement) -> Iterator[Caveat]:
    """Yield a caveat if this arm finished fewer transactions than its rate requires; none for a load without a rate."""
    workload = one.arm.workload
    if workload.rate is None:
        return
    # Failed transactions were begun as well.
    begun = sum(trial.transactions + trial.failed for trial in one.trials)
    requested = workload.rate * one.seconds
    # A window lasts until its last transactions end, and none are scheduled meanwhile. On average as many transactions
    # run at once as are scheduled during one, and at most one for each client.
    latency_s = sum(trial.latency_sum_s for trial in one.trials) / max(1, begun)
    each = min(workload.clients, 1 + workload.rate * latency_s)
    last = each * comparison.design.rounds * len(one.trials)
    quantile = comparison.design.metric.quantile
    # Transactions that waited for a client until the window ended are the slowest ones, and missing. More than a fifth
    # of the tail would change a percentile.
    most = _MOST_MISSING if quantile is None else min(_MOST_MISSING, (1 - quantile) / 5)
    if begun < (1 - most) * requested and requested - begun > last + _CHANCE * math.sqrt(requested):
        yield about("rate-not-reached", one.arm, reached=begun / one.seconds, rate=workload.rate)


_CLIENT_BOUND = 0.9
"""Share of one processor for each thread of pgbench."""
_THROTTLED = 0.01
_STILL_CACHED = 0.05
_TREND = 0.05
_TREND_T = 3.5
_FEWEST_FOR_TREND = 4
_CORRELATION, _FEWEST_FOR_CORRELATION = 0.5, 12
_CHECKPOINTS = ("checkpoints_timed", "checkpoints_requested")
_OF_CHECKPOINTS = re.compile(r"checkpoint_(?!warning)|max_wal_size")
_OF_AUTOVACUUM = re.compile(r"autovacuum")
_FEW_TRANSACTIONS = 3
"""For each client and window: below this, the end of the last transaction is a large part of the window."""


def load_caveats(
    comparison: Comparison,
    samples: Samples,
    measured: Sequence[ArmMeasurement],
    *,
    cpus: int,
    shows_percentiles: bool,
) -> Iterator[Caveat]:
    """Yield problems of the load or the host.

    measured: every arm in the blocks of these samples. cpus: processors available to the host. shows_percentiles:
    whether the answer has percentiles of latencies.
    """
    for one in measured:
        if one.trials:
            yield from _client_bound(one)
            yield from rate_caveats(comparison, one)
            yield from _disturbed(one, cpus)
            yield from _not_repeated(one)
            yield from _throttled(one)
            yield from _not_cold(comparison, one)
            yield from _not_steady(comparison, one.arm, one.trials)
            yield from _few_transactions(comparison, one.arm, one.trials)
    yield from pressure_caveats(measured)
    yield from _one_sided("checkpoint-on-one-side", comparison, measured, _checkpoints)
    yield from _one_sided("autovacuum-on-one-side", comparison, measured, _maintenance)
    yield from _never_acted(comparison, measured)
    yield from _drift(comparison, samples)
    if shows_percentiles and not comparison.workload.runs_once:
        yield from _few_for_percentile(measured)


def _client_bound(one: ArmMeasurement) -> Iterator[Caveat]:
    arm = one.arm
    if not arm.workload.runs_pgbench:
        # An operation includes the work of its client.
        return
    # Every host has its own threads, but none has more than clients.
    hosts = np.nan_to_num(one.counters.column("load_hosts"), nan=1.0).max(initial=1.0)
    threads = min(arm.workload.threads * int(hosts), arm.workload.clients)
    share = _share(one, one.counters.total("client_cpu_s"), threads)
    if share > _CLIENT_BOUND:
        yield about("client-bound", arm, share=share)


def _disturbed(one: ArmMeasurement, cpus: int) -> Iterator[Caveat]:
    arm = one.arm
    foreign = _share(one, _foreign_cpu_s(one.counters), cpus)
    steal = _share(one, one.counters.total("host_steal_s"), cpus)
    if foreign > FOREIGN:
        yield about("host-disturbed", arm, share=foreign)
    if steal > STEAL:
        yield about("host-stolen", arm, share=steal)


def _not_repeated(one: ArmMeasurement) -> Iterator[Caveat]:
    number = int(np.nansum(one.counters.column(DISTURBED_WINDOWS)))
    if number:
        yield about("disturbed-windows", one.arm, number=number)


def _foreign_cpu_s(counters: CounterTable) -> float | None:
    """Return the sum over all trials; None if a trial does not report it."""
    total = float(np.maximum(foreign_cpu_s(counters.column), 0.0).sum())
    return None if math.isnan(total) else total


def _throttled(one: ArmMeasurement) -> Iterator[Caveat]:
    arm = one.arm
    share = _share(one, one.counters.total("cpu_throttled_s"))
    if share > _THROTTLED:
        yield about("throttled", arm, share=share)


def _not_cold(comparison: Comparison, one: ArmMeasurement) -> Iterator[Caveat]:
    if comparison.cache is not CacheState.COLD:
        return
    arm = one.arm
    most = float(np.nan_to_num(one.counters.column("still_cached_share"), nan=1.0).max())
    if most > _STILL_CACHED:
        yield about("cache-not-cold", arm, share=most)


def _not_steady(comparison: Comparison, arm: Arm, trials: Sequence[Trial]) -> Iterator[Caveat]:
    trends = [trial.trend for trial in trials if trial.trend is not None]
    if arm.workload.runs_once or comparison.cache is CacheState.COLD or len(trends) < _FEWEST_FOR_TREND:
        return
    mean = math.fsum(trends) / len(trends)
    error = math.sqrt(math.fsum((t - mean) ** 2 for t in trends) / (len(trends) - 1) / len(trends))
    if abs(mean) > _TREND and abs(mean) > _TREND_T * error:
        yield about("not-steady", arm, is_faster=mean > 0, share=abs(math.expm1(mean)))


def _few_transactions(comparison: Comparison, arm: Arm, trials: Sequence[Trial]) -> Iterator[Caveat]:
    if arm.workload.runs_once or comparison.design.window_kind is not WindowKind.RUN:
        # Short windows end with their transactions, or are fitted to hold many.
        return
    windows = len(trials) * comparison.design.rounds
    each = sum(trial.transactions for trial in trials) / windows
    needed = _FEW_TRANSACTIONS * arm.workload.clients
    if comparison.cache is not CacheState.COLD and not arm.workload.is_open_loop and each < needed:
        yield about("few-transactions", arm, each=each, few=_FEW_TRANSACTIONS)


def _one_sided(
    slug: str,
    comparison: Comparison,
    measured: Sequence[ArmMeasurement],
    number_on: Callable[[ArmMeasurement], float | None],
) -> Iterator[Caveat]:
    """Yield a caveat for contenders on which something happened that did not happen on the baseline, or vice versa.

    Whether by chance or because the arms differ, it affects one side only.
    """
    sums = list(map(number_on, measured))
    counts = [number for number in sums if number is not None]
    if len(counts) < len(sums):
        return
    for one, count in zip(measured, counts, strict=True):
        if (count > 0) != (counts[BASELINE] > 0):
            yield between(slug, comparison, one.arm, baseline_count=counts[BASELINE], contender_count=count)


def _never_acted(comparison: Comparison, measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    """Yield a caveat for compared settings of background work that did not happen on any arm while it was measured."""
    names = sorted(name.lower() for name in comparison.factors)
    for of_event, number_on, caveat in (
        (_OF_CHECKPOINTS, _checkpoints, Caveat(slug="no-checkpoint-ran", values={"names": names})),
        (_OF_AUTOVACUUM, _maintenance, Caveat(slug="no-autovacuum-ran", values={"names": names})),
    ):
        # Other factors may act.
        is_all = bool(names) and all(map(of_event.match, names))
        if is_all and all(one.trials and number_on(one) == 0 for one in measured):
            yield caveat


def _maintenance(one: ArmMeasurement) -> float | None:
    """Return the number of autovacuum and autoanalyze runs, 0 without trials; None if a trial does not report it."""
    return _sum([one.counters.column(name) for name in MAINTENANCE]) if one.trials else 0.0


def _checkpoints(one: ArmMeasurement) -> float | None:
    """Return the number of checkpoints in trials in which the checkpointer worked; None if a trial does not report it.

    Those that are due by time count as well if they are skipped because nothing was written.
    """
    if not one.trials:
        return 0.0
    column = one.counters.column
    has_worked = (column("checkpoint_buffers_written") > 0) | (column("checkpoint_write_s") > 0)
    return _sum([np.where(has_worked, column(name), 0.0 * column(name)) for name in _CHECKPOINTS])


def _sum(columns: Sequence[Numbers]) -> float | None:
    total = float(np.sum(columns))
    return None if math.isnan(total) else total


def _drift(comparison: Comparison, samples: Samples) -> Iterator[Caveat]:
    """Yield a caveat if the ratios of consecutive blocks are correlated: conditions change during the measurement."""
    if len(samples.blocks) < _FEWEST_FOR_CORRELATION:
        return
    for arm in comparison.contenders:
        pairs = paired_logs(samples, comparison.design.metric, BASELINE, arm.index)
        ratios = [ratio for ours, theirs in pairs if math.isfinite(ratio := theirs - ours)]
        if len(ratios) < _FEWEST_FOR_CORRELATION:
            continue
        mean = math.fsum(ratios) / len(ratios)
        spread = math.fsum((r - mean) ** 2 for r in ratios)
        follow = math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(ratios))
        if spread > 0 and follow / spread > _CORRELATION:
            yield about("drift", arm, correlation=follow / spread)


def _few_for_percentile(measured: Sequence[ArmMeasurement]) -> Iterator[Caveat]:
    counts = [trial.transactions for one in measured for trial in one.trials]
    fewest = min(counts, default=0)
    lacking = [q for q in QUANTILES.values() if fewest < transactions_for_quantile(q)]
    if counts and lacking:
        yield Caveat(
            slug="few-for-percentile",
            values={
                "percentiles": lacking,
                "fewest": fewest,
                "percentile": lacking[0],
                "needed": transactions_for_quantile(lacking[0]),
            },
        )
