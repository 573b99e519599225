"""Load in windows of hundredths of a second: runs of a few transactions, or slices of a run that is stopped between.

Counters are read once before all windows of a block and once after them, since reading takes longer than a window. What
sessions did outside the windows is taken out in proportion to the transactions.
"""

import math
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgversus.errors import PgversusError
from pgversus.host.commands import Finished
from pgversus.host.pausable import PausableProgram, ProgramEndedError
from pgversus.host.processors import started_on
from pgversus.lab.apparatus import TrialFailedError
from pgversus.lab.measuring.load import (
    Load,
    check_end,
    clear_logs,
    finished_transactions,
    log_files,
    output_of,
    pgbench_command,
    read_window,
)
from pgversus.lab.measuring.postgres_apparatus import WarmApparatus, trial_failed
from pgversus.lab.measuring.readings import Reading, grown, read_after, read_before, read_host_of
from pgversus.lab.measuring.server_set import ServerSet
from pgversus.postgres.session import Target
from pgversus.stats.counters import difference
from pgversus.stats.trials import Window
from pgversus.study.counters import COUNTERS
from pgversus.study.preparation import Preparation
from pgversus.workload.pgbench import UnreadableOutputError, error_words, parse_summary
from pgversus.workload.pgbench_log import UnreadableLogError, read_ends
from pgversus.workload.pgbench_slices import Slice, slices

_LONGEST_RUN_S = "100000"
_CONNECT_S = 0.03
# Connecting and the first transactions, which fill the caches of a session.
_PAUSE_SHARE = 0.1
# Of a slice: a pause in which transactions in flight end. It is two mean latencies or more (study/windows.py).
_SHORTEST_S = 1e-6
_WARM_UP_EXECUTIONS = 2
_NOTHING_READ = Reading(server={}, host={})


@dataclass(slots=True)
class _Done:
    """What the load of an arm has done since its warm-up in this block."""

    before: Reading = _NOTHING_READ
    host: dict[str, float] = field(default_factory=dict)
    """Growth of the host's counters within the windows."""
    client: dict[str, float] = field(default_factory=dict)
    """Processor time of pgbench."""
    transactions: int = 0
    in_windows: int = 0

    def counters(self, after: Reading, own_growth: Mapping[str, float]) -> dict[str, float]:
        """Return the counters of the windows alone; what grows with the load is theirs by their transactions."""
        share = self.in_windows / self.transactions if self.transactions else 0.0
        server = {name: value for name, value in grown(self.before, after, own_growth).items() if name in after.server}
        scaled = {
            name: value * share if COUNTERS[name].per_transaction else value
            for name, value in {**server, **self.client}.items()
        }
        return {**scaled, **self.host}


class ShortApparatus(WarmApparatus):
    """The servers of one context under load in short windows."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[Load], preparation: Preparation, *, prewarms: bool = False
    ) -> None:
        """Take the same as WarmApparatus."""
        super().__init__(servers, loads, preparation, prewarms=prewarms)
        self._preparation = preparation
        self._done: dict[int, _Done] = {}

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm up, then read the counters from which the windows are counted."""
        levels = super().warm_up(arm, seed)
        try:
            before = read_before(self._set.servers[arm], self._set.counters(arm))
            # What the warm-up did is not among it.
            self._done[arm] = _Done(before=before)
        except PgversusError as error:
            raise trial_failed(error) from error
        return levels

    def counted(self, arm: int) -> Mapping[str, float]:
        """Return what was counted in all windows of the arm in this block."""
        try:
            after = read_after(self._set.servers[arm], self._set.counters(arm))
        except PgversusError as error:
            raise trial_failed(error) from error
        return self._done[arm].counters(after, self._set.own_growth(arm))


class TransactionApparatus(ShortApparatus):
    """Windows of a number of transactions, each a run of pgbench (-t)."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        window = self._run(arm, self._preparation.design.window_transactions or 1, seed, name)
        self._done[arm].in_windows += window.transactions
        self._windows[arm].append(replace(window, counters={}))

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run a few executions: a session is new in each window anyway."""
        design = self._preparation.design
        windows = design.warm_up_s / max(design.window_s, _SHORTEST_S)
        transactions = max(_WARM_UP_EXECUTIONS, math.ceil(windows * (design.window_transactions or 1)))
        self._done[arm] = _Done()
        self._run(arm, transactions, seed, None)

    def _run(self, arm: int, transactions: int, seed: int, name: str | None) -> Window:
        load, target = self._loads[arm], self._set.servers[arm].target
        design = self._preparation.design
        seconds = design.window_s * transactions / (design.window_transactions or 1)
        before = read_host_of(self._set.servers[arm])
        with finished_transactions(load, target, transactions, seed, seconds=seconds, log_name=name) as finished:
            done = self._done[arm]
            _add(done.host, difference(before, read_host_of(self._set.servers[arm])))
            window = read_window(load, finished)
        done.transactions += window.transactions
        _add(done.client, window.counters)
        return window


