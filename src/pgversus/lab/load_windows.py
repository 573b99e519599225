"""The trial runner on real servers and a real pgbench, warm or cold.

With windows of a few transactions, the server's counters are read once before all windows of a block and once after
them, since reading takes longer than a window. The work of sessions outside the counted windows is removed in
proportion to the transactions.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from pgversus.host.lost_time import LostTime
from pgversus.host.page_cache import evict
from pgversus.host.processes import PeakMemory
from pgversus.host.processors import started_on
from pgversus.lab.arm_servers import ServerSet
from pgversus.lab.failures import failing_the_trial
from pgversus.lab.readings import CPUS, Reading, grown, read_after, read_before, read_host_of
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.stats.counters import difference, is_disturbed
from pgversus.study.counters import COUNTERS
from pgversus.workload.pgbench_run import PgbenchLoad, finished_load, finished_transactions, read_window, run_window

_SHORTEST_HALF_S = 1.0
# pgbench counts whole seconds.
_MOST_HALVES = 8
_STEADY = 1.05
# Windows this short differ by as much from noise alone.


def run_until_steady(load: Callable[[float, int], Window], seconds: float, seed: int) -> None:
    """Run two halves of a warm-up, then more as long as each is over 5 % faster than the one before.

    load: runs for a number of seconds with a random seed. The seed changes each time, so that more rows are
    warmed than one seed draws. seconds: of both halves; if too short for two, there is one run. The warm-up takes at
    most four times as long; if the load is not steady by then, the windows show it (docs/statistics.md).
    """
    if seconds < 2 * _SHORTEST_HALF_S:
        load(seconds, seed)
        return
    before = 0.0
    for number in range(_MOST_HALVES):
        window = load(seconds / 2, seed + number)
        tps = window.transactions / window.seconds
        if number and tps <= _STEADY * before:
            break
        before = tps


class WarmTrialRunner:
    """The servers of one context under warm load."""

    def __init__(self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation) -> None:
        """loads: one for each arm; they differ only if workloads are compared."""
        self._set = servers
        self._loads = loads
        self._design = preparation.design
        self._writes = preparation.writes
        self._windows: defaultdict[int, list[Window]] = defaultdict(list)

    def start(self, arm: int) -> None:
        """Start a fresh server, on fresh data if that matters; then prewarm its data and run a checkpoint."""
        with failing_the_trial():
            self._start(arm)
            self._set.read_in(arm)
            self._set.counters(arm)

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Run the load until it is steady and discard its numbers, except the peak memory of the server.

        Reads the size of the database first, in the state in which every block starts.
        """
        gauges = {**self._data_bytes(arm), **self._warmed_up(arm, seed)}
        self._settle(arm)
        return gauges

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window of load and its counters."""
        self._windows[arm].append(self._measured(arm, seed, name))

    def collect(self, arm: int) -> Sequence[Window]:
        """Return the windows since the last call."""
        return self._windows.pop(arm, [])

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:  # noqa: ARG002 - the protocol has it
        """Return nothing: each window has its counters."""
        return {}

    def abandon(self) -> None:
        """Discard the windows; no load runs between two windows."""
        self._windows.clear()

    def stop_all(self) -> None:
        """Stop every managed server, after checking whether a read-only load has written."""
        self._set.stop_all(writes=self._writes)

    def _data_bytes(self, arm: int) -> Mapping[str, float]:
        with failing_the_trial():
            return {"data_bytes": float(self._set.counters(arm).database_bytes())}

    def _warmed_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Run the load until it is steady; return the peak memory of the server, if known."""
        pid = self._set.servers[arm].postmaster_pid
        with PeakMemory(pid) if pid is not None else nullcontext() as peak:
            self._load_until_steady(arm, seed)
        most = peak.peak_bytes if peak is not None else None
        return {} if most is None else {"server_memory_peak_bytes": float(most)}

    def _settle(self, arm: int) -> None:
        """Wait for the reports of ended sessions, so that they do not count in the first window.

        Sessions report statistics when they end, before version 15 even later.
        """
        with failing_the_trial():
            self._set.counters(arm).read(settled=True)

    def _start(self, arm: int) -> None:
        with started_on(self._design.server_processors):
            self._set.start(arm)

    def _load_until_steady(self, arm: int, seed: int) -> None:
        load, target, seconds = self._loads[arm], self._set.servers[arm].load_target, self._design.warm_up_s
        if load.workload.is_open_loop:
            # Its throughput is that of the schedule, and half of it may hold no transaction at all.
            run_window(load, target, seconds, seed)
        else:
            run_until_steady(partial(run_window, load, target), seconds, seed)

    def _measured(self, arm: int, seed: int, name: str) -> Window:
        server = self._set.servers[arm]
        with failing_the_trial():
            counters = self._set.counters(arm)
            before = read_before(server, counters)
            load = self._loads[arm]
            with ExitStack() as stack:
                with LostTime(server.postmaster_pid) as time_of_window:
                    finished = stack.enter_context(
                        finished_load(load, server.load_target, self._design.window_s, seed, log_name=name)
                    )
                # Before the log is read, which takes long enough to look like the work of other programs.
                after = read_after(server, counters)
                window = read_window(load, finished)
            self._set.pause_like_others(arm)
        counted = {**window.counters, **grown(before, after, self._set.own_growth(arm))}
        was_disturbed = time_of_window.was_lost or is_disturbed(counted, window.seconds, CPUS)
        return replace(window, counters=counted, was_disturbed=was_disturbed)


