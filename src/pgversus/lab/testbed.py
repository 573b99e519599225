"""The testbed of a study on this host: builds, loaded data, servers and loads, each created on first use."""

from collections.abc import Container, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pgversus.builds.inspect import linked_libraries
from pgversus.builds.model import Build
from pgversus.data.cache_quota import free_up
from pgversus.data.snapshots import Snapshot, check_equal, check_same_data, data_hash
from pgversus.engine.testbed import TrialRunner
from pgversus.errors import StudyError
from pgversus.host.processors import split_processors
from pgversus.lab.acting_settings import check_compared_settings_act, check_settings_in_sessions
from pgversus.lab.arm_servers import ArmServer, ExternalServer, ManagedServer, ServerSet, server_settings
from pgversus.lab.build_verification import (
    built_from,
    check_same_build,
    compiled_in,
    drop_requested_differences,
    library_differences,
)
from pgversus.lab.failures import failures_of_arm, failures_of_the_host
from pgversus.lab.load_runner import ExplainArms, LoadRunner
from pgversus.lab.operation_runner import OperationRunner, Repetitions
from pgversus.lab.resources import StudyResources
from pgversus.lab.runner import WorkloadRunner
from pgversus.postgres.fingerprint import Fingerprint, differences, table_differences
from pgversus.records.preparation import RUNNING_SERVER, ArmFacts, Preparation, first_patience_s
from pgversus.study.comparison import BASELINE, Arm, CacheState
from pgversus.study.dataset import Dataset
from pgversus.study.needs import KEPT_COPIES_BYTES, disk_bytes
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.windows import check_budget, check_first_loads, check_windows
from pgversus.study.workload import PgbenchWorkload, loads_of, operations_of
from pgversus.workload.pgbench_run import PgbenchLoad, write_scripts

_CLIENTS_PER_SECOND = 50
"""Connections that any host can open in a second; needed for the first load only."""

