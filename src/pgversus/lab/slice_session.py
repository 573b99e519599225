"""One run of pgbench that is stopped except during its windows, and the places of its processes.

The kernel's placement of a client and its server process is random and persists for their lifetime. On a host with two
processors it causes most of the spread of fast statements (docs/statistics.md, "Places"). Here a placement is drawn for
every quad, the same for all arms; a moment later the kernel is free to move the processes.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.host.commands import Finished
from pgversus.host.lost_time import LATE_S, clocks_disagree, now
from pgversus.host.pausable import PausableProgram, ProgramEndedError
from pgversus.host.permissions import make_private
from pgversus.host.processors import place, release, started_on, threads_of
from pgversus.lab.failures import failing_the_trial
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.postgres.session import Target
from pgversus.records.trials import Window
from pgversus.study.design import Design
from pgversus.workload.pgbench import UnreadableOutputError, parse_summary, stderr_text
from pgversus.workload.pgbench_log import Slice, SliceEnd, UnreadableLogError, clocks_differ, read_ends, slices
from pgversus.workload.pgbench_run import (
    PgbenchLoad,
    check_end,
    clear_logs,
    damaged,
    log_files,
    output_of,
    pgbench_command,
)

_WINDOWS_OF_QUAD = 2
# Of one arm.
_FEW_PROCESSORS = 4


class Placement:
    """The processors of one arm's session; sessions of all arms use the same seed and so the same placements."""

    def __init__(self, design: Design, seed: int) -> None:
        usable = sorted(os.sched_getaffinity(0))
        self._clients = design.client_processors or usable
        self._servers = design.server_processors or usable
        self._rng = np.random.default_rng(seed)
        self._windows = 0
        self._is_permitted = True
        # It is unknown which server process serves which thread. With few processors it matters whether they share one,
        # so all threads then begin on the same processor.
        self._share_one = len(usable) < _FEW_PROCESSORS

    def restart(self) -> None:
        """Draw a new placement for the next window, which begins a quad."""
        self._windows = 0

    def begin(self, clients: Sequence[int], servers: Sequence[int]) -> None:
        """Place the client's threads and the server's processes for the next window."""
        if self._windows % _WINDOWS_OF_QUAD == 0:
            for_clients = self._rng.permutation(self._clients).tolist()
            self._for_clients = for_clients[:1] if self._share_one else for_clients
            self._for_servers = self._rng.permutation(self._servers).tolist()
        self._windows += 1
        if not self._is_permitted:
            return
        place(clients, self._for_clients)
        if not place(servers, self._for_servers):
            # Clients that are placed without their server processes would only hinder these.
            self._is_permitted = False
            release(clients, self._clients)

    def free(self, clients: Sequence[int], servers: Sequence[int]) -> None:
        """Release the placement."""
        release(clients, self._clients)
        release(servers, self._servers)


_LONGEST_RUN_S = "100000"
_CONNECT_POLL_S = 0.002
_CONNECT_TIMEOUT_S, _NEXT_CLIENT_S = 60.0, 5.0
_CLOCK_SUSPECT_S = 1.0
# Without a new client for this long, the clock may have been set: sessions are recognized by their start.
_FIRST_LOAD_S = 0.01
# After connecting: the first transactions, which fill the caches of a session.
_CLOCK_READINGS = 5
_PLACED_S = 0.002
# From the start of a window, when all tasks wake up. A single client and its server process stay placed throughout.


class ClockSetError(TrialFailedError):
    """The clock was set, so sessions cannot be distinguished from earlier ones."""


