"""The discarded first load on every arm: does it run, does it write, how slow is it.

A script that cannot run fails here, once, with pgbench's own words, and not in every block.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import ServerError, WorkloadError
from pgversus.host.processes import Beside
from pgversus.lab.measuring.arms import ArmServer
from pgversus.lab.measuring.load import Load, run_window
from pgversus.lab.measuring.server_set import wrote_since
from pgversus.postgres import catalog
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.postgres.session import Target, connect
from pgversus.records.trials import Window
from pgversus.study.design import Design
from pgversus.study.windows import least_window_s

_PILOT_S = 1.0
# The shortest that pgbench can run by the clock.
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotResult:
    """What the first load showed."""

    writes: bool
    """Whether any arm's load changed rows."""
    slowest_latency_s: float
    """Mean latency of the slowest arm."""
    latency_p99_s: float
    """99th percentile of the latency, of the arm where it is longest."""
    longest_transaction_s: float
    """The slowest transaction of any arm."""
    connect_s: float
    """Time that the slowest arm took to connect all clients."""
    replies_wait: bool
    """Whether any server waited for its client to read a reply, which was larger than what a socket holds."""


def run_pilot(arms: Sequence[ArmServer], loads: Sequence[Load], design: Design) -> PilotResult:
    """Each arm's load on each started arm in turn; WorkloadError with pgbench's words when it fails on one."""
    windows, writes, replies_wait = [], False, False
    for server, load in zip(arms, loads, strict=True):
        seconds = max(design.warm_up_s if design.warm_up_is_given else _PILOT_S, least_window_s(load.workload.rate))
        with connect(server.target) as connection:
            before = catalog.rows_written(connection)
        watch = _Replies(server.target) if server.can_restart else None
        try:
            with watch or nullcontext():
                window = run_window(load, server.target, seconds, design.seed or 1)
        except TrialHungError as error:
            raise WorkloadError(
                f"the first load hangs on {server.arm.label}",
                slug="workload-hangs",
                where=f"{load.workload.name}, on {server.arm.label}",
                found=str(error),
                expected=f"transactions that end within {load.longest_s:.0f} s, this context's part of the budget",
                to_do="see what they wait for, or give a larger --budget: with it the same command tries again",
            ) from error
        except TrialFailedError as error:
            raise WorkloadError(
                f"the workload fails on {server.arm.label}",
                slug="workload-failed",
                where=f"{load.workload.name}, on {server.arm.label}",
                found=str(error),
                expected="a load that runs without errors on every arm",
                to_do="these are pgbench's own words; mend the script, its data or its variables",
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


class _Replies(Beside):
    """Looks now and then whether a server waits for its client to read a reply."""

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
            # The load fails for the same reason, and says so.
            return


def _p99_s(window: Window) -> float:
    return min(window.histogram.quantile(0.99), window.latency_max_s)