_ArmKey = tuple[ServerName, Dataset, tuple[Setting, ...], bool]
_ScriptFiles = tuple[Path | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A prepared context."""

    servers: ServerSet
    trial_runner: TrialRunner
    writes: bool


class PostgresTestbed:
    """The engine's testbed on real servers."""

    def __init__(
        self, study: Study, shared: StudyResources, stack: ExitStack, explain: ExplainArms | None = None
    ) -> None:
        """stack: stops all servers and removes their data at its end.

        explain: captures plans on a context's running servers; None to skip this.
        """
        self._study = study
        self._shared = shared
        self._builds = shared.resources.builds
        self._directory = shared.resources.directory
        # Computed once: it looks at every arm of the study.
        self._common = shared.resources.common_settings
        self._snapshots = shared.snapshots
        self._progress = shared.progress
        self._stack = stack
        self._explain = explain
        self._sets: dict[tuple[_ArmKey, ...], ServerSet] = {}
        self._scripts: dict[PgbenchWorkload, _ScriptFiles] = {}
        self._ready: dict[int, _Ready] = {}
        # Registered before any server is, so that it runs after all servers are stopped.
        stack.callback(self._forget_copies)

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Load missing data and try the load; raise PgversusError if the context cannot be measured.

        Raises HostError if this host failed; the context may then be tried again.
        """
        with failures_of_the_host(self._directory.root):
            return self._prepare(context, known)

    def _prepare(self, context: Context, known: Preparation | None) -> Preparation:
        arms = context.comparison.arms
        check_context(context, is_joint=self._shared.load_hosts is not None)
        snapshots, servers = self._loaded(context)
        self._forget_other_copies(servers)
        workload_runner = self._workload_runner(context, servers)
        preparation = self._try_out(context, workload_runner, snapshots) if known is None else known
        if known is not None and not self._has_changed_data(arms):
            check_same_data(context, known, snapshots)
        trial_runner = workload_runner.trial_runner(preparation)
        # Not the whole preparation: its plans take the most memory, and there may be thousands of contexts.
        self._ready[context.number] = _Ready(servers=servers, trial_runner=trial_runner, writes=preparation.writes)
        return preparation

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """At the end, stop the servers that first loads in the body have left running for each other."""
        try:
            yield
        finally:
            with failures_of_the_host(self._directory.root):
                for servers in self._sets.values():
                    servers.stop_started()

    def servers_of(self, context: Context) -> ServerSet:
        """Return the servers of a context with its data, all stopped; raise PgversusError if it cannot be loaded."""
        with failures_of_the_host(self._directory.root):
            return self._loaded(context)[1]

    def trial_runner(self, context: Context) -> TrialRunner:
        """Return the trial runner of a prepared context."""
        ready = self._ready[context.number]
        self._forget_other_copies(ready.servers)
        return ready.trial_runner

    def failures(self, context: Context, arm: int) -> AbstractContextManager[None]:
        """Return a context manager that raises HostError or ServerError if the host or an external server fails."""
        return failures_of_arm(self._ready[context.number].servers.servers[arm], self._directory.root, self._progress)

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Remove data that none of these contexts needs, and enough of the cache to make room for their data."""
        self._forget_copies()
        self._sets.clear()
        self._ready.clear()
        there = self._snapshots.keep_only([arm for context in contexts for arm in context.comparison.arms])
        free_up(disk_bytes(contexts) - there, self._shared.resources.cache, self._progress.say)

    def _forget_other_copies(self, used: ServerSet) -> None:
        """Keep big copies of other servers, and as many cheap ones as the estimate of disk space includes."""
        room = KEPT_COPIES_BYTES
        for servers in self._sets.values():
            if servers is not used:
                room -= servers.cheap_copies_bytes
                if room < 0:
                    servers.forget_copies(only_cheap=True)

    def _forget_copies(self) -> None:
        for servers in self._sets.values():
            servers.forget_copies()

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return whether both are loads that only read, with warm caches, on the same servers."""
        writing = {number for number, ready in self._ready.items() if ready.writes}
        return can_share_start(one, other, writing)

    def _loaded(self, context: Context) -> tuple[tuple[Snapshot, ...], ServerSet]:
        _check_external_servers(context)
        arms = context.comparison.arms
        snapshots = tuple(self._snapshots.get(arm, self._builds[arm.server]) for arm in arms)
        if not self._has_changed_data(arms) and not _may_have_other_rows(context):
            check_equal(arms, snapshots)
        return snapshots, self._server_set(context, snapshots)

    def _has_changed_data(self, arms: Sequence[Arm]) -> bool:
        return any(arm.server in self._shared.changed_servers for arm in arms)

    def _server_set(self, context: Context, snapshots: Sequence[Snapshot]) -> ServerSet:
        arms = context.comparison.arms
        key = _server_key(context)
        if key not in self._sets:
            number = len(self._sets) + 1
            servers = [self._server(arm, snapshot, number) for arm, snapshot in zip(arms, snapshots, strict=True)]
            self._sets[key] = ServerSet(servers, prewarms=all(snapshot.has_prewarm for snapshot in snapshots))
        return self._sets[key]

    def _server(self, arm: Arm, snapshot: Snapshot, set_number: int) -> ArmServer:
        server: ArmServer
        if isinstance(arm.server, RunningServer):
            server = ExternalServer(arm, arm.server.uri)
        else:
            assert snapshot.cluster is not None  # noqa: S101 - only running servers have none
            server = ManagedServer(
                arm,
                snapshot.cluster,
                snapshot.size_bytes,
                copy=self._directory.copy_directory(set_number, arm.index),
                sockets=self._directory.socket_directory(arm.index),
                log=self._directory.server_log(arm.index),
                settings=server_settings(arm, self._common),
            )
        self._stack.callback(server.stop)
        return server

    def _workload_runner(self, context: Context, servers: ServerSet) -> WorkloadRunner:
        comparison, workload = context.comparison, context.comparison.workload
        # The speed of the first run is still unknown.
        contexts = len(self._study.contexts)
        patience_s = first_patience_s(comparison.design, contexts)
        workloads = [arm.workload for arm in comparison.arms]
        if not workload.runs_once:
            return LoadRunner(
                comparison,
                servers,
                [self._load_of(load, patience_s) for load in loads_of(workloads)],
                contexts=contexts,
                explain=self._explain,
                load_hosts=self._shared.load_hosts,
            )
        repetitions = Repetitions(
            operations_of(workloads),
            servers,
            client=self._shared.client,
            scratch=self._directory.root / "scratch",
            cache=comparison.cache,
            progress=self._progress,
        )
        return OperationRunner(repetitions, comparison.design, patience_s=patience_s)

    def _load_of(self, workload: PgbenchWorkload, patience_s: float) -> PgbenchLoad:
        if workload not in self._scripts:
            folder = self._directory.root / f"scripts-{len(self._scripts) + 1}"
            self._scripts[workload] = write_scripts(workload, folder, self._directory.user)
        return PgbenchLoad(
            workload=workload,
            client=self._shared.client,
            script_files=self._scripts[workload],
            scratch=self._directory.root / "logs",
            kept_logs=self._shared.kept_logs,
            connect_allowance_s=workload.clients // _CLIENTS_PER_SECOND,
            longest_s=patience_s,
        )

    def _try_out(self, context: Context, workload_runner: WorkloadRunner, snapshots: Sequence[Snapshot]) -> Preparation:
        comparison = context.comparison
        self._progress.say(context.located("trying the workload once on every arm"))
        first = workload_runner.try_out()
        check_settings_in_sessions(comparison, first.settings, self._shared.resources.ask)
        have_jit = [snapshot.fingerprint.properties.has_jit for snapshot in snapshots]
        check_compared_settings_act(comparison.arms, first.settings, have_jit)
        check_budget(first.design, len(comparison.arms))
        fingerprints = [
            replace(snapshot.fingerprint, settings=settings)
            for snapshot, settings in zip(snapshots, first.settings, strict=True)
        ]
        builds = [self._builds[arm.server] for arm in comparison.arms]
        for arm, build, found in zip(comparison.arms, builds, fingerprints, strict=True):
            check_same_build(arm.label, build, found)
        user = self._directory.user
        libraries = [linked_libraries(one.bin_directory, user) if one else frozenset[str]() for one in builds]
        others = library_differences(libraries)
        unlike = differences(fingerprints, comparison.factors)
        if _may_have_other_rows(context):
            unlike += table_differences(fingerprints)
        return Preparation(
            design=first.design,
            arms=tuple(
                replace(self._facts(build, found, baseline=builds[BASELINE]), not_restored=snapshot.not_restored)
                for build, found, snapshot in zip(builds, fingerprints, snapshots, strict=True)
            ),
            differences=drop_requested_differences((*unlike, *others), builds),
            writes=first.writes,
            connect_allowance_s=first.connect_allowance_s,
            connect_s=first.connect_s,
            longest_transaction_s=first.longest_transaction_s,
            plans=first.plans,
            not_explained=first.not_explained,
            unchecked_settings=first.unchecked_settings,
        )

    def _facts(self, build: Build | None, fingerprint: Fingerprint, *, baseline: Build | None) -> ArmFacts:
        return ArmFacts(
            version=fingerprint.settings["server_version"].value,
            origin=build.origin if build else RUNNING_SERVER,
            compiler=fingerprint.compiler,
            flags=fingerprint.build_flags,
            sha256=build.sha256 if build else None,
            data=data_hash(fingerprint),
            compiled_in=compiled_in(fingerprint),
            built_from=built_from(build, baseline),
            sizes=fingerprint.sizes,
        )


def can_share_start(one: Context, other: Context, writing: Container[int]) -> bool:
    """Return whether both are loads that only read, with warm caches, on the same servers.

    writing: numbers of contexts whose load is known to write.
    """

    def leaves_no_trace(context: Context) -> bool:
        comparison = context.comparison
        writes = comparison.workload.runs_once or context.number in writing
        return not writes and comparison.cache is CacheState.WARM

    return _server_key(one) == _server_key(other) and leaves_no_trace(one) and leaves_no_trace(other)


def _server_key(context: Context) -> tuple[_ArmKey, ...]:
    """Return a key that is equal for contexts with the same servers."""
    arms = context.comparison.arms
    return tuple((arm.server, arm.dataset, arm.settings, arm.workload.runs_once) for arm in arms)


def _may_have_other_rows(context: Context) -> bool:
    """Return whether different rows are only a caveat: in an upgrade check of restored data.

    A version may reject an object of a dump, or compute a materialized view differently. That must not end the check of
    all other statements.
    """
    baseline = context.comparison.baseline
    return baseline.workload.is_of_application and baseline.dataset.restore is not None


def check_context(context: Context, *, is_joint: bool = False) -> None:
    """Raise StudyError or HostError if a context can be refused before anything is fetched or started for it.

    is_joint: whether several hosts send its load at once.
    """
    _check_external_servers(context)
    comparison = context.comparison
    if not comparison.workload.runs_once:
        split_processors(comparison.design.pin)
        is_cold, workload = comparison.cache is CacheState.COLD, comparison.workload
        check_windows(
            comparison.design, rate=workload.rate, clients=workload.clients, is_cold=is_cold, is_joint=is_joint
        )
        check_first_loads(comparison.design, len(comparison.arms), rate=workload.rate, clients=workload.clients)


def _check_external_servers(context: Context) -> None:
    """Raise StudyError for contexts that external servers cannot run, such as those that need a new database."""
    arms = [arm.label for arm in context.comparison.arms if isinstance(arm.server, RunningServer)]
    if arms and context.comparison.workload.runs_once:
        raise StudyError(
            "operations change data, and pgversus cannot restore the data of an external server",
            slug="study-operation-running-server",
            where=", ".join(arms),
            found=context.comparison.workload.name,
            expected="servers that pgversus starts itself, on a fresh copy for each repetition",
            to_do="specify a version or a bin directory",
        )
    if arms and context.comparison.dataset.restore is not None:
        raise StudyError(
            "a dump is restored only into servers that pgversus starts itself",
            slug="study-restore-running-server",
            where=", ".join(arms),
            found=context.comparison.dataset.restore.path,
            expected="servers with a new database",
            to_do="restore the dump yourself and omit --restore, or specify a version or a bin directory",
        )
    if arms and context.comparison.cache is CacheState.COLD:
        raise StudyError(
            "an external server cannot be measured with a cold cache",
            slug="study-cold-running-server",
            where=", ".join(arms),
            found='cache = "cold"',
            expected="servers that pgversus starts itself",
            to_do='specify a version or a bin directory, or set cache = "warm"',
        )
    if arms and context.comparison.dataset.full_statistics:
        raise StudyError(
            "pgversus does not change the statistics of an external server",
            slug="study-statistics-of-running-server",
            where=", ".join(arms),
            found="full statistics requested",
            expected="servers that pgversus starts itself, on copies of its own",
            to_do="omit --full-statistics (full_statistics in a study file), or raise default_statistics_target on "
            "every server and run ANALYZE",
        )
