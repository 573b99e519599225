"""The servers of all arms of a context, as they are started and stopped together.

Contexts whose arms are the same servers with the same settings and data share one set, and then its starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgversus.errors import PgversusError, ServerError
from pgversus.host.facts import shared_memory_is_small
from pgversus.postgres import catalog
from pgversus.postgres.cluster import Cluster, copy_cluster, remove_directory
from pgversus.postgres.counters import CounterSession
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, connect, uri_target
from pgversus.study.comparison import Arm
from pgversus.study.needs import CHEAP_COPY_BYTES
from pgversus.study.study import Study
from pgversus.study.workload import Operation

_USUAL_CONNECTIONS = 100
_SPARE_CONNECTIONS = 10
# For pgversus' own sessions and the reserved ones; more clients than fit raise max_connections on every arm.


class ArmServer(ABC):
    """What an arm's load connects to."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm

    @property
    @abstractmethod
    def target(self) -> Target:
        """Where sessions connect to."""

    @property
    @abstractmethod
    def can_restart(self) -> bool:
        """Whether blocks begin with a fresh start."""

    @property
    @abstractmethod
    def copy_is_cheap(self) -> bool:
        """Whether fresh data cost so little that every block may have them, even for a load that reads only."""

    @property
    @abstractmethod
    def data_directory(self) -> Path | None:
        """Where its data lie on this host; None for a server that somebody else runs."""

    @property
    @abstractmethod
    def postmaster_pid(self) -> int | None:
        """Its postmaster's process id while it runs; None for a server that somebody else runs."""

    @property
    @abstractmethod
    def log(self) -> Path | None:
        """What the server says, while it runs; None for a server that somebody else runs."""

    @abstractmethod
    def make_copy(self) -> None:
        """A copy of the snapshot to start on, where there is none yet; the server is stopped."""

    @abstractmethod
    def start(self) -> None:
        """Start afresh, on the copy that is there, else on a new one. ServerError when it fails."""

    @abstractmethod
    def stop(self) -> None:
        """Stop; one that is not started is no error."""

    @abstractmethod
    def forget_copy(self) -> None:
        """Remove the copy, so that the next start has fresh data; the server is stopped."""


class ManagedServer(ArmServer):
    """A server of ours: the snapshot stays untouched, the load runs on a copy of it."""

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
        super().__init__(arm)
        self._snapshot = snapshot
        self._is_cheap = snapshot_bytes <= CHEAP_COPY_BYTES
        cluster = Cluster(build=snapshot.build, data_directory=copy, user=snapshot.user)
        self._server = Server(cluster, sockets, log, settings)
        self._log = log

    @property
    def target(self) -> Target:
        """Its socket."""
        return self._server.target

    @property
    def can_restart(self) -> bool:
        """Always."""
        return True

    @property
    def copy_is_cheap(self) -> bool:
        """Up to 1 GiB a copy takes about a second."""
        return self._is_cheap

    @property
    def data_directory(self) -> Path:
        """The copy."""
        return self._server.cluster.data_directory

    @property
    def postmaster_pid(self) -> int | None:
        """While it runs."""
        return self._server.postmaster_pid

    @property
    def log(self) -> Path:
        """In the run's directory."""
        return self._log

    def make_copy(self) -> None:
        """A copy of the snapshot, unless it is there."""
        if not self.data_directory.exists():
            copy_cluster(self._snapshot, self.data_directory)

    def start(self) -> None:
        """Start on the copy; a new one of the snapshot when there is none."""
        self.stop()
        self.make_copy()
        try:
            self._server.start()
        except ServerError as error:
            # Of all its settings the user knows his own.
            error.where = ", ".join([self.arm.label, *map(str, self.arm.settings)])
            raise

    def stop(self) -> None:
        """Stop; one that is not started is no error."""
        self._server.stop()

    def forget_copy(self) -> None:
        """Remove it."""
        remove_directory(self.data_directory)


class ExternalServer(ArmServer):
    """A server that somebody else runs: connected to, never restarted, its data never put back."""

    def __init__(self, arm: Arm, uri: str) -> None:
        super().__init__(arm)
        self._target = uri_target(uri, arm.settings)

    @property
    def target(self) -> Target:
        """Its URI, with the arm's settings in the connection."""
        return self._target

    @property
    def can_restart(self) -> bool:
        """Never."""
        return False

    @property
    def copy_is_cheap(self) -> bool:
        """There is none to be had."""
        return False

    @property
    def data_directory(self) -> None:
        """Nothing that we know of."""

    @property
    def postmaster_pid(self) -> None:
        """Not ours to know: it may run on another host."""

    @property
    def log(self) -> None:
        """Wherever it may be."""

    def make_copy(self) -> None:
        """Nothing: its data are where they are."""

    def start(self) -> None:
        """Nothing: it runs already."""

    def stop(self) -> None:
        """Nothing: it is not ours to stop."""

    def forget_copy(self) -> None:
        """Nothing: there is none."""


