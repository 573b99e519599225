"""The engine's apparatus on real servers and a real pgbench, warm or cold.

In windows of a few transactions the server's counters are read once before all windows of a block and once after
them, since reading takes longer than a window. What sessions did outside the windows that count is removed in
proportion to the transactions.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError, PgversusError, StoreError
from pgversus.host.lost_time import LostTime
from pgversus.host.page_cache import evict
from pgversus.host.processes import PeakMemory
from pgversus.host.processors import started_on
from pgversus.lab.arm_servers import ServerSet
from pgversus.lab.runner import CPUS, Reading, grown, read_after, read_before, read_host_of
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
    """Two halves of a warm-up, then more of them as long as each is over 5 % faster than the one before.

    load: runs for so many seconds, with a random seed, which is another one each time, so that it warms more than the
    rows of one draw. seconds: of the two halves; too few for two are one run. Four times as long at most; whatever is
    not steady by then is seen in the windows (docs/statistics.md).
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


clock = time.monotonic


class WarmTrialRunner:
    """The servers of one context under its load, with their data read in."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation, *, prewarms: bool = False
    ) -> None:
        """loads: one for each arm; they differ only where the workload is what is compared.

        prewarms: whether every arm can read its data in; a warm arm against a cold one would be no comparison.
        """
        self._set = servers
        self._loads = loads
        self._design = preparation.design
        self._writes = preparation.writes
        self._prewarms = prewarms
        self._windows: defaultdict[int, list[Window]] = defaultdict(list)

    def start(self, arm: int) -> None:
        """A fresh start, on fresh data where that matters; then the data are read in, and a checkpoint."""
        try:
            self._start(arm)
            self._set.read_in(arm, prewarms=self._prewarms)
            self._set.counters(arm)
        except HostError:
            # A full disk is no property of this arm: what was measured is kept, and the study can go on later.
            raise
        except PgversusError as error:
            raise trial_failed(error) from error

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Load until it is steady, whose numbers are thrown away but for the most memory that the server held.

        Before it the size of the database is read, as every block finds it.
        """
        server = self._set.servers[arm]
        try:
            levels = {"data_bytes": float(self._set.counters(arm).database_bytes())}
        except PgversusError as error:
            raise trial_failed(error) from error
        pid = server.postmaster_pid
        with PeakMemory(pid) if pid is not None else nullcontext() as peak:
            self._load_until_steady(arm, seed)
        try:
            # Its sessions report as they end, before 15 later still, and are not to report into the first window.
            self._set.counters(arm).read(settled=True)
        except PgversusError as error:
            raise trial_failed(error) from error
        most = peak.peak_bytes if peak is not None else None
        return levels if most is None else {**levels, "server_memory_peak_bytes": float(most)}

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window of load, and what was counted in it."""
        self._windows[arm].append(self._measured(arm, seed, name))

    def collect(self, arm: int) -> Sequence[Window]:
        """Return the windows since the last time."""
        return self._windows.pop(arm, [])

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:  # noqa: ARG002 - the engine asks every apparatus
        """Return nothing: each window has its counters."""
        return {}

    def abandon(self) -> None:
        """Forget windows that nobody wants; no load runs between two windows."""
        self._windows.clear()

    def stop_all(self) -> None:
        """Stop every server of ours; before that, notice a load that writes after all."""
        self._set.stop_all(writes=self._writes)

    def _start(self, arm: int) -> None:
        with started_on(self._design.server_processors):
            self._set.start(arm)

    def _load_until_steady(self, arm: int, seed: int) -> None:
        run_until_steady(
            partial(run_window, self._loads[arm], self._set.servers[arm].target), self._design.warm_up_s, seed
        )

    def _measured(self, arm: int, seed: int, name: str) -> Window:
        server = self._set.servers[arm]
        try:
            counters = self._set.counters(arm)
            before = read_before(server, counters)
            load = self._loads[arm]
            with ExitStack() as stack:
                with LostTime(server.postmaster_pid) as time_of_window:
                    finished = stack.enter_context(
                        finished_load(load, server.target, self._design.window_s, seed, log_name=name)
                    )
                # Before the log is read, which takes long enough to be taken for work of other programs.
                after = read_after(server, counters)
                window = read_window(load, finished)
        except (HostError, StoreError):
            # A full disk, or a log that cannot be kept, says nothing of this arm.
            raise
        except PgversusError as error:
            raise trial_failed(error) from error
        counted = {**window.counters, **grown(before, after, self._set.own_growth(arm))}
        was_disturbed = time_of_window.was_lost or is_disturbed(counted, window.seconds, CPUS)
        return replace(window, counters=counted, was_disturbed=was_disturbed)


class ColdTrialRunner(WarmTrialRunner):
    """The same with every window on a server just started, whose files are out of the system's page cache."""

    def start(self, arm: int) -> None:
        """Fresh data; that the server starts is seen here once, and in each window again."""
        try:
            self._start(arm)
        except HostError:
            raise
        except PgversusError as error:
            raise trial_failed(error) from error

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """A window from cold for the memory that the server held in it; what it leaves there is gone before the next.

        In a window that counts, reading the memory would disturb.
        """
        self._restart_cold(arm)
        return super().warm_up(arm, seed)

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window from cold."""
        still_cached = self._restart_cold(arm)
        window = self._measured(arm, seed, name)
        # Where nobody can look, it is taken as not evicted: a caveat too many is better than one too few.
        levels = {"still_cached_share": 1.0 if still_cached is None else still_cached}
        self._windows[arm].append(replace(window, levels=levels))

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Only once: from cold nothing becomes steady."""
        run_window(self._loads[arm], self._set.servers[arm].target, self._design.warm_up_s, seed)

    def _restart_cold(self, arm: int) -> float | None:
        """The share of its files that is still cached; None where nobody can look."""
        server = self._set.servers[arm]
        try:
            self._set.stop(arm)
            assert server.data_directory is not None  # noqa: S101 - a cold cache is refused for servers of others
            still_cached = evict(server.data_directory)
            self._start(arm)
        except PgversusError as error:
            raise trial_failed(error) from error
        return still_cached