class ColdTrialRunner(WarmTrialRunner):
    """A trial runner whose every window starts on a fresh server with its files evicted from the page cache."""

    def start(self, arm: int) -> None:
        """Start once, to see that the server starts and to count its writes; each window starts it again."""
        with failing_the_trial():
            self._start(arm)
            self._set.count_writes(arm)

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Run one cold window for the peak memory of the server; its effects on caches are gone before the next.

        In a counted window, reading the memory would disturb the measurement.
        """
        self._restart_cold(arm)
        return super().warm_up(arm, seed)

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one cold window."""
        still_cached = self._restart_cold(arm)
        window = self._measured(arm, seed, name)
        # If unknown, assume that nothing was evicted: a superfluous caveat is better than a missing one.
        gauges = {"still_cached_share": 1.0 if still_cached is None else still_cached}
        self._windows[arm].append(replace(window, gauges=gauges))

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run once only: a cold load does not become steady."""
        run_window(self._loads[arm], self._set.servers[arm].load_target, self._design.warm_up_s, seed)

    def _restart_cold(self, arm: int) -> float | None:
        """Return the share of its files that is still cached; None if unknown."""
        server = self._set.servers[arm]
        with failing_the_trial():
            self._set.stop(arm)
            assert server.data_directory is not None  # noqa: S101 - a cold cache is refused for external servers
            still_cached = evict(server.data_directory)
            self._start(arm)
        return still_cached


_SHORTEST_S = 1e-6
_WARM_UP_EXECUTIONS = 2


@dataclass(slots=True)
class BlockWork:
    """The work of an arm's load since its counters were read in this block."""

    before: Reading
    transactions: int = 0

    def counters(self, after: Reading, own_growth: Mapping[str, float], transactions: int) -> dict[str, float]:
        """Return the server's counters, scaling those that grow with the load to this number of transactions."""
        share = transactions / self.transactions if self.transactions else 0.0
        growth = grown(self.before, after, own_growth)
        return {
            name: value * share if COUNTERS[name].per_transaction else value
            for name, value in growth.items()
            if name in after.server
        }


class ShortWindowRunner(WarmTrialRunner):
    """The servers of one context under load in short windows."""

    def __init__(self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation) -> None:
        """Take the arguments of WarmTrialRunner."""
        super().__init__(servers, loads, preparation)
        self._done: dict[int, BlockWork] = {}

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm up, then read the counters at the start of the windows."""
        gauges = super().warm_up(arm, seed)
        # Not earlier, to exclude the work of the warm-up.
        self._begin_counting(arm)
        return gauges

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return the server's counters; those of host and client are stored with each window."""
        with failing_the_trial():
            after = read_after(self._set.servers[arm], self._set.counters(arm))
        return self._done[arm].counters(after, self._own_growth(arm), transactions)

    def _begin_counting(self, arm: int) -> None:
        with failing_the_trial():
            self._done[arm] = BlockWork(before=read_before(self._set.servers[arm], self._set.counters(arm)))

    def _own_growth(self, arm: int) -> Mapping[str, float]:
        """Return the growth of the counters caused by pgversus itself."""
        return self._set.own_growth(arm)


class TransactionRunner(ShortWindowRunner):
    """Windows of a number of transactions, each a run of pgbench (-t)."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        window = self._run(arm, self._design.window_transactions or 1, seed, name)
        self._done[arm].transactions += window.transactions
        self._windows[arm].append(window)

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run a few executions: each window has a new session anyway."""
        design = self._design
        windows = design.warm_up_s / max(design.window_s, _SHORTEST_S)
        transactions = max(_WARM_UP_EXECUTIONS, math.ceil(windows * (design.window_transactions or 1)))
        self._run(arm, transactions, seed, None)

    def _run(self, arm: int, transactions: int, seed: int, name: str | None) -> Window:
        load, target = self._loads[arm], self._set.servers[arm].load_target
        design = self._design
        seconds = design.window_s * transactions / (design.window_transactions or 1)
        server = self._set.servers[arm]
        before = read_host_of(server)
        with ExitStack() as stack:
            with LostTime(server.postmaster_pid) as time:
                finished = stack.enter_context(
                    finished_transactions(load, target, transactions, seed, seconds=seconds, log_name=name)
                )
            host = difference(before, read_host_of(server))
            window = read_window(load, finished)
        return replace(window, counters={**window.counters, **host}, was_disturbed=time.was_lost)
