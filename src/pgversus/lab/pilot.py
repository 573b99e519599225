"""The first load of a context: it shows that the load runs, how fast it is, and whether it writes.

Its numbers are discarded. A script that cannot run fails here once, with pgbench's own message, instead of in every
block.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.errors import WorkloadError
from pgversus.lab.arm_servers import ArmServer, answers, wrote_since
from pgversus.lab.failures import failures_of_first_run
from pgversus.postgres import catalog
from pgversus.postgres.session import Target, connect
from pgversus.records.trials import Window
from pgversus.study.comparison import BASELINE
from pgversus.study.design import Design
from pgversus.study.windows import FEW_CLIENTS, least_window_s
from pgversus.workload.pgbench_run import PgbenchLoad, finished_transactions, read_window, run_seconds, run_window

_PILOT_S = 1.0
# The shortest run that pgbench can time.
_SHORT_PILOT_S, _ENOUGH_S = 0.3, 0.2
# The intended length of the last of several shorter runs, and the shortest sufficient length.
_MOST_GROWTH = 20
# The most transactions of a run, as a multiple of the run before: further ones may be much slower.
_LONGEST_RECOVERY_S, _POLL_S = 10.0, 0.1
_STEADY = 0.7
# Sessions are warm if the mean latency of a run is at least this multiple of the mean latency before.


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


_FIX_SCRIPT = "fix the script, its data or its variables; see pgbench's message above"


def run_pilot(arms: Sequence[ArmServer], loads: Sequence[PgbenchLoad], design: Design) -> PilotResult:
    """Run each arm's load in turn on the started arms.

    Raises WorkloadError, with pgbench's message, if the load fails on the baseline or on every contender. If it fails
    on some contenders only, the others can still be compared, and the trials of these fail one by one.
    """
    windows: dict[int, Window] = {}
    writes, failures = False, list[WorkloadError]()
    for number, (server, load) in enumerate(zip(arms, loads, strict=True)):
        with connect(server.target) as connection:
            before = catalog.rows_written(connection)
        try:
            with failures_of_first_run(server.arm.label, load.workload, load.longest_s, _FIX_SCRIPT):
                windows[number] = representative_run(load, server.load_target, design)
        except WorkloadError as error:
            # Another run that hangs would take a part of the budget again.
            if number == BASELINE or error.slug != "workload-failed":
                raise
            failures.append(error)
            if not _answers_again(server):
                raise
        writes = wrote_since(server, before) or writes
    if windows.keys() == {BASELINE} and failures:
        raise failures[0]
    return _result(list(windows.values()), writes=writes)


def _answers_again(server: ArmServer) -> bool:
    """Return whether a server accepts sessions after a failed load; after a crash it recovers first."""
    end = time.monotonic() + _LONGEST_RECOVERY_S
    while not answers(server):
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL_S)
    return True


def _result(windows: Sequence[Window], *, writes: bool) -> PilotResult:
    return PilotResult(
        writes=writes,
        slowest_latency_s=max(window.latency_sum_s / window.transactions for window in windows),
        latency_p99_s=max(_p99_s(window) for window in windows),
        longest_transaction_s=max(window.latency_max_s for window in windows),
        connect_s=max(window.connect_s for window in windows),
    )


def representative_run(load: PgbenchLoad, target: Target, design: Design) -> Window:
    """Run the load, and return a run long enough to show its speed; TrialFailedError if it fails.

    A run of one second, the shortest that pgbench can time, would take most of the preparation. A single script with
    few clients instead gets runs of more and more transactions, until a run takes long enough and its sessions are
    warm. This does not work with many clients, as each run would consist of new sessions, or with several scripts, as a
    run may miss the slow ones.
    """
    workload = load.workload
    given_s = design.warm_up_s if design.warm_up_is_given else _PILOT_S
    seconds, seed = max(given_s, least_window_s(workload.rate, workload.clients)), design.seed or 1
    may_count = len(workload.scripts) == 1 and workload.clients <= FEW_CLIENTS and workload.rate is None
    if design.warm_up_is_given or not may_count:
        return run_window(load, target, seconds, seed)
    transactions, more, before_s = 1, 0, 0.0
    while True:
        transactions += more
        with finished_transactions(load, target, transactions, seed + transactions, seconds=_PILOT_S) as finished:
            run_s = run_seconds(finished)
            if run_s is None:
                # All transactions failed, as with serialization failures; in a longer run some may succeed.
                break
            is_warm = more > 0 and run_s / transactions >= _STEADY * before_s / (transactions - more)
            if run_s >= _PILOT_S or (is_warm and run_s >= _ENOUGH_S):
                return read_window(load, finished)
        # Without the additional time that the first transactions of new sessions take.
        each_s = max(1e-6, (run_s - before_s) / (more or transactions))
        more = min((_MOST_GROWTH - 1) * transactions, max(transactions, math.ceil(_SHORT_PILOT_S / each_s)))
        before_s = run_s
    return run_window(load, target, seconds, seed)


def _p99_s(window: Window) -> float:
    return min(window.histogram.quantile(0.99), window.latency_max_s)
