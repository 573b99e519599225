"""A context measured by a pgbench load.

A first load runs on every arm and its numbers are discarded. A script that cannot run fails here once, with pgbench's
own message, instead of in every block.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pgversus.engine.testbed import TrialFailedError, TrialHungError, TrialRunner
from pgversus.errors import ServerError, WorkloadError
from pgversus.host.pausable import can_pause
from pgversus.host.processes import BackgroundThread
from pgversus.host.processors import Processors, split_processors
from pgversus.lab.acting_settings import Settings, check_settings_in_scripts, session_settings
from pgversus.lab.arm_servers import ArmServer, ServerSet, wrote_since
from pgversus.lab.load_windows import ColdTrialRunner, TransactionRunner, WarmTrialRunner
from pgversus.lab.runner import FirstRun
from pgversus.lab.slices import SliceRunner
from pgversus.postgres import catalog
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.postgres.session import Target, connect
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.design import Design, WindowKind
from pgversus.study.windows import FEW_CLIENTS, FirstLoad, fit_windows, least_window_s
from pgversus.text.units import AUTO
from pgversus.workload.pgbench import with_missing_tables
from pgversus.workload.pgbench_run import PgbenchLoad, finished_transactions, read_window, run_seconds, run_window

_PILOT_S = 1.0
# The shortest run that pgbench can time.
_SHORT_PILOT_S, _ENOUGH_S = 0.3, 0.2
# The intended length of the last of several shorter runs, and the least that is enough.
_MOST_GROWTH = 20
# Times the transactions of the run before: others may be much slower.
_STEADY = 0.7
# Sessions are warm if the mean latency of a run is at least this multiple of that of the run before.
_LOOK_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotResult:
    """The results of the first load."""

    writes: bool
    """Whether any arm's load changed rows."""
    slowest_latency_s: float
    """Mean latency of the slowest arm."""
    latency_p99_s: float
    """99th percentile of the latency on the arm where it is highest."""
    longest_transaction_s: float
    """The slowest transaction of any arm."""
    connect_s: float
    """Time that the slowest arm took to connect all clients."""
    replies_wait: bool
    """Whether any server waited for its client to read a reply, because it exceeded what a socket holds."""


_FIX_SCRIPT = "correct the script, its data or its variables; the message above is that of pgbench"


def run_pilot(arms: Sequence[ArmServer], loads: Sequence[PgbenchLoad], design: Design) -> PilotResult:
    """Run each arm's load in turn on the started arms; raise WorkloadError with pgbench's message if one fails."""
    windows, writes, replies_wait = [], False, False
    for server, load in zip(arms, loads, strict=True):
        with connect(server.target) as connection:
            before = catalog.rows_written(connection)
        watch = _Replies(server.target) if server.can_restart else None
        try:
            with watch or nullcontext():
                window = representative_run(load, server.target, design)
        except TrialHungError as error:
            raise WorkloadError(
                f"the first run of the load did not finish in time on {server.arm.label}",
                slug="workload-hangs",
                where=f"{load.workload.name}, on {server.arm.label}",
                found=str(error),
                expected=f"transactions that finish within {load.longest_s:.0f} s, a part of the budget",
                to_do="look for waits in pg_stat_activity and pg_locks, or run the same command with a larger --budget",
            ) from error
        except TrialFailedError as error:
            raise WorkloadError(
                f"the workload fails on {server.arm.label}",
                slug="workload-failed",
                where=f"{load.workload.name}, on {server.arm.label}",
                found=str(error),
                expected="a load that runs without errors on every arm",
                to_do=with_missing_tables(str(error), _FIX_SCRIPT),
            ) from error
        windows.append(window)
        replies_wait = replies_wait or (watch is not None and watch.found)
        writes = wrote_since(server, before) or writes
    return PilotResult(
        writes=writes,
        slowest_latency_s=max(window.latency_sum_s / window.transactions for window in windows),
        latency_p99_s=max(_p99_s(window) for window in windows),
        longest_transaction_s=max(window.latency_max_s for window in windows),
        connect_s=max(window.connect_s for window in windows),
        replies_wait=replies_wait,
    )


