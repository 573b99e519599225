"""Run the command line against real servers, and check that nothing is left over.

Builds come from the user's own cache, fetched once. Loaded data are shared by all tests, except those that are about
loading (`own_snapshots`). Each test has its own directory for runs.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import psutil
import psycopg
import pytest

from pgversus.builds.model import Build
from pgversus.builds.provide import provide
from pgversus.engine.progress import Progress
from pgversus.host.directories import open_cache
from pgversus.host.guard import processes_in
from pgversus.host.identity import server_user
from pgversus.postgres.cluster import make_cluster
from pgversus.postgres.server import Server
from pgversus.study.build_options import USUAL_MANNER
from pgversus.study.servers import parse_server
from tests.live.preloaded import run_preloaded

_ENOUGH_BYTES = 6 << 30
_SNAPSHOTS = "PGVERSUS_TESTS_SNAPSHOTS"


def scratch() -> Path:
    """Return a directory for servers: in memory if there is room, because copying files on a disk takes long."""
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free > _ENOUGH_BYTES
    return memory if has_room else Path("/tmp")


PROGRAM = Path(sys.executable).with_name("pgversus")
INSTALLED = (str(PROGRAM),)
_TIMEOUT_S = 500
EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = ("--blocks", "2", "--window", "50ms", "--windows", "4")
"""The shortest comparison that still runs all of its parts."""
UNOPTIMIZED = "+cflags=-O0"
"""Build option of servers that tests build from source, because compilation then takes half as long."""
WHOLE_SECONDS = ("--blocks", "2", "--window", "1", "--windows", "2", "--warmup", "1")
"""The same with one run of pgbench per window."""


def with_fewer_rows(setup: Path) -> str:
    """Return a bundled setup file with 2,000 rows instead of 10,000, for queries over their square."""
    text = setup.read_text()
    assert "10000" in text
    return text.replace("10000", "2000")


WEATHER = frozenset(
    {
        "autovacuum-on-one-side",
        "checkpoint-on-one-side",
        "client-bound",
        "disk-disturbed",
        "disturbed-windows",
        "drift",
        "few-for-percentile",
        "few-transactions",
        "host-disturbed",
        "host-stolen",
        "memory-pressure",
        "not-steady",
        "rate-not-reached",
        "throttled",
    }
)
"""Caveats that depend on the host and the moment: parallel tests disturb one another."""


@dataclass
class Ended:
    """A finished command line."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.stdout)
        return document

    @property
    def comparison(self) -> dict[str, Any]:
        """The only context of the document."""
        (context,) = self.document["contexts"]
        return dict(context)

    @property
    def caveats(self) -> list[str]:
        """Slugs of all caveats except those in WEATHER."""
        return [caveat["slug"] for caveat in self.comparison["caveats"] if caveat["slug"] not in WEATHER]


def results_database(folder: Path) -> sqlite3.Connection:
    """Open the database of a results folder."""
    return sqlite3.connect(folder / "results.sqlite")