def trial_failed(error: PgversusError) -> TrialFailedError:
    """Return the failure of an arm, in the words of the error."""
    return TrialFailedError(f"{error.what}: {error.found}")


_SHORTEST_S = 1e-6
_WARM_UP_EXECUTIONS = 2
_NOTHING_READ = Reading(server={}, host={})


@dataclass(slots=True)
class BlockWork:
    """What the load of an arm has done since its warm-up in this block."""

    before: Reading = _NOTHING_READ
    transactions: int = 0

    def counters(self, after: Reading, own_growth: Mapping[str, float], transactions: int) -> dict[str, float]:
        """Return the server's counters; what grows with the load only in the share of so many transactions."""
        share = transactions / self.transactions if self.transactions else 0.0
        growth = grown(self.before, after, own_growth)
        return {
            name: value * share if COUNTERS[name].per_transaction else value
            for name, value in growth.items()
            if name in after.server
        }


class ShortWindowRunner(WarmTrialRunner):
    """The servers of one context under load in short windows."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation, *, prewarms: bool = False
    ) -> None:
        """Take the same as WarmApparatus."""
        super().__init__(servers, loads, preparation, prewarms=prewarms)
        self._preparation = preparation
        self._done: dict[int, BlockWork] = {}

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm up, then read the counters from which the windows are counted."""
        levels = super().warm_up(arm, seed)
        try:
            before = read_before(self._set.servers[arm], self._set.counters(arm))
            # What the warm-up did is not among it.
            self._done[arm] = BlockWork(before=before)
        except PgversusError as error:
            raise trial_failed(error) from error
        return levels

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return what the server counted; what host and client did is with each window."""
        try:
            after = read_after(self._set.servers[arm], self._set.counters(arm))
        except PgversusError as error:
            raise trial_failed(error) from error
        return self._done[arm].counters(after, self._own_growth(arm), transactions)

    def _own_growth(self, arm: int) -> Mapping[str, float]:
        """What pgversus itself has added to the counters."""
        return self._set.own_growth(arm)


class TransactionRunner(ShortWindowRunner):
    """Windows of a number of transactions, each a run of pgbench (-t)."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        window = self._run(arm, self._preparation.design.window_transactions or 1, seed, name)
        self._done[arm].transactions += window.transactions
        self._windows[arm].append(window)

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run a few executions: a session is new in each window anyway."""
        design = self._preparation.design
        windows = design.warm_up_s / max(design.window_s, _SHORTEST_S)
        transactions = max(_WARM_UP_EXECUTIONS, math.ceil(windows * (design.window_transactions or 1)))
        self._run(arm, transactions, seed, None)

    def _run(self, arm: int, transactions: int, seed: int, name: str | None) -> Window:
        load, target = self._loads[arm], self._set.servers[arm].target
        design = self._preparation.design
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