class SliceSession:
    """One run of pgbench on one arm, stopped except during its windows."""

    def __init__(
        self,
        load: PgbenchLoad,
        target: Target,
        watch: LoadSessions,
        places: Placement,
        log_prefix: str,
    ) -> None:
        self._load = load
        self._target = target
        self._watch = watch
        self._places = places
        self._log_prefix = log_prefix
        self.log_name: str | None = None
        """Name under which the logs are kept, if logs are kept."""
        self._program: PausableProgram | None = None
        self._processes: list[int] = []
        self._logs_seen: float | None = None
        """The epoch at which the open logs of pgbench were first seen."""
        self._begins: list[int] = []
        """The start of each window, in microseconds since 1970 by pgbench's clock."""
        self._stops: list[SliceEnd] = []
        """The stop before the first window, and the stop of each window."""
        self._host: dict[str, float] = {}
        self._opened = now()
        self._time_was_lost = False

    def open(self, seed: int) -> None:
        """Connect the clients, run for a moment, and stop. Raise TrialFailedError if pgbench ends by itself."""
        client = self._load.client
        make_private(client.user, self._load.scratch)
        # The logs show how far pgbench has come.
        clear_logs(self._load, self._log_prefix, None)
        arguments = pgbench_command(self._load, self._target, ("-T", _LONGEST_RUN_S), seed, self._log_prefix)
        environment = client.environment(self._target)
        # Like pgbench, read the time of day once, at the same moment, and then follow the monotonic clock.
        self._epoch_ns = _epoch_ns()
        self._began = self._now() / 1e6
        with started_on(self._load.processors):
            self._program = PausableProgram(
                arguments, environment=environment, scratch=self._load.scratch, user=client.user
            )
        self._wait_until_connected()
        stopped = self._pause()
        while self._connected() != self._processes:
            # One of these processes has ended, so it did not belong to a client.
            self._running.resume()
            self._wait_until_connected()
            stopped = self._pause()
        self._stops.append(self._drained(stopped))
        self._tasks = threads_of(self._running.pid), self._processes

    def run(self, seconds: float) -> None:
        """Continue for one window, then wait until everything that was sent in it is answered."""
        self._places.begin(*self._tasks)
        begin = self._now()
        self._running.resume()
        if self._load.workload.clients > 1:
            time.sleep(min(seconds, _PLACED_S))
            self._places.free(*self._tasks)
        time.sleep(max(0.0, seconds - (self._now() - begin) / 1e6))
        stopped = self._pause()
        self._time_was_lost = self._time_was_lost or (stopped - begin) / 1e6 > seconds + LATE_S
        self._begins.append(begin)
        self._stops.append(self._drained(stopped))

    def warm_up(self, seconds: float) -> None:
        """Run without a window. Its transactions count as those outside the windows."""
        self.run(seconds)
        self._begins.clear()
        del self._stops[:-1]
        self._time_was_lost = False
        self._places.restart()

    def add_host(self, growth: Mapping[str, float]) -> None:
        """Add the host's counters of a window."""
        for name, value in growth.items():
            self._host[name] = self._host.get(name, 0.0) + value

    def close(self) -> tuple[list[Window], int]:
        """End the run; return the windows, and the number of all transactions, including those outside the windows.

        Raise TrialFailedError with pgbench's message if it fails, or if its log cannot be read.
        """
        limit_s = self._load.longest_s
        try:
            # On this signal pgbench lets its clients finish, as at the end of -T.
            finished = self._running.finish(signal.SIGALRM, limit_s)
            check_end(finished, limit_s)
            return self._ended(finished)
        finally:
            clear_logs(self._load, self._log_prefix, self.log_name)

    def kill(self) -> None:
        """Kill pgbench in any state. Never fails."""
        if self._program is not None:
            self._program.kill()
        clear_logs(self._load, self._log_prefix, None)

    @property
    def _running(self) -> PausableProgram:
        assert self._program is not None  # noqa: S101 - a session is opened first
        return self._program

    def _now(self) -> int:
        return (time.monotonic_ns() + self._epoch_ns) // 1000

    def _wait_until_connected(self) -> None:
        """Wait until all clients are connected, and then for as long as the first load takes."""
        clients = self._load.workload.clients
        changed = time.monotonic()
        self._processes = []
        while True:
            found = self._connected()
            if found != self._processes:
                self._processes, changed = found, time.monotonic()
            elif len(found) == clients:
                return
            if self._running.has_ended():
                self._fail_ended()
            # A client that fails ends its session, and the others continue.
            patience_s = (_NEXT_CLIENT_S if found else _CONNECT_TIMEOUT_S) + self._load.connect_allowance_s
            waited_s = time.monotonic() - changed
            if waited_s > _CLOCK_SUSPECT_S and clocks_disagree(self._opened, now()):
                raise ClockSetError("the clock was set while pgbench's clients connected")
            if waited_s > patience_s:
                self._fail_clients("pgbench's clients were not connected in time")
            time.sleep(_FIRST_LOAD_S if len(found) == clients else _CONNECT_POLL_S)

    def _connected(self) -> list[int]:
        """Return the server processes of the clients, without sessions that these open later."""
        # pgbench closes a first connection of its own before it opens its logs and connects its clients. On a busy host
        # the server process of that connection may linger, but it executes nothing.
        if self._logs_seen is None:
            if not log_files(self._load, self._log_prefix):
                return []
            self._logs_seen = self._now() / 1e6
        with failing_the_trial():
            found = self._watch.processes(self._began, at_work_since=self._logs_seen)
        return found[: self._load.workload.clients]

    def _pause(self) -> int:
        """Stop pgbench and return the time at which it had stopped: its clients sent nothing later."""
        try:
            self._running.stop()
        except ProgramEndedError:
            self._fail_ended()
        return self._now()

    def _drained(self, stopped: int) -> SliceEnd:
        """Wait until the sessions of the stopped clients have finished their statements."""
        with failing_the_trial():
            found = self._watch.finished(self._processes, stopped / 1e6, self._load.longest_s)
        if found is None:
            with failing_the_trial():
                self._watch.terminate(self._processes)
            raise TrialHungError(f"a statement is still running {self._load.longest_s:.0f} s after its window")
        if len(found) != self._load.workload.clients:
            self._fail_clients("a session of pgbench's clients has ended")
        self._time_was_lost = self._time_was_lost or any(one.was_stopped for one in found)
        # Both use the same clock of the same host, unless it is set in the meantime.
        now = self._now()
        sessions = ((round(1e6 * one.began), min(max(stopped, round(1e6 * one.finished)), now)) for one in found)
        return SliceEnd(stopped=stopped, sessions=tuple(sessions))

    def _fail_clients(self, problem: str) -> NoReturn:
        # pgbench continues as long as one client does; this signal lets the clients finish and ends pgbench.
        finished = self._running.finish(signal.SIGALRM, self._load.longest_s)
        # Until its first connection pgbench does not handle the signal, which then kills it.
        if finished.exit_code != -signal.SIGALRM:
            check_end(finished, self._load.longest_s)
        raise TrialFailedError(f"{problem}\n{output_of(finished)}")

    def _fail_ended(self) -> NoReturn:
        finished = self._running.ended()
        check_end(finished, 0.0)
        raise TrialFailedError(f"pgbench ended by itself\n{output_of(finished)}")

    def _ended(self, finished: Finished) -> tuple[list[Window], int]:
        try:
            summary = parse_summary(finished.stdout)
            ends = read_ends(log_files(self._load, self._log_prefix))
        except (UnreadableOutputError, UnreadableLogError) as error:
            raise damaged(self._load, f"{error}\n{stderr_text(finished.stderr)}".strip()) from error
        if len(ends.clients) != summary.transactions:
            problem = f"pgbench counted {summary.transactions} transactions and logged {len(ends.clients)}"
            raise damaged(self._load, problem)
        found = slices(ends, self._begins, self._stops)
        if has_other_clock := clocks_differ(ends, self._begins, self._stops):
            # Latencies across a pause would be wrong, even negative.
            found = [one.without_latencies() for one in found]
        lengths_s = [(stop.end - begin) / 1e6 for begin, stop in zip(self._begins, self._stops[1:], strict=True)]
        latency_s = self._mean_latency_s(found, sum(lengths_s))
        windows = [_window(one, length_s, latency_s) for one, length_s in zip(found, lengths_s, strict=True)]
        was_disturbed = self._time_was_lost or self._running.was_signalled or has_other_clock
        was_disturbed = was_disturbed or clocks_disagree(self._opened, now())
        counters = self._counters_of_a_window(finished, windows, summary.transactions)
        windows = [replace(one, counters=counters, was_disturbed=was_disturbed) for one in windows]
        # Values of the whole session are stored with its first window.
        windows[:1] = [
            replace(one, failed=summary.failed, connect_s=summary.connect_s, output=output_of(finished))
            for one in windows[:1]
        ]
        return windows, summary.transactions

    def _counters_of_a_window(
        self, finished: Finished, windows: Sequence[Window], transactions: int
    ) -> Mapping[str, float]:
        """Return the usage of host and pgbench, divided equally among all windows; none is examined alone."""
        share = sum(window.transactions for window in windows) / transactions if transactions else 0.0
        client = {"client_cpu_s": share * finished.cpu_s, "client_cpu_user_s": share * finished.cpu_user_s}
        return {name: value / len(windows) for name, value in {**self._host, **client}.items()}

    def _mean_latency_s(self, found: Sequence[Slice], seconds: float) -> float:
        """Return the mean of the known latencies; without any, that of a closed loop by Little's law."""
        known = sum(one.histogram.total for one in found)
        if known:
            return sum(one.latency_sum_s for one in found) / known
        return seconds * self._load.workload.clients / max(1, sum(one.transactions for one in found))


