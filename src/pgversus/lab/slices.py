"""Load in slices of one run of pgbench, which is stopped between them (docs/adr/0015-windows.md)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pgversus.engine.testbed import TrialFailedError
from pgversus.lab.arm_servers import ServerSet
from pgversus.lab.failures import failing_the_trial
from pgversus.lab.load_windows import ShortWindowRunner
from pgversus.lab.readings import read_host_of
from pgversus.lab.slice_session import ClockSetError, Placement, SliceSession
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.stats.counters import difference
from pgversus.workload.pgbench_run import PgbenchLoad

_MOST_OPENED = 3


class SliceRunner(ShortWindowRunner):
    """Windows that are slices of a run of pgbench, which is stopped between them."""

    def __init__(self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation) -> None:
        """Take the arguments of WarmTrialRunner."""
        super().__init__(servers, loads, preparation)
        self._watches: dict[int, LoadSessions] = {}
        self._sessions: dict[int, SliceSession] = {}
        self._watching: dict[int, dict[str, float]] = {}
        """Counter growth of the servers caused by watching in this block."""

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run the load; after a short warm-up its session stays open, since each session warms its own caches."""
        if self._warms_up_long:
            super()._load_until_steady(arm, seed)
            return
        session = self._open(arm, seed)
        with self._ending(arm):
            session.warm_up(self._design.warm_up_s)

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window; the first one of a session connects the clients."""
        session = self._sessions.get(arm) or self._open(arm, seed)
        session.log_name = name
        before = read_host_of(self._set.servers[arm])
        design = self._design
        with self._ending(arm):
            session.run(design.slice_s or design.window_s)
        session.add_host(difference(before, read_host_of(self._set.servers[arm])))

    def collect(self, arm: int) -> Sequence[Window]:
        """End the session and return its windows."""
        windows, transactions = self._sessions.pop(arm).close()
        self._done[arm].transactions += transactions
        return windows

    def abandon(self) -> None:
        """End open sessions of pgbench, and those of pgversus."""
        for session in self._sessions.values():
            session.kill()
        self._sessions.clear()
        for arm, watch in self._watches.items():
            self._watching[arm] = watch.cpu_since_mark()
            watch.close()
        self._watches.clear()

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm up, and read the counters: before a short warm-up, whose session stays open and reports at its end."""
        watch = self._watch(arm)
        if self._warms_up_long:
            gauges = super().warm_up(arm, seed)
            watch.mark()
            return gauges
        data_bytes = self._data_bytes(arm)
        self._settle(arm)
        watch.mark()
        self._begin_counting(arm)
        return {**data_bytes, **self._warmed_up(arm, seed)}

    def _own_growth(self, arm: int) -> Mapping[str, float]:
        """Return the growth caused by reading counters and watching sessions together."""
        growth = dict(super()._own_growth(arm))
        for name, seconds in self._watching.get(arm, {}).items():
            growth[name] = growth.get(name, 0.0) + seconds
        return growth

    def _watch(self, arm: int) -> LoadSessions:
        if arm not in self._watches:
            with failing_the_trial():
                self._watches[arm] = LoadSessions(self._set.servers[arm].target)
        return self._watches[arm]

    @property
    def _warms_up_long(self) -> bool:
        """Whether the warm-up takes at least as long as the shortest run that pgbench can time."""
        return self._design.warm_up_s >= 1

    def _open(self, arm: int, seed: int) -> SliceSession:
        target = self._set.servers[arm].load_target
        places = Placement(self._design, seed)
        for attempt in range(_MOST_OPENED):
            session = SliceSession(self._loads[arm], target, self._watch(arm), places, f"slices-{arm}")
            self._sessions[arm] = session
            with self._ending(arm):
                try:
                    session.open(seed)
                except ClockSetError:
                    session.kill()
                    if attempt == _MOST_OPENED - 1:
                        raise
                else:
                    break
        return session

    @contextmanager
    def _ending(self, arm: int) -> Iterator[None]:
        """End a failing session at once, so that it does not disturb the windows of other arms."""
        try:
            yield
        except TrialFailedError:
            self._sessions.pop(arm).kill()
            raise