def common_settings(study: Study) -> dict[str, str]:
    """What every server of a study gets besides its arm's own settings, so that it can run its loads on this host."""
    common = {}
    clients = max(arm.workload.clients for context in study.contexts for arm in context.comparison.arms)
    if clients + _SPARE_CONNECTIONS > _USUAL_CONNECTIONS:
        common["max_connections"] = str(clients + _SPARE_CONNECTIONS)
    if shared_memory_is_small():
        common["dynamic_shared_memory_type"] = "mmap"
    return common


def server_settings(arm: Arm, common: Mapping[str, str]) -> dict[str, str]:
    """The settings of an arm's server: what every server of the study gets, then the arm's own."""
    # It would clean up behind an operation's preparation, at a moment of its own.
    quiet = {"autovacuum": "off"} if isinstance(arm.workload, Operation) else {}
    return {**common, **quiet, **{setting.name: setting.value for setting in arm.settings}}


class ServerSet:
    """Servers by arm, and whether their data are fresh in each block."""

    def __init__(self, servers: Sequence[ArmServer]) -> None:
        self.servers = tuple(servers)
        self._copies_are_cheap = all(server.copy_is_cheap for server in servers)
        self._in_memory: dict[int, bool] = {}
        self._written_before: dict[int, int] = {}
        self._counters: dict[int, CounterSession] = {}
        self._own_growth: dict[int, dict[str, float]] = {}

    def start(self, arm: int) -> None:
        """Start one server; ServerError when it does not come up."""
        self._in_memory[arm] = False
        self.servers[arm].start()

    def read_in(self, arm: int, *, prewarms: bool) -> None:
        """Make a server that has started ready for a load: its data read in where that can be done, nothing dirty.

        What was written until now is remembered, so that writing is noticed at the end. ServerError when it fails.
        """
        server = self.servers[arm]
        with connect(server.target) as connection:
            if prewarms:
                self._in_memory[arm] = catalog.prewarm(connection)
            if server.can_restart:
                catalog.checkpoint(connection)
            self._written_before[arm] = catalog.rows_written(connection)

    def counters(self, arm: int) -> CounterSession:
        """The session in which an arm's counters are read, open as long as its server runs."""
        if arm not in self._counters:
            session = self._counters[arm] = CounterSession(self.servers[arm].target)
            if arm not in self._own_growth:
                # A property of the version and its catalog, so that once is enough.
                self._own_growth[arm] = session.own_growth()
        return self._counters[arm]

    def own_growth(self, arm: int) -> Mapping[str, float]:
        """What reading an arm's counters adds to them, once they have been read."""
        return self._own_growth.get(arm, {})

    def stop(self, arm: int) -> None:
        """Stop one server, between its windows."""
        self._close_counters(arm)
        self.servers[arm].stop()

    def stop_all(self, *, writes: bool) -> None:
        """Stop every server of ours. Copies are removed where they are worn, or cheap to make anew."""
        for arm in tuple(self._counters):
            # An open session would be waited for when the writes are counted.
            self._close_counters(arm)
        forgets = writes or self._needs_fresh_copies
        try:
            # A load that seemed to read only; its trials tell which one of those that share the servers it was.
            forgets = forgets or self._wrote()
        finally:
            self._written_before.clear()
            self._in_memory.clear()
            for arm, server in enumerate(self.servers):
                self.stop(arm)
                if forgets:
                    server.forget_copy()

    @property
    def _needs_fresh_copies(self) -> bool:
        """Whether each block needs a fresh copy: copies are cheap, and data are read from disk or the page cache.

        Data that shared buffers hold are laid out again by each start.
        """
        return self._copies_are_cheap and not all(self._in_memory.values())

    def forget_copies(self, *, only_cheap: bool = False) -> None:
        """Remove the copies that were kept; the servers are stopped."""
        if self._copies_are_cheap or not only_cheap:
            for server in self.servers:
                server.forget_copy()

    def _close_counters(self, arm: int) -> None:
        session = self._counters.pop(arm, None)
        if session is not None:
            session.close()

    def _wrote(self) -> bool:
        return any(self._wrote_on(arm) for arm in self._written_before)

    def _wrote_on(self, arm: int) -> bool:
        try:
            return wrote_since(self.servers[arm], self._written_before[arm])
        except PgversusError:
            # A server that died in this block. Its failed trial says so; recovery changes its copy: unlogged tables are
            # empty afterwards.
            return True


def wrote_since(server: ArmServer, before: int) -> bool:
    """Whether rows were changed since the count was `before`, or a crash has reset it.

    Waits until ended sessions have reported.
    """
    with connect(server.target) as connection:
        catalog.wait_for_reports(connection)
        return catalog.rows_written(connection) != before
