"""A run of pgbench of which only one interval counts, so that several hosts can load one server in the same window.

Every host starts pgbench some time before the window and ends it some time after, so that all clients of all hosts work
during the whole window, however long each host takes to start and to connect.
"""

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass

from pgversus.host.commands import Finished
from pgversus.host.lost_time import LostTime
from pgversus.postgres.session import Target
from pgversus.records.trials import NO_LATENCIES, Window
from pgversus.workload.pgbench import Summary, UnreadableOutputError, has_begun_nothing, parse_summary, stderr_text
from pgversus.workload.pgbench_log import Latencies, LogInterval, UnreadableLogError, read_failures, read_latencies
from pgversus.workload.pgbench_run import LOG, PgbenchLoad, damaged, finished_run, log_files, output_of

_AFTER_S = 0.3
# Time for which the clients still work after the window.
_START_S = 0.1
# Time until a started pgbench begins to connect, at most, on a host that is not overloaded.


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedWindow:
    """The window of one host, and the run that contained it."""

    window: Window
    transactions: int
    """Of the whole run, with those before and after the window."""
    late_s: float
    """Time from the begin of the window until all clients were connected; negative if they were connected before."""


def run_aligned(load: PgbenchLoad, target: Target, seed: int, begin_s: float, end_s: float) -> AlignedWindow:
    """Run the load from now until the end of the window, and return the window; TrialFailedError if it fails.

    begin_s, end_s: the window, in seconds since 1970 by the clock of this host. Transactions that end in it count.
    """
    began_s = time.time()
    length_s = max(1, math.ceil(end_s - began_s + _AFTER_S))
    with ExitStack() as stack:
        with LostTime(None) as time_of_run:
            finished = stack.enter_context(finished_run(load, target, length_s, seed))
        if has_begun_nothing(finished.stdout):
            # No client was connected before the end.
            return AlignedWindow(window=_nothing(end_s - begin_s), transactions=0, late_s=end_s - begin_s)
        summary, latencies, failed = _read(load, finished, begin_s, end_s)
    known = latencies.histogram.total
    transactions = known + latencies.omitted
    share = min(1.0, (end_s - begin_s) / max(summary.seconds, end_s - begin_s))
    window = Window(
        transactions=transactions,
        seconds=end_s - begin_s,
        failed=failed,
        latency_sum_s=latencies.sum_s * transactions / known if known else 0.0,
        latency_max_s=latencies.max_s,
        histogram=latencies.histogram,
        unclocked=latencies.unclocked,
        connect_s=summary.connect_s,
        counters={"client_cpu_s": share * finished.cpu_s, "client_cpu_user_s": share * finished.cpu_user_s},
        output=output_of(finished),
        was_disturbed=time_of_run.was_lost,
    )
    late_s = began_s + _START_S + summary.connect_s - begin_s
    return AlignedWindow(window=window, transactions=summary.transactions, late_s=late_s)


def _nothing(seconds: float) -> Window:
    return Window(transactions=0, seconds=seconds, latency_sum_s=0.0, latency_max_s=0.0, histogram=NO_LATENCIES)


def _read(load: PgbenchLoad, finished: Finished, begin_s: float, end_s: float) -> tuple[Summary, Latencies, int]:
    """Return the summary of the run, and the latencies and the number of failures in the window."""
    is_open_loop, files = load.workload.is_open_loop, log_files(load, LOG)
    interval = LogInterval(begin=round(1e6 * begin_s), end=round(1e6 * end_s))
    try:
        summary = parse_summary(finished.stdout)
        whole = read_latencies(files, is_open_loop=is_open_loop)
        latencies = read_latencies(files, is_open_loop=is_open_loop, interval=interval)
        failed = read_failures(files, interval)
    except (UnreadableOutputError, UnreadableLogError) as error:
        raise damaged(load, f"{error}\n{stderr_text(finished.stderr)}".strip()) from error
    logged = whole.histogram.total + whole.omitted
    if logged != summary.transactions:
        raise damaged(load, f"pgbench counted {summary.transactions} transactions and logged {logged}")
    return summary, latencies, failed
