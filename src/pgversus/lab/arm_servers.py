"""The servers of all arms of a context, started and stopped together.

Contexts whose arms have the same servers, settings and data share one set of servers and its starts.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgversus.errors import PgversusError, ServerError
from pgversus.host.facts import shared_memory_is_small
from pgversus.postgres import catalog
from pgversus.postgres.cluster import Cluster, copy_cluster, remove_directory
from pgversus.postgres.counters import CounterSession
from pgversus.postgres.server import Server
from pgversus.postgres.session import Connection, Target, as_application, connect, uri_target
from pgversus.study.comparison import Arm
from pgversus.study.needs import CHEAP_COPY_BYTES
from pgversus.study.study import Study

_USUAL_CONNECTIONS = 100
_SPARE_CONNECTIONS = 10
# For pgversus' own sessions and the reserved ones. Loads that leave fewer raise max_connections on every arm.


class ArmServer(ABC):
    """The server that an arm's load connects to."""

    arm: Arm
    target: Target
    """Connection parameters for sessions of pgversus."""
    can_restart: bool
    """Whether each block begins with a fresh start."""
    copy_bytes: int
    """Size of a fresh copy; 0 for an external server."""
    data_directory: Path | None
    """Data directory on this host; None for an external server."""
    log: Path | None
    """Log file of the running server; None for an external server."""

    @property
    def load_target(self) -> Target:
        """Connection parameters for sessions of the load. Statements of an application have no rights but on its data.

        They are executed on managed servers only.
        """
        return as_application(self.target) if self.arm.workload.is_of_application else self.target

    @property
    @abstractmethod
    def postmaster_pid(self) -> int | None:
        """Process id of the running postmaster; None if stopped or external."""

    @abstractmethod
    def make_copy(self) -> None:
        """Copy the snapshot to start on, unless a copy exists; the server must be stopped."""

    @abstractmethod
    def start(self) -> None:
        """Start a fresh server on the existing copy, or else on a new one. Raise ServerError on failure."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the server; do nothing if it is not running."""

    @abstractmethod
    def forget_copy(self) -> None:
        """Remove the copy, so that the next start has fresh data; the server must be stopped."""


class ManagedServer(ArmServer):
    """A managed server: the load runs on a copy of the snapshot, which stays untouched."""

    can_restart = True

    def __init__(
        self,
        arm: Arm,
        snapshot: Cluster,
        snapshot_bytes: int,
        *,
        copy: Path,
        sockets: Path,
        log: Path,
        settings: Mapping[str, str],
    ) -> None:
        cluster = Cluster(build=snapshot.build, data_directory=copy, user=snapshot.user)
        self._snapshot = snapshot
        self._server = Server(cluster, sockets, log, settings)
        self.arm = arm
        self.target = self._server.target
        self.copy_bytes = snapshot_bytes
        self.data_directory: Path = copy
        self.log = log

    @property
    def postmaster_pid(self) -> int | None:
        """Process id of the running postmaster; None if stopped."""
        return self._server.postmaster_pid

    def make_copy(self) -> None:
        """Copy the snapshot, unless a copy exists."""
        if not self.data_directory.exists():
            copy_cluster(self._snapshot, self.data_directory)

    def start(self) -> None:
        """Start on the existing copy, or on a new copy of the snapshot."""
        self.stop()
        self.make_copy()
        try:
            self._server.start()
        except ServerError as error:
            # Name only the user's own settings.
            error.where = ", ".join([self.arm.label, *map(str, self.arm.settings)])
            raise

    def stop(self) -> None:
        """Stop the server; do nothing if it is not running."""
        self._server.stop()

    def forget_copy(self) -> None:
        """Remove the copy."""
        remove_directory(self.data_directory)


class ExternalServer(ArmServer):
    """An external server: never restarted, and its data never restored. It may run on another host."""

    can_restart = False
    copy_bytes = 0
    data_directory: None = None
    postmaster_pid: None = None
    log: None = None

    def __init__(self, arm: Arm, uri: str) -> None:
        self.arm = arm
        self.target = uri_target(uri, arm.settings)

    def make_copy(self) -> None:
        """Do nothing: the data stay in place."""

    def start(self) -> None:
        """Do nothing: the server is already running."""

    def stop(self) -> None:
        """Do nothing: pgversus does not stop external servers."""

    def forget_copy(self) -> None:
        """Do nothing: an external server has no copy."""


def common_settings(study: Study) -> dict[str, str]:
    """Return the settings that every server of a study needs, besides its arm's own, to run its loads on this host."""
    common = {}
    clients = max(arm.workload.clients for context in study.contexts for arm in context.comparison.arms)
    if clients + _SPARE_CONNECTIONS > _USUAL_CONNECTIONS:
        common["max_connections"] = str(clients + _SPARE_CONNECTIONS)
    if shared_memory_is_small():
        common["dynamic_shared_memory_type"] = "mmap"
    arms = (arm for context in study.contexts for arm in context.comparison.arms)
    if any(
        (one.name.lower(), one.value.strip().lower()) == ("wal_level", "minimal")
        for arm in arms
        for one in arm.settings
    ):
        # With this level, servers do not start with the default. All arms have the same.
        common["max_wal_senders"] = "0"
    return common