def replies_wait(load: PgbenchLoad, target: Target, design: Design) -> bool:
    """Return whether a statement cannot finish while its client is stopped, because its reply fills all buffers.

    The client is stopped within an execution, which must therefore take longer than the client runs, about 10 ms. False
    if the load fails; its windows then show why.
    """
    watch = LoadSessions(target)
    seed = design.seed or 1
    session = SliceSession(load, target, watch, Placement(design, seed), "replies")
    try:
        session.open(seed)
        return watch.wait_to_send()
    except TrialFailedError:
        return False
    finally:
        session.kill()
        watch.close()


def _epoch_ns() -> int:
    """Return the epoch at which the monotonic clock was 0, in nanoseconds."""
    offsets = []
    for _ in range(_CLOCK_READINGS):
        before, epoch, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        offsets.append((after - before, epoch - (before + after) // 2))
    # The reading with the shortest delay.
    return min(offsets)[1]


def _window(one: Slice, seconds: float, mean_latency_s: float) -> Window:
    unknown = one.transactions - one.histogram.total
    return Window(
        transactions=one.transactions,
        seconds=seconds,
        latency_sum_s=one.latency_sum_s + unknown * mean_latency_s,
        latency_max_s=one.latency_max_s,
        histogram=one.histogram,
    )