def representative_run(load: PgbenchLoad, target: Target, design: Design) -> Window:
    """Run the load, and return a run that tells its speed; TrialFailedError if it fails.

    A second, the shortest time that pgbench counts, would be most of the preparation. A single script and few clients
    get runs of more and more transactions instead, until one takes long enough and its sessions are warm. With many
    clients, each run would consist of new sessions; with several scripts, a run may miss the slow ones.
    """
    workload = load.workload
    given_s = design.warm_up_s if design.warm_up_is_given else _PILOT_S
    seconds, seed = max(given_s, least_window_s(workload.rate)), design.seed or 1
    may_count = len(workload.scripts) == 1 and workload.clients <= FEW_CLIENTS and workload.rate is None
    if design.warm_up_is_given or not may_count:
        return run_window(load, target, seconds, seed)
    transactions, more, before_s = 1, 0, 0.0
    while True:
        transactions += more
        with finished_transactions(load, target, transactions, seed + transactions, seconds=_PILOT_S) as finished:
            run_s = run_seconds(finished)
            if run_s is None:
                # All of them failed, as serialization failures do; more of them may not.
                break
            is_warm = more > 0 and run_s / transactions >= _STEADY * before_s / (transactions - more)
            if run_s >= _PILOT_S or (is_warm and run_s >= _ENOUGH_S):
                return read_window(load, finished)
        # Without the time that the first transactions of new sessions take in addition.
        each_s = max(1e-6, (run_s - before_s) / (more or transactions))
        more = min((_MOST_GROWTH - 1) * transactions, max(transactions, math.ceil(_SHORT_PILOT_S / each_s)))
        before_s = run_s
    return run_window(load, target, seconds, seed)


class _Replies(BackgroundThread):
    """Polls whether a server waits for its client to read a reply."""

    def __init__(self, target: Target) -> None:
        super().__init__("replies")
        self._target = target
        self.found = False

    def _run(self) -> None:
        try:
            sessions = LoadSessions(self._target)
            try:
                while not (self.found or self._is_over_within(_LOOK_S)):
                    self.found = sessions.wait_to_send()
            finally:
                sessions.close()
        except ServerError:
            # The load fails for the same reason and reports it.
            return


def _p99_s(window: Window) -> float:
    return min(window.histogram.quantile(0.99), window.latency_max_s)


ExplainArms = Callable[
    [Sequence[ArmServer], Sequence[PgbenchLoad], PilotResult, Comparison], tuple[CapturedPlans | None, str]
]
"""Captures plans on a context's servers, running, after their first load: returns the plans, or why there are none.

The comparison is given because contexts that share servers send different statements."""


_SLOW_CONNECT_S = 0.2
# Below this, connecting takes a small part of the shortest window.