def server_settings(arm: Arm, common: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of an arm's server: the common ones, then the arm's own."""
    # Autovacuum would clean up after an operation's preparation at an arbitrary moment.
    quiet = {"autovacuum": "off"} if arm.workload.runs_once else {}
    return {**common, **quiet, **{setting.name: setting.value for setting in arm.settings}}


class ServerSet:
    """The servers of all arms, and whether each block starts with fresh data."""

    def __init__(self, servers: Sequence[ArmServer], *, prewarms: bool = False) -> None:
        """prewarms: whether every arm can prewarm its data; comparing a warm arm with a cold one would be unfair."""
        self.servers = tuple(servers)
        self.prewarms = prewarms
        self._copies_are_cheap = all(one.can_restart and one.copy_bytes <= CHEAP_COPY_BYTES for one in servers)
        all_bytes = sum(server.copy_bytes for server in servers)
        self.cheap_copies_bytes = all_bytes if self._copies_are_cheap else 0
        """Total size of the copies if each can be replaced in little time."""
        self._tables_fit: dict[int, bool] = {}
        """Whether shared buffers can hold the tables of each arm; complete after the first start of all."""
        self._in_memory: dict[int, bool] = {}
        self._written_before: dict[int, int] = {}
        self._counters: dict[int, CounterSession] = {}
        self._own_growth: dict[int, dict[str, float]] = {}
        self._all_started = False

    def start_all(self, *, reads_in: bool) -> None:
        """Start every server, unless all are running after an earlier call; raise ServerError if one does not come up.

        reads_in: whether to prepare each server for a load with warm caches.
        """
        if self._all_started and all(map(answers, self.servers)):
            return
        self.stop_started()
        for arm in range(len(self.servers)):
            self.start(arm)
            if reads_in:
                self.read_in(arm)
        self._all_started = True

    def start(self, arm: int) -> None:
        """Start one server; raise ServerError if it does not come up."""
        self._in_memory[arm] = False
        self.servers[arm].start()

    def read_in(self, arm: int) -> None:
        """Prepare a started server for a load: prewarm its data if possible, and write out all dirty pages.

        Stores the number of rows written so far, so that writes are noticed at the end. Raises ServerError on failure.
        """
        server = self.servers[arm]
        with connect(server.target) as connection:
            if self.prewarms:
                self.prewarm(arm, connection)
            if server.can_restart:
                catalog.checkpoint(connection)
            self._written_before[arm] = catalog.rows_written(connection)

    def prewarm(self, arm: int, connection: Connection) -> None:
        """Prewarm the data of a started server: in shared buffers only if those of every arm can hold its data."""
        are_known = len(self._tables_fit) == len(self.servers)
        found = catalog.prewarm(connection, into_buffers=are_known and all(self._tables_fit.values()))
        self._tables_fit[arm], self._in_memory[arm] = found.tables_fit, found.database_fits

    def pause_like_others(self, arm: int) -> None:
        """Wait after a window as long as after those of arms that report their statistics late: disks recover then."""
        late = {number for number, session in self._counters.items() if session.reports_late}
        if late and arm not in late:
            time.sleep(catalog.LATE_REPORT_S)

    def count_writes(self, arm: int) -> None:
        """Store the number of rows written so far on a started server, so that writes are noticed at the end."""
        with connect(self.servers[arm].target) as connection:
            self._written_before[arm] = catalog.rows_written(connection)

    def counters(self, arm: int) -> CounterSession:
        """Return the session that reads an arm's counters, open as long as its server runs."""
        if arm not in self._counters:
            session = self._counters[arm] = CounterSession(self.servers[arm].target)
            if arm not in self._own_growth:
                # A property of the version and its catalog, so one measurement is enough.
                self._own_growth[arm] = session.own_growth()
        return self._counters[arm]

    def own_growth(self, arm: int) -> Mapping[str, float]:
        """Return the growth of an arm's counters caused by reading them; empty before the first reading."""
        return self._own_growth.get(arm, {})

    def stop(self, arm: int) -> None:
        """Stop one server, between its windows."""
        self._close_counters(arm)
        self.servers[arm].stop()

    def stop_all(self, *, writes: bool) -> None:
        """Stop every managed server. Remove copies that the load has changed or that are cheap to replace."""
        for arm in tuple(self._counters):
            # Otherwise counting the writes would wait for an open session.
            self._close_counters(arm)
        forgets = writes or self._needs_fresh_copies
        self._all_started = False
        try:
            # The load seemed read-only; the trials show which of the contexts that share these servers wrote.
            forgets = forgets or any(map(self._wrote_on, self._written_before))
        finally:
            self._written_before.clear()
            self._in_memory.clear()
            for arm, server in enumerate(self.servers):
                self.stop(arm)
                if forgets:
                    server.forget_copy()

    def stop_started(self) -> None:
        """Stop the servers that `start_all` has started, if they are still running."""
        if self._all_started:
            self.stop_all(writes=False)

    @property
    def _needs_fresh_copies(self) -> bool:
        """Whether each block needs a fresh copy: copies are cheap, and data are read from disk or the page cache.

        Data in shared buffers get a new layout with each start anyway.
        """
        return self._copies_are_cheap and not all(self._in_memory.values())

    def forget_copies(self, *, only_cheap: bool = False) -> None:
        """Remove the remaining copies; the servers must be stopped."""
        if self._copies_are_cheap or not only_cheap:
            for server in self.servers:
                server.forget_copy()

    def _close_counters(self, arm: int) -> None:
        session = self._counters.pop(arm, None)
        if session is not None:
            session.close()

    def _wrote_on(self, arm: int) -> bool:
        try:
            return wrote_since(self.servers[arm], self._written_before[arm])
        except PgversusError:
            # The server died in this block, as its failed trial reports. Recovery changes its copy: it empties unlogged
            # tables.
            return True


def answers(server: ArmServer) -> bool:
    """Return whether a server accepts sessions."""
    try:
        with connect(server.target):
            return True
    except ServerError:
        return False


def wrote_since(server: ArmServer, before: int) -> bool:
    """Return whether rows have changed since the count was `before`, or a crash has reset the count.

    Waits until ended sessions have reported their statistics.
    """
    with connect(server.target) as connection:
        catalog.wait_for_reports(connection)
        return catalog.rows_written(connection) != before
