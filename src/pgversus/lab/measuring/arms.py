"""An arm's server: started afresh for each block on a copy of its snapshot."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from pgversus.errors import ServerError
from pgversus.host.facts import shared_memory_is_small
from pgversus.postgres.cluster import Cluster, copy_cluster, remove_directory
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, uri_target
from pgversus.study.comparison import Arm
from pgversus.study.disk import CHEAP_COPY_BYTES
from pgversus.study.operation import Operation
from pgversus.study.study import Study

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


class OwnServer(ArmServer):
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


class SomebodysServer(ArmServer):
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
