"""Builds, data and servers of a study and of the studies that follow from it, on the host that measures them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pgversus.data.snapshots import Snapshots
from pgversus.engine.hosts import Hosts, ThisHost
from pgversus.engine.progress import Progress
from pgversus.errors import ServerError
from pgversus.host.counters import OtherLoad
from pgversus.host.directories import open_cache
from pgversus.host.facts import host_facts
from pgversus.host.identity import ServerUser
from pgversus.lab.chosen_values import with_chosen_values
from pgversus.lab.load_hosts import LoadHosts
from pgversus.lab.load_runner import ExplainArms
from pgversus.lab.plan_capture import Explainer, capture_or_reason, explained_counterfactual
from pgversus.lab.resources import RunResources, StudyResources, open_resources
from pgversus.lab.results_writer import keep_server_logs
from pgversus.lab.resume_checks import (
    build_facts,
    changes_of_host,
    check_same_client,
    check_same_host,
    check_same_load_hosts,
    client_facts,
)
from pgversus.lab.testbed import PostgresTestbed
from pgversus.postgres.client import Client, check_encryption, check_login
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import Target, connect, uri_target
from pgversus.records.plans import CapturedStatement
from pgversus.records.trials import Block
from pgversus.store.leases import Lease, Outcome
from pgversus.study.servers import OLDEST_MAJOR, RunningServer, ServerName
from pgversus.study.study import Study, StudyKind
from pgversus.text.units import percent

_BUSY = 0.25
_VERSIONS_OF_MAJOR = 10_000
"""Factor between a major version and server_version_num."""
# Share of CPU time used by other programs above which a host is reported as busy.


class Capture(StrEnum):
    """How the plans of a study are captured before its first block."""

    NONE = "none"
    PLANS = "plans"
    """Plans, with the settings that restore the old ones."""
    COUNTERFACTUAL = "counterfactual"
    """Plans of an attribution, which must be the old ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """A study to be measured: the one of the run, or one that follows from its results."""

    study: Study
    capture: Capture = Capture.NONE
    others: Callable[[int], Sequence[CapturedStatement]] | None = None
    """Returns the other statements of an application on the arm with an index."""
    log_prefix: str = ""
    """Prefix of its servers' logs: arms of another study have different servers."""
    kept_logs: Path | None = None
    """Directory for transaction logs; None to discard them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalData:
    """The external servers of a study whose data earlier runs have loaded."""

    loaded: frozenset[ServerName] = frozenset()
    changed: frozenset[ServerName] = frozenset()
    """Servers whose data the loads of the study have changed since then, or may have changed."""
    note_loaded: Callable[[RunningServer], None] = lambda _: None
    """Called with each external server as soon as it holds the study's data."""


class Ledger(Protocol):
    """The authoritative record of the blocks that the hosts of a fleet may measure."""

    def grant_lease(self, context: int, block: int, host: str) -> Lease:
        """Record that a host may measure a block, before its task is sent; earlier leases of the block have ended."""

    def end_lease(self, lease: Lease, outcome: Outcome) -> None:
        """Record how a lease ended."""

    def keep_unused(self, lease: Lease, block: Block) -> None:
        """Store a measured block that does not count."""


class MeasurableStudy(Protocol):
    """A study that is ready to be measured on one host or on many."""

    study: Study
    """With the values and settings that its servers and data allow."""
    facts: Mapping[str, Any]
    """Facts about the host, its pgbench and its builds, as they are stored."""

    def hosts(self, measuring: Measuring, external: ExternalData, ledger: Ledger, stack: ExitStack) -> Hosts:
        """Return the hosts that measure a study. stack: stops everything that is running at its end."""

    def keep_server_logs(self, results: Path) -> None:
        """Append the logs of all servers to the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """The user's options for the host that measures."""

    user: ServerUser
    client: Client
    sample_plans: bool = False
    """Whether to run the load again with auto_explain, to check that its plans are the captured ones."""
    check_rows: bool = False
    """Whether to compare the rows that statements return on each arm before measuring."""
    load_hosts: LoadHosts | None = None
    """Hosts that send the load to external servers; None if this host sends it."""


