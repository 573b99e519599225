"""An arm's server: made and loaded once, then started afresh for each block."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from pgversus.errors import ServerError
from pgversus.lab.run_directory import RunDirectory
from pgversus.postgres.builds.model import Build
from pgversus.postgres.cluster import Cluster, copy_cluster, data_bytes, make_cluster, remove_directory
from pgversus.postgres.dataset import LOADING_SETTINGS
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, uri_target
from pgversus.study.comparison import Arm

_CHEAP_BYTES = 1024**3


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

    @abstractmethod
    def start(self, *, fresh_data: bool) -> None:
        """Start afresh; fresh_data begins from the data as they were loaded. ServerError when it fails."""

    @abstractmethod
    def stop(self) -> None:
        """Stop; one that is not started is no error."""

    @abstractmethod
    def loading(self) -> AbstractContextManager[None]:
        """The server as it is while data are loaded."""


class OwnServer(ArmServer):
    """A server of ours: the loaded cluster stays untouched, the load runs on a copy of it."""

    def __init__(self, arm: Arm, build: Build, directory: RunDirectory, settings: Mapping[str, str]) -> None:
        super().__init__(arm)
        self.build = build
        self._settings = settings
        self._root = directory.arm_directory(arm.index)
        self._snapshot: Cluster = make_cluster(build, self._root, directory.user)
        self._copy = self._root / "copy"
        self._sockets = directory.socket_directory(arm.index)
        self._log = directory.server_log(arm.index)
        self._server: Server | None = None
        self._target = Server(self._snapshot, self._sockets, self._log, {}).target

    @property
    def target(self) -> Target:
        """Its socket."""
        return self._target

    @property
    def can_restart(self) -> bool:
        """Always."""
        return True

    @property
    def copy_is_cheap(self) -> bool:
        """Up to 1 GiB a copy takes about a second."""
        return data_bytes(self._snapshot) <= _CHEAP_BYTES

    @contextmanager
    def loading(self) -> Iterator[None]:
        """On the snapshot itself, with quick settings; stopped cleanly at the end."""
        self._server = Server(self._snapshot, self._sockets, self._log, {**self._settings, **LOADING_SETTINGS})
        self._start()
        try:
            yield
        finally:
            self.stop()

    def start(self, *, fresh_data: bool) -> None:
        """Start on a copy of the loaded cluster: a new one for fresh data, else the one of the last block."""
        self.stop()
        if fresh_data or not self._copy.exists():
            remove_directory(self._copy)
            copy_cluster(self._snapshot, self._copy)
        cluster = Cluster(build=self.build, data_directory=self._copy, user=self._snapshot.user)
        self._server = Server(cluster, self._sockets, self._log, self._settings)
        self._start()

    def _start(self) -> None:
        assert self._server is not None  # noqa: S101 - made by the caller
        try:
            self._server.start()
        except ServerError as error:
            # Of all its settings the user knows his own.
            error.where = ", ".join([self.arm.label, *map(str, self.arm.settings)])
            raise

    def stop(self) -> None:
        """Stop; one that is not started is no error."""
        if self._server is not None:
            self._server.stop()
            self._server = None


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

    @contextmanager
    def loading(self) -> Iterator[None]:
        """As it is."""
        yield

    def start(self, *, fresh_data: bool) -> None:
        """Nothing: it runs already."""

    def stop(self) -> None:
        """Nothing: it is not ours to stop."""


def server_settings(arm: Arm, common: Mapping[str, str]) -> dict[str, str]:
    """The settings of an arm's server: what every server of the comparison gets, then the arm's own."""
    return {**common, **{setting.name: setting.value for setting in arm.settings}}
