"""A context that is measured by the load of pgbench."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from pgversus.engine.testbed import Apparatus
from pgversus.host.pausable import can_pause
from pgversus.host.processors import Processors, split_processors
from pgversus.lab.measuring.arms import ArmServer
from pgversus.lab.measuring.harness import FirstRun, Settings, session_settings
from pgversus.lab.measuring.load import Load
from pgversus.lab.measuring.pilot import PilotResult, run_pilot
from pgversus.lab.measuring.postgres_apparatus import ColdApparatus, WarmApparatus
from pgversus.lab.measuring.server_set import ServerSet
from pgversus.lab.measuring.short_windows import TransactionApparatus
from pgversus.lab.measuring.slices import SliceApparatus
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.design import Design, WindowKind
from pgversus.study.windows import FirstLoad, fit_windows
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.units import AUTO


class ExplainArms(Protocol):
    """Asks a context's servers for plans: the plans, or why there are none."""

    def __call__(
        self, servers: Sequence[ArmServer], loads: Sequence[Load], pilot: PilotResult, *, comparison: Comparison
    ) -> tuple[CapturedPlans | None, str]:
        """servers: of all arms, started, after their first load; contexts that share them are sent other things."""


_SLOW_CONNECT_S = 0.2
# Below this the time of connecting is a small part of the shortest window.


class LoadHarness:
    """pgbench against the servers of a context."""

    def __init__(
        self,
        comparison: Comparison,
        workload: PgbenchWorkload,
        servers: ServerSet,
        loads: Sequence[Load],
        *,
        prewarms: bool,
        contexts: int,
        explain: ExplainArms | None,
    ) -> None:
        """workload: the baseline's. loads: one for each arm. prewarms: whether every arm can read its data in.

        contexts: of the study, which share its budget. explain: asks the started servers for plans; None asks nothing.
        """
        self._comparison = comparison
        self._workload = workload
        self._servers = servers
        self._loads = loads
        self._prewarms = prewarms
        self._contexts = contexts
        self._explain = explain

    def try_out(self) -> FirstRun:
        """A first load on every arm, all servers started; then the plans of what it sent, with its data in memory."""
        comparison, servers = self._comparison, self._servers
        writes = True
        try:
            for arm, _ in enumerate(servers.servers):
                servers.start(arm)
                if comparison.cache is not CacheState.COLD:
                    servers.read_in(arm, prewarms=self._prewarms)
            settings = tuple(session_settings(server) for server in servers.servers)
            pilot = run_pilot(servers.servers, self._loads, comparison.design)
            writes = pilot.writes
            plans, not_explained = self._explained(pilot, settings)
        finally:
            servers.stop_all(writes=writes)
        first = FirstLoad(
            clients=self._workload.clients,
            writes=pilot.writes,
            latency_s=pilot.slowest_latency_s,
            latency_p99_s=pilot.latency_p99_s,
            connect_s=pilot.connect_s,
            rate=self._workload.rate,
            is_cold=comparison.cache is CacheState.COLD,
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
        """Whether pgbench may be stopped between windows, and the servers tell when they have finished."""
        return (
            can_pause()
            and not any(load.workload.pauses for load in self._loads)
            and all(server.can_restart for server in self._servers.servers)
            and all(one["track_activities"].value == "on" for one in settings)
        )

    def _processors(self, design: Design) -> Processors:
        """Where a server is not ours to start, only the client is pinned, and only if the user asks for it."""
        if all(server.can_restart for server in self._servers.servers):
            return split_processors(design.pin)
        if design.pin == AUTO:
            return Processors()
        return replace(split_processors(design.pin), servers=())

    def _explained(self, pilot: PilotResult, settings: Sequence[Settings]) -> tuple[CapturedPlans | None, str]:
        """Plans are those of what is measured only where sessions still have the settings that the load began with."""
        if self._explain is None:
            return None, ""
        plans, words = self._explain(self._servers.servers, self._loads, pilot, comparison=self._comparison)
        now = (session_settings(server) for server in self._servers.servers)
        changed = sorted(
            {name for was, has in zip(settings, now, strict=True) for name in has if was.get(name) != has[name]}
        )
        if changed:
            return None, f"the load has changed settings of sessions to come: {', '.join(changed)}"
        return plans, words

    def apparatus(self, preparation: Preparation) -> Apparatus:
        """Windows of load, warm or cold."""
        loads = tuple(
            replace(
                load,
                connect_allowance_s=preparation.connect_allowance_s,
                longest_s=preparation.patience_s,
                processors=preparation.design.client_processors,
            )
            for load in self._loads
        )
        if self._comparison.cache is CacheState.COLD:
            return ColdApparatus(self._servers, loads, preparation)
        kind = _APPARATUS[preparation.design.window_kind]
        return kind(self._servers, loads, preparation, prewarms=self._prewarms)


_APPARATUS: Mapping[WindowKind, type[WarmApparatus]] = {
    WindowKind.RUN: WarmApparatus,
    WindowKind.TRANSACTIONS: TransactionApparatus,
    WindowKind.SLICE: SliceApparatus,
}


def _connect_allowance_s(pilot: PilotResult) -> int:
    """Twice of what it took once: a window in which nobody is connected in time is a failed trial."""
    return math.ceil(2 * pilot.connect_s) if pilot.connect_s > _SLOW_CONNECT_S else 0