class LoadRunner:
    """pgbench on the servers of a context."""

    def __init__(
        self,
        comparison: Comparison,
        servers: ServerSet,
        loads: Sequence[PgbenchLoad],
        *,
        contexts: int,
        explain: ExplainArms | None,
    ) -> None:
        """loads: one for each arm. contexts: number of contexts of the study, which share its budget.

        explain: captures plans on the running servers; None to skip this.
        """
        self._comparison = comparison
        self._servers = servers
        self._loads = loads
        self._contexts = contexts
        self._explain = explain

    def try_out(self) -> FirstRun:
        """Run a first load on every arm, all servers running; then capture the plans, with the data in memory.

        If nothing was changed, the servers keep running for the first load of another context.
        """
        comparison, servers = self._comparison, self._servers
        is_cold = comparison.cache is CacheState.COLD
        stays_started, writes = False, True
        try:
            servers.start_all(reads_in=not is_cold)
            settings = self._settings()
            pilot = run_pilot(servers.servers, self._loads, comparison.design)
            writes = pilot.writes
            targets = [server.target for server in servers.servers]
            check_settings_in_scripts(comparison, self._loads, targets, settings)
            plans, not_explained = self._explained(pilot)
            changed = _changed(settings, self._settings())
            if changed and self._explain is not None:
                # Its plans would not be those of the measured load.
                plans, not_explained = None, f"the load has changed settings of new sessions: {', '.join(changed)}"
            # Settings may be stored with the data.
            writes = writes or bool(changed)
            stays_started = not (is_cold or writes)
        finally:
            if not stays_started:
                servers.stop_all(writes=writes)
        first = FirstLoad(
            clients=comparison.workload.clients,
            writes=pilot.writes,
            latency_s=pilot.slowest_latency_s,
            latency_p99_s=pilot.latency_p99_s,
            connect_s=pilot.connect_s,
            rate=comparison.workload.rate,
            is_cold=is_cold,
            may_pause=self._may_pause(settings),
            is_one_statement=all(load.workload.is_one_statement for load in self._loads),
            replies_wait=pilot.replies_wait,
        )
        design = fit_windows(comparison.design, first, arms=len(comparison.arms), contexts=self._contexts)
        processors = self._processors(comparison.design)
        design = replace(design, client_processors=processors.clients, server_processors=processors.servers)
        return FirstRun(
            design=design,
            settings=settings,
            writes=pilot.writes,
            connect_allowance_s=_connect_allowance_s(pilot),
            connect_s=pilot.connect_s,
            longest_transaction_s=pilot.longest_transaction_s,
            plans=plans,
            not_explained=not_explained,
        )

    def _may_pause(self, settings: Sequence[Settings]) -> bool:
        """Return whether pgbench may be stopped between windows, and the servers report when they have finished."""
        return (
            can_pause()
            and not any(load.workload.pauses for load in self._loads)
            and all(server.can_restart for server in self._servers.servers)
            and all(one["track_activities"].value == "on" for one in settings)
        )

    def _processors(self, design: Design) -> Processors:
        """With external servers, pin only the client, and only at the user's request."""
        if all(server.can_restart for server in self._servers.servers):
            return split_processors(design.pin)
        if design.pin == AUTO:
            return Processors()
        return replace(split_processors(design.pin), servers=())

    def _settings(self) -> tuple[Settings, ...]:
        """Return the settings of new sessions of the load, for each arm."""
        return tuple(session_settings(server) for server in self._servers.servers)

    def _explained(self, pilot: PilotResult) -> tuple[CapturedPlans | None, str]:
        if self._explain is None:
            return None, ""
        return self._explain(self._servers.servers, self._loads, pilot, self._comparison)

    def trial_runner(self, preparation: Preparation) -> TrialRunner:
        """Return the trial runner for windows of load, warm or cold."""
        loads = tuple(
            replace(
                load,
                connect_allowance_s=preparation.connect_allowance_s,
                longest_s=preparation.patience_s,
                processors=preparation.design.client_processors,
            )
            for load in self._loads
        )
        is_cold = self._comparison.cache is CacheState.COLD
        kind = ColdTrialRunner if is_cold else _RUNNERS[preparation.design.window_kind]
        return kind(self._servers, loads, preparation)


_RUNNERS: Mapping[WindowKind, type[WarmTrialRunner]] = {
    WindowKind.RUN: WarmTrialRunner,
    WindowKind.TRANSACTIONS: TransactionRunner,
    WindowKind.SLICE: SliceRunner,
}


def _changed(settings: Sequence[Settings], now: Sequence[Settings]) -> list[str]:
    """Return the names of the settings that differ on any arm, sorted."""
    return sorted({name for was, has in zip(settings, now, strict=True) for name in has if was.get(name) != has[name]})


def _connect_allowance_s(pilot: PilotResult) -> int:
    """Return twice the time measured once: a window in which no client connects in time is a failed trial."""
    return math.ceil(2 * pilot.connect_s) if pilot.connect_s > _SLOW_CONNECT_S else 0