@dataclass
class CommandLine:
    """pgversus as started by a user, with its own cache for runs."""

    cache: Path
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)
    umask: int = -1
    """umask of started programs; that of the tests if negative."""
    program: tuple[str, ...] = INSTALLED

    @property
    def runs(self) -> Path:
        return self.cache / "runs"

    def start(
        self,
        *arguments: str,
        stdout: int | IO[str] = subprocess.PIPE,
        stderr: int | IO[str] = subprocess.PIPE,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # Jobs in the background of a script ignore Ctrl-C, and so would their children.
            ["env", "--default-signal=INT,HUP", *self.program, *arguments],
            cwd=self.directory,
            umask=self.umask,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> Ended:
        if self.program == INSTALLED:
            return self._run_preloaded(arguments, variables)
        process = self.start(*arguments, environment=variables)
        stdout, stderr = process.communicate(timeout=_TIMEOUT_S)
        return Ended(process.returncode, stdout, stderr)

    def _run_preloaded(self, arguments: Sequence[str], variables: Mapping[str, str]) -> Ended:
        with tempfile.TemporaryDirectory(prefix="pgversus-output-") as name:
            outputs = Path(name, "stdout"), Path(name, "stderr")
            code = run_preloaded(
                arguments,
                directory=self.directory,
                environment={**self.environment, **variables},
                umask=self.umask,
                outputs=outputs,
                timeout_s=_TIMEOUT_S,
            )
            stdout, stderr = (path.read_text() for path in outputs)
        return Ended(code, stdout, stderr)

    def compare(self, *arguments: str) -> Ended:
        return self.run("compare", *arguments, "--json", "--results", str(self.directory / "results"))

    def write(self, name: str, text: str) -> str:
        (self.directory / name).write_text(text)
        return name

    def leftovers(self) -> list[str]:
        """Files, directories and processes that a run should have removed."""
        files = [str(path) for path in self.runs.iterdir()]
        return files + [str(process) for process in processes_in(self.cache)]

    def wait_for(self, what: Callable[[], Any], seconds: float = 60) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := what():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not seen within {seconds} s")

    def postmaster(self, arm: int) -> int | None:
        """Process id of an arm's server once it accepts connections."""
        for file in self.runs.glob(f"*/copies-*/arm-{arm}/postmaster.pid"):
            with suppress(OSError):
                lines = file.read_text().splitlines()
                if len(lines) > 7 and lines[7].strip() == "ready":
                    return int(lines[0])
        return None

    def socket_directories(self) -> list[Path]:
        """Socket directories of the runs in progress."""
        found = []
        for file in self.runs.glob("*/sockets"):
            # A run that ends meanwhile removes it.
            with suppress(OSError):
                found.append(Path(file.read_text().strip()))
        return found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A long test that starts last would leave the other workers idle.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def users_cache() -> Path:
    """Return the user's cache, whose builds all tests share."""
    root = open_cache().root
    for name in ("ccache", "client"):
        (root / name).mkdir(exist_ok=True)
    return root


@contextmanager
def own_command_line(shared_cache: Path, directory: Path, snapshots: Path | None = None) -> Iterator[CommandLine]:
    """pgversus in this directory, with its own cache except for builds; none of its processes outlives the test.

    snapshots: a directory of loaded data to share as well.
    """
    # Not the directory itself: under root, servers of another user must be able to enter it.
    cache = Path(tempfile.mkdtemp(prefix="pgversus-test-", dir=scratch()))
    cache.chmod(0o755)
    for name in ("builds", "ccache", "client", "index", "sources", "staging"):
        (cache / name).symlink_to(shared_cache / name)
    if snapshots is not None:
        (cache / "snapshots").symlink_to(snapshots)
    (cache / "runs").mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "PATH", "SSL_CERT_FILE", "TMPDIR")}
    try:
        yield CommandLine(cache, directory, {**kept, "PGVERSUS_CACHE": str(cache)})
    finally:
        for process in processes_in(cache):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        shutil.rmtree(cache, ignore_errors=True)


def provided(server: str) -> Build:
    """Return a build of this server from the user's cache, fetching it if needed."""
    (build,) = provide([parse_server(server)], USUAL_MANNER, open_cache(), server_user(), Progress())
    assert build is not None
    return build


@contextmanager
def own_server(
    name: str, settings: Mapping[str, str] = MappingProxyType({}), place: Path | None = None
) -> Iterator[Server]:
    """A server that is not running yet, unknown to pgversus; it is stopped at the end."""
    user = server_user()
    with tempfile.TemporaryDirectory(prefix="pgversus-server-", dir=place or scratch()) as folder:
        directory = Path(folder)
        user.change_owner(directory)
        cluster = make_cluster(provided(name), directory / "cluster", user)
        server = Server(cluster, directory, directory / "log", settings)
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def started_server(name: str) -> Iterator[tuple[Server, str]]:
    """A running server that is unknown to pgversus, and its URI."""
    with own_server(name) as server:
        server.start()
        # Its sockets are beside the cluster.
        yield server, f"postgresql://postgres@/postgres?host={server.cluster.data_directory.parents[1]}"


@contextmanager
def somebodys_server(name: str, *statements: str) -> Iterator[str]:
    """Yield the URI of a server that is unknown to pgversus, after running these statements on it."""
    with started_server(name) as (_, uri):
        with psycopg.connect(uri, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
        yield uri


@pytest.fixture(scope="session")
def shared_cache() -> Path:
    return users_cache()


def pytest_configure(config: pytest.Config) -> None:
    # The workers of a session inherit the variable.
    if _SNAPSHOTS not in os.environ:
        # On the file system of the caches, into which loaded data are moved.
        directory = tempfile.mkdtemp(prefix="pgversus-snapshots-", dir=scratch())
        os.environ[_SNAPSHOTS] = directory
        config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))


@pytest.fixture(scope="session")
def shared_snapshots() -> Path:
    """Loaded data of all workers of this session: most tests load the same."""
    directory = Path(os.environ[_SNAPSHOTS])
    directory.chmod(0o755)
    return directory


@pytest.fixture
def command_line(
    request: pytest.FixtureRequest, shared_cache: Path, shared_snapshots: Path, tmp_path: Path
) -> Iterator[CommandLine]:
    is_own = request.node.get_closest_marker("own_snapshots") is not None
    with own_command_line(shared_cache, tmp_path, None if is_own else shared_snapshots) as line:
        yield line
        assert line.leftovers() == []
