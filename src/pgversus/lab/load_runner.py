"""A context measured by a pgbench load: its first load, and its trial runner."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pgversus.engine.testbed import TrialRunner
from pgversus.host.pausable import can_pause
from pgversus.host.processors import Processors, split_processors
from pgversus.lab.acting_settings import Settings, check_settings_in_scripts, session_settings
from pgversus.lab.arm_servers import ArmServer, ServerSet
from pgversus.lab.load_hosts import JointTrialRunner, LoadHosts
from pgversus.lab.load_windows import ColdTrialRunner, TransactionRunner, WarmTrialRunner
from pgversus.lab.pilot import PilotResult, run_pilot
from pgversus.lab.runner import FirstRun
from pgversus.lab.slice_session import replies_wait
from pgversus.lab.slices import SliceRunner
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.design import Design, WindowKind
from pgversus.study.windows import ONE_EXECUTION_S, FirstLoad, fit_windows
from pgversus.text.units import AUTO
from pgversus.workload.pgbench_run import PgbenchLoad

ExplainArms = Callable[
    [Sequence[ArmServer], Sequence[PgbenchLoad], PilotResult, Comparison], tuple[CapturedPlans | None, str]
]
"""Captures plans on the running servers of a context after their first load; returns the plans, or why there are none.

The comparison is a parameter because contexts that share servers send different statements."""


_SLOW_CONNECT_S = 0.2
# Below this, connecting takes a small part of the shortest window.
_LIMITS_OF_IDLE_SESSIONS = ("idle_in_transaction_session_timeout", "idle_session_timeout", "transaction_timeout")


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
        load_hosts: LoadHosts | None = None,
    ) -> None:
        """loads: one for each arm. contexts: number of contexts of the study, which share its budget.

        explain: captures plans on the running servers; None to skip this.
        load_hosts: hosts that send the load after its first run; None if this host sends it.
        """
        self._comparison = comparison
        self._servers = servers
        self._loads = loads
        self._contexts = contexts
        self._explain = explain
        self._load_hosts = load_hosts

    def try_out(self) -> FirstRun:
        """Run a first load on every arm while all servers run; then capture the plans, with the data in memory.

        If nothing was changed, the servers keep running for the first load of another context.
        """
        comparison, servers = self._comparison, self._servers
        is_cold = comparison.cache is CacheState.COLD
        # If the load fails: nothing counts the writes on a cold server, nor changed settings.
        undone = all(load.workload.is_one_statement or load.workload.is_rolled_back for load in self._loads)
        stays_started, writes = False, is_cold or not undone
        try:
            servers.start_all(reads_in=not is_cold)
            settings = self._settings()
            pilot = run_pilot(servers.servers, self._loads, comparison.design)
            writes = pilot.writes
            targets = [server.load_target for server in servers.servers]
            unchecked_settings = check_settings_in_scripts(comparison, self._loads, targets, settings)
            plans, not_explained = self._explained(pilot)
            # The load may change the settings of later sessions.
            settings_after = self._settings()
            changed = _changed(settings, settings_after)
            if changed and self._explain is not None:
                # These plans would not be those of the measured load.
                plans, not_explained = None, f"the load has changed settings of new sessions: {', '.join(changed)}"
            # Settings may be stored with the data.
            writes = writes or bool(changed)
            stays_started = not (is_cold or writes)
            may_pause = self._may_pause(settings)
            waits = may_pause and not is_cold and self._replies_wait(pilot)
        finally:
            if not stays_started:
                servers.stop_all(writes=writes)
        first = FirstLoad(
            clients=comparison.workload.clients,
            # No commit waits for WAL of a load that is rolled back.
            writes=pilot.writes and not all(load.workload.is_rolled_back for load in self._loads),
            latency_s=pilot.slowest_latency_s,
            latency_p99_s=pilot.latency_p99_s,
            connect_s=pilot.connect_s,
            rate=comparison.workload.rate,
            is_cold=is_cold,
            may_pause=may_pause,
            is_one_statement=all(load.workload.is_one_statement for load in self._loads),
            replies_wait=waits,
            is_joint=self._load_hosts is not None,
        )
        design = fit_windows(comparison.design, first, arms=len(comparison.arms), contexts=self._contexts)
        processors = self._processors(comparison.design)
        design = replace(design, client_processors=processors.clients, server_processors=processors.servers)
        return FirstRun(
            design=design,
            settings=settings_after,
            writes=pilot.writes,
            connect_allowance_s=_connect_allowance_s(pilot),
            connect_s=pilot.connect_s,
            longest_transaction_s=pilot.longest_transaction_s,
            plans=plans,
            not_explained=not_explained,
            unchecked_settings=unchecked_settings,
        )

    def _may_pause(self, settings: Sequence[Settings]) -> bool:
        """Return whether pgbench may be stopped between windows, and the servers report when they have finished."""
        return (
            can_pause()
            and not any(load.workload.pauses for load in self._loads)
            and all(server.can_restart for server in self._servers.servers)
            and all(one["track_activities"].value == "on" for one in settings)
            # A session of a stopped pgbench is idle.
            and not any(name in one and one[name].value != "0" for one in settings for name in _LIMITS_OF_IDLE_SESSIONS)
        )

    def _replies_wait(self, pilot: PilotResult) -> bool:
        """Return whether the reply to a slow statement of a single client fills all buffers."""
        workload = self._comparison.workload
        if workload.clients > 1 or workload.rate is not None or pilot.slowest_latency_s < ONE_EXECUTION_S:
            return False
        design = self._comparison.design
        pairs = zip(self._loads, self._servers.servers, strict=True)
        return any(replies_wait(load, server.load_target, design) for load, server in pairs)

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
        if self._load_hosts is not None:
            return JointTrialRunner(self._servers, loads, preparation, self._load_hosts)
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
    """Return twice the measured time, since a window in which no client connects in time is a failed trial."""
    return math.ceil(2 * pilot.connect_s) if pilot.connect_s > _SLOW_CONNECT_S else 0
