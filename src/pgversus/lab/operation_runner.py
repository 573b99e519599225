"""A context measured as an operation: each repetition on its own copy, with no other operation at the same time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialRunner
from pgversus.host.lost_time import LostTime
from pgversus.host.page_cache import evict, read_in
from pgversus.lab.acting_settings import Settings, check_reported_settings, session_settings
from pgversus.lab.arm_servers import ArmServer, ServerSet
from pgversus.lab.failures import failing_the_trial, failures_of_first_run
from pgversus.lab.readings import CPUS, grown, read_after, read_before
from pgversus.lab.runner import FirstRun
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.cluster import remove_directory
from pgversus.postgres.operation_reports import vacuum_counters
from pgversus.postgres.session import Connection, connect
from pgversus.records.preparation import Preparation
from pgversus.records.trials import NO_LATENCIES, Window
from pgversus.stats.counters import is_disturbed
from pgversus.study.comparison import CacheState
from pgversus.study.design import Design
from pgversus.study.windows import fit_operation
from pgversus.study.workload import Operation
from pgversus.workload.operation_run import OperationEnvironment, run_operation, verify

_SET_BY_PGVERSUS = "statement_timeout"
# In the sessions of operations, to end those that hang.
_FIX_OPERATION = "fix the operation, its preparation, or its verification"


class Repetitions:
    """Runs one arm's operation on a fresh copy, any number of times."""

    def __init__(
        self,
        operations: Sequence[Operation],
        servers: ServerSet,
        *,
        client: Client,
        scratch: Path,
        cache: CacheState,
        progress: Progress,
    ) -> None:
        """operations: one for each arm. scratch: working directory of programs; removed after each repetition."""
        self._progress = progress
        self.operations = operations
        self.servers = servers
        self._client = client
        self._scratch = scratch
        self._cache = cache
        self._ready: dict[int, dict[str, float]] = {}
        """The initial gauges of the arms whose server runs on a fresh copy."""

    def prepare(self, arm: int) -> None:
        """Start the arm's server on a fresh copy, unless it is ready; raise TrialFailedError if that fails."""
        if arm not in self._ready:
            with self._ending(arm):
                self._ready[arm] = self._begin(arm, self.servers.servers[arm])

    def run(
        self,
        arm: int,
        patience_s: float,
        *,
        before: Callable[[ArmServer], None] = lambda _: None,
        after_statement: Callable[[Connection], None] = lambda _: None,
    ) -> Window:
        """Run the operation on a fresh copy, verify it, and stop; raise TrialFailedError if any part fails.

        before: called with the running server before anything is timed. after_statement: called in the session of the
        operation after each of its statements.
        """
        self.prepare(arm)
        with self._ending(arm):
            server, gauges = self.servers.servers[arm], self._ready[arm]
            before(server)
            window = replace(self._timed(arm, server, patience_s, after_statement), gauges=gauges)
            verify(self.operations[arm], server.target, patience_s)
        self.end(arm)
        return window

    @contextmanager
    def _ending(self, arm: int) -> Iterator[None]:
        """End the arm after any failure in the body; turn a failure of the arm itself into a failed trial."""
        try:
            with failing_the_trial():
                yield
        except BaseException:
            self.end(arm)
            raise

    def end(self, arm: int) -> None:
        """Stop the arm's server and remove its used copy."""
        self._ready.pop(arm, None)
        self.servers.stop(arm)
        self.servers.servers[arm].forget_copy()
        remove_directory(self._scratch)

    def end_all(self) -> None:
        """Stop every running server and remove its copy."""
        self._ready.clear()
        self.servers.stop_all(writes=True)

    def _begin(self, arm: int, server: ArmServer) -> dict[str, float]:
        """Start a server on a fresh copy with caches in the declared state, as on every arm; return initial gauges."""
        self.end(arm)
        server.make_copy()
        assert server.data_directory is not None  # noqa: S101 - an operation is refused for external servers
        gauges = {}
        if self._cache is CacheState.COLD:
            cached = evict(server.data_directory)
            gauges["still_cached_share"] = 1.0 if cached is None else cached
        else:
            # A copy that shares its blocks with the snapshot has no pages in the cache; a written copy has all of them.
            read_in(server.data_directory)
        server.start()
        with connect(server.target) as connection:
            if self.servers.prewarms and self._cache is CacheState.WARM:
                self.servers.prewarm(arm, connection)
            catalog.checkpoint(connection)
        return {**gauges, "data_bytes": float(self.servers.counters(arm).database_bytes())}

    def _timed(
        self, arm: int, server: ArmServer, patience_s: float, after_statement: Callable[[Connection], None]
    ) -> Window:
        operation, counters = self.operations[arm], self.servers.counters(arm)
        environment = OperationEnvironment(
            client=self._client,
            scratch=self._scratch,
            patience_s=patience_s,
            say=lambda line: self._progress.doing(f"{server.arm.label}: {line}"),
            after_statement=after_statement,
        )
        before = read_before(server, counters)
        with LostTime(server.postmaster_pid) as time:
            done = run_operation(operation, server.target, environment, server.data_directory)
        after = read_after(server, counters)
        seconds = sum(done.steps.values())
        counted = {
            **done.counters,
            **grown(before, after, self.servers.own_growth(arm)),
            **vacuum_counters(done.notices),
        }
        if done.session_memory_bytes is not None:
            counted["session_memory_peak_bytes"] = float(done.session_memory_bytes)
        return Window(
            transactions=1,
            seconds=seconds,
            latency_sum_s=seconds,
            latency_max_s=seconds,
            histogram=NO_LATENCIES,
            counters=counted,
            steps=done.steps,
            output=done.output,
            was_disturbed=time.was_lost or is_disturbed(counted, seconds, CPUS),
        )