class StudyHost:
    """A MeasurableStudy that this host alone measures."""

    def __init__(
        self,
        study: Study,
        resources: RunResources,
        snapshots: Snapshots | None,
        facts: Mapping[str, Any],
        options: HostOptions,
        progress: Progress,
    ) -> None:
        """snapshots: already loaded; None if they are to be loaded."""
        self.study = study
        self.facts = facts
        self._resources = resources
        self._snapshots = snapshots
        self._options = options
        self._progress = progress

    def testbed(self, measuring: Measuring, external: ExternalData, stack: ExitStack) -> PostgresTestbed:
        """Return the testbed of a study. stack: stops its servers and removes their data at its end."""
        if self._snapshots is None:
            self._snapshots = self._resources.snapshots(
                self._options.client, self._progress, loaded_before=external.loaded, note_loaded=external.note_loaded
            )
        directory = replace(self._resources.directory, log_prefix=measuring.log_prefix)
        shared = StudyResources(
            resources=replace(self._resources, directory=directory),
            client=self._options.client,
            snapshots=self._snapshots,
            changed_servers=external.changed,
            kept_logs=measuring.kept_logs,
            load_hosts=self._options.load_hosts,
            progress=self._progress,
        )
        return PostgresTestbed(measuring.study, shared, stack, self._explain(measuring))

    def hosts(self, measuring: Measuring, external: ExternalData, ledger: Ledger, stack: ExitStack) -> Hosts:
        """Return this host; it needs no leases."""
        del ledger
        return ThisHost(self.testbed(measuring, external, stack), time.monotonic, self._progress)

    def keep_server_logs(self, results: Path) -> None:
        """Append the logs of all servers to the results."""
        keep_server_logs(self._resources.directory, results)

    def _explain(self, measuring: Measuring) -> ExplainArms | None:
        if measuring.capture is Capture.NONE:
            return None
        explainer = Explainer(
            client=self._options.client,
            scratch=self._resources.directory.root / "statements",
            with_rows=self._options.check_rows or self.study.kind is StudyKind.UPGRADE_CHECK,
            samples=self._options.sample_plans,
            others=measuring.others,
            progress=self._progress,
        )
        how = capture_or_reason if measuring.capture is Capture.PLANS else explained_counterfactual
        return partial(how, explainer)


@contextmanager
def open_study_host(
    study: Study, progress: Progress, before: Mapping[str, Any] | None, results: Path, *, options: HostOptions
) -> Iterator[StudyHost]:
    """Fetch or build the servers of a study; everything started is stopped and removed on exit.

    before: facts of the results in the folder `results`, measured on the same host with the same pgbench; None for a
    new study.
    PgversusError of any kind if the study cannot be measured here.
    """
    other_load = OtherLoad.now()
    host, client = host_facts(open_cache().runs), client_facts(options.client)
    if before is not None:
        # Before anything is fetched.
        check_same_client(before, client, results)
        check_same_host(before, host, results)
        check_same_load_hosts(before, None if options.load_hosts is None else options.load_hosts.names, results)
        for line in changes_of_host(before, host):
            progress.say(line)
    check_external_servers(study, options.client)
    is_busy = _say_if_busy(other_load.share_since(), progress)
    other_load = OtherLoad.now()
    with open_resources(study, options.user, progress, before) as resources:
        study, snapshots = with_chosen_values(resources, options.client, progress, is_new=before is None)
        if other_load.is_long_ago and not is_busy:
            # Another program may have begun to work while servers were downloaded or built.
            _say_if_busy(other_load.share_since(), progress)
        facts: dict[str, Any] = {"host": host, "client": client, "builds": build_facts(resources.builds)}
        if options.load_hosts is not None:
            facts["load_hosts"] = list(options.load_hosts.names)
        yield StudyHost(study, resources, snapshots, facts, options, progress)


def _say_if_busy(others_share: float, progress: Progress) -> bool:
    """Warn before anything is measured if other programs keep the host busy; the user decides whether to continue.

    Returns whether they do.
    """
    is_busy = others_share > _BUSY
    if is_busy:
        progress.say(
            f"warning: this host is busy: other programs or guests use {percent(others_share)} of its CPU time. "
            "Verdicts may take much longer or remain undecided. Press Ctrl-C to end the run"
        )
    return is_busy


def _check_version(target: Target, label: str) -> None:
    with connect(target) as connection:
        found = connection.info.server_version
    if found < OLDEST_MAJOR * _VERSIONS_OF_MAJOR:
        raise ServerError(
            "the external server is too old",
            slug="server-too-old",
            where=label,
            found=f"server_version_num {found}",
            expected=f"PostgreSQL {OLDEST_MAJOR} or newer",
            to_do="compare newer versions",
        )


def check_external_servers(study: Study, client: Client) -> None:
    """Check that the client supports the encryption that external servers require, and that they accept its user."""
    arms = [arm for context in study.contexts for arm in context.comparison.arms]
    with_files = {arm.server for arm in arms if arm.dataset.setup_files}
    for server in study.servers:
        if isinstance(server, RunningServer):
            target, label = uri_target(server.uri, ()), label_of_running(server)
            check_encryption(client, target, label, runs_psql=server in with_files)
            check_login(client, target, label)
            _check_version(target, label)
