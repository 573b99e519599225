"""The engine's apparatus on real servers and a real pgbench, warm or cold."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError, PgversusError, StoreError
from pgversus.host.lost_time import LostTime
from pgversus.host.page_cache import evict
from pgversus.host.processes import PeakMemory
from pgversus.host.processors import started_on
from pgversus.lab.measuring.load import Load, finished_load, read_window, run_window
from pgversus.lab.measuring.readings import CPUS, grown, read_after, read_before
from pgversus.lab.measuring.server_set import ServerSet
from pgversus.lab.measuring.warm_up import run_until_steady
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.stats.counters import is_disturbed

clock = time.monotonic


class WarmApparatus:
    """The servers of one context under its load, with their data read in."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[Load], preparation: Preparation, *, prewarms: bool = False
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


class ColdApparatus(WarmApparatus):
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