class SliceApparatus(ShortApparatus):
    """Windows that are slices of a run of pgbench, which is stopped between them."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[Load], preparation: Preparation, *, prewarms: bool = False
    ) -> None:
        """Take the same as WarmApparatus."""
        super().__init__(servers, loads, preparation, prewarms=prewarms)
        self._sessions: dict[int, _Session] = {}
        self._connect_s = _CONNECT_S + preparation.connect_s

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run one session, as those that are measured: data are in memory already, and each session warms its own."""
        seconds = self._preparation.design.warm_up_s
        if seconds >= 1:
            super()._load_until_steady(arm, seed)
            return
        self._open(arm, seed, None).run(seconds)
        self._sessions.pop(arm).close()

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window; the first one of a session connects the clients."""
        session = self._sessions.get(arm) or self._open(arm, seed, name)
        before = read_host_of(self._set.servers[arm])
        session.run(self._preparation.design.window_s)
        _add(self._done[arm].host, difference(before, read_host_of(self._set.servers[arm])))
        time.sleep(self._preparation.design.window_s * _PAUSE_SHARE)

    def collect(self, arm: int) -> Sequence[Window]:
        """End the session and return its windows, without those in which not all clients were connected."""
        session = self._sessions.pop(arm)
        wanted = len(session.edges)
        ended = session.close()
        if len(ended.windows) < wanted:
            self._connect_s *= 2
        done = self._done[arm]
        _add(done.client, ended.client)
        done.transactions += ended.transactions
        done.in_windows += sum(window.transactions for window in ended.windows)
        return ended.windows

    def _open(self, arm: int, seed: int, log_name: str | None) -> "_Session":
        session = _Session(self._loads[arm], self._set.servers[arm].target, f"slices-{arm}", log_name)
        session.open(seed, self._connect_s)
        self._sessions[arm] = session
        return session

    def abandon(self) -> None:
        """End open sessions."""
        for session in self._sessions.values():
            session.kill()
        self._sessions.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionResult:
    """What a session has done."""

    windows: list[Window]
    transactions: int
    """Those outside the windows included."""
    client: Mapping[str, float]


class _Session:
    """One run of pgbench against one arm, stopped but for its windows."""

    def __init__(self, load: Load, target: Target, log_prefix: str, log_name: str | None) -> None:
        self._load = load
        self._target = target
        self._log_prefix = log_prefix
        self._log_name = log_name
        self.edges: list[tuple[int, int]] = []
        """When each window began and ended, in microseconds since 1970 by pgbench's clock."""

    def open(self, seed: int, connect_s: float) -> None:
        """Connect the clients, run for a moment, and stop. TrialFailedError when pgbench ends before."""
        self._load.scratch.mkdir(parents=True, exist_ok=True)
        arguments = pgbench_command(self._load, self._target, ("-T", _LONGEST_RUN_S), seed, self._log_prefix)
        # pgbench reads the time of day once and counts on by the monotonic clock; so do we, at the same moment.
        self._epoch_ns = time.time_ns() - time.monotonic_ns()
        with started_on(self._load.processors):
            self._program = PausableProgram(arguments, environment=self._target.environment())
        try:
            time.sleep(connect_s)
            self._stop()
        except BaseException:
            self.kill()
            raise

    def run(self, seconds: float) -> None:
        """Continue for one window."""
        begin = self._now()
        self._program.resume()
        time.sleep(seconds)
        self._stop()
        self.edges.append((begin, self._now()))

    def close(self) -> _SessionResult:
        """End the run. TrialFailedError with pgbench's own words when it fails, or when its log cannot be read."""
        limit_s = self._load.longest_s
        try:
            # The signal on which pgbench lets its clients finish, as at the end of -T.
            finished = self._program.finish(signal.SIGALRM, limit_s)
            check_end(finished, limit_s)
            return self._ended(finished)
        finally:
            clear_logs(self._load, self._log_prefix, self._log_name)

    def kill(self) -> None:
        """End it whatever it does. Never fails."""
        self._program.kill()
        clear_logs(self._load, self._log_prefix, None)

    def _now(self) -> int:
        return (time.monotonic_ns() + self._epoch_ns) // 1000

    def _stop(self) -> None:
        try:
            self._program.stop()
        except ProgramEndedError as error:
            finished = self._program.ended()
            check_end(finished, 0.0)
            raise TrialFailedError(f"pgbench ended by itself\n{output_of(finished)}") from error

    def _ended(self, finished: Finished) -> _SessionResult:
        try:
            summary = parse_summary(finished.stdout)
            ends = read_ends(log_files(self._load, self._log_prefix))
        except (UnreadableOutputError, UnreadableLogError) as error:
            raise TrialFailedError(f"{error}\n{error_words(finished.stderr)}".strip()) from error
        if len(ends.clients) != summary.transactions:
            raise TrialFailedError(
                f"pgbench counted {summary.transactions} transactions and logged {len(ends.clients)}"
            )
        found = slices(ends, self.edges, self._load.workload.clients)
        edges = self.edges[len(self.edges) - len(found) :]
        windows = [_window(one, edge) for one, edge in zip(found, edges, strict=True)]
        if windows:
            # What belongs to the whole session is kept with its first window.
            windows[0] = replace(
                windows[0], failed=summary.failed, connect_s=summary.connect_s, output=output_of(finished)
            )
        return _SessionResult(
            windows=windows,
            transactions=summary.transactions,
            client={"client_cpu_s": finished.cpu_s, "client_cpu_user_s": finished.cpu_user_s},
        )


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + value


def _window(one: Slice, edge: tuple[int, int]) -> Window:
    whole = one.histogram.total
    return Window(
        transactions=one.transactions,
        seconds=(edge[1] - edge[0]) / 1e6,
        latency_sum_s=one.latency_sum_s * one.transactions / whole if whole else 0.0,
        latency_max_s=one.latency_max_s,
        histogram=one.histogram,
    )