class OperationTrialRunner:
    """The trial runner of operations: each arm is copied, started, timed and stopped before the next.

    To start all servers of a block first, and to time their operations right after each other, makes the ratios far
    less precise (docs/adr/0018-operations.md).
    """

    def __init__(self, repetitions: Repetitions, patience_s: float) -> None:
        self._repetitions = repetitions
        self._patience_s = patience_s
        self._windows: dict[int, Window] = {}

    def start(self, arm: int) -> None:
        """Do nothing: the server starts when the turn of its arm comes."""

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:  # noqa: ARG002 - the protocol has it
        """Do nothing: an operation runs once."""
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:  # noqa: ARG002 - the same
        """Run the operation once."""
        self._windows[arm] = self._repetitions.run(arm, self._patience_s)

    def collect(self, arm: int) -> Sequence[Window]:
        """Return the window of the operation."""
        return [self._windows.pop(arm)]

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:  # noqa: ARG002 - the same
        """Return nothing: the window has its counters."""
        return {}

    def abandon(self) -> None:
        """Discard the windows."""
        self._windows.clear()

    def stop_all(self) -> None:
        """Stop every running server and remove its copy."""
        self._repetitions.end_all()


class OperationRunner:
    """An operation on the servers of a context."""

    def __init__(self, repetitions: Repetitions, design: Design, *, patience_s: float) -> None:
        """patience_s: for the first repetition, whose duration is unknown."""
        self._repetitions = repetitions
        self._design = design
        self._patience_s = patience_s

    def try_out(self) -> FirstRun:
        """Run the operation once on every arm, one after the other."""
        settings: list[Settings] = []
        windows = [self._first(arm, server, settings) for arm, server in enumerate(self._repetitions.servers.servers)]
        slowest_s = max(window.seconds for window in windows)
        return FirstRun(
            design=fit_operation(self._design, slowest_s=slowest_s),
            settings=tuple(settings),
            writes=True,
            longest_transaction_s=slowest_s,
        )

    def trial_runner(self, preparation: Preparation) -> TrialRunner:
        """Return the trial runner, with one repetition in each block."""
        return OperationTrialRunner(self._repetitions, preparation.patience_s)

    def _first(self, arm: int, server: ArmServer, settings: list[Settings]) -> Window:
        """Run the operation for the first time, and check the settings during its statements.

        settings: those of a new session of each arm; this arm's are appended.
        """
        operation = self._repetitions.operations[arm]
        reported: dict[str, list[str]] = {}

        def ask(connection: Connection) -> None:
            for setting in server.arm.settings:
                if setting.name.lower() == _SET_BY_PGVERSUS:
                    continue
                reported.setdefault(setting.name, []).append(catalog.current_setting(connection, setting.name))

        with failures_of_first_run(server.arm.label, operation, self._patience_s, _FIX_OPERATION):
            window = self._repetitions.run(
                arm,
                self._patience_s,
                before=lambda started: settings.append(session_settings(started)),
                after_statement=ask,
            )
        check_reported_settings(server.arm, settings[arm], reported, operation.name)
        return window
