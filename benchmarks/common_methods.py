"""Common methods of comparing two servers, as their users run them: first all of A, then all of B, on real servers.

one run     one pgbench run of 60 s for each server; a difference of more than 1 % counts
five runs   five runs of 12 s for each server; Welch's t test at 5 %
benchstat   ten runs of 6 s for each server; the Mann-Whitney U test at 5 % (golang.org/x/perf, its default)

All share ten runs of 6 s for each server, in new sessions: two neighboring runs count as one of 12 s, and all as one of
60 s, with the mean of their speeds. That favors the first two methods, because the runs of a session also share the
placement of its processes. The duration of an operation cannot be chosen, so its methods take the first repetition, the
first five, or all ten.
"""

import math
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from psycopg.sql import SQL
from scipy.stats import mannwhitneyu, ttest_ind

from pgversus.builds.provide import provide
from pgversus.engine.progress import Progress
from pgversus.host.commands import run
from pgversus.host.directories import open_cache
from pgversus.host.identity import server_user
from pgversus.host.run_directory import run_directory
from pgversus.postgres.client import fixed_client
from pgversus.postgres.cluster import make_cluster
from pgversus.postgres.server import Server
from pgversus.postgres.session import connect
from pgversus.study.build_options import USUAL_MANNER
from pgversus.study.servers import parse_server
from pgversus.workload.pgbench_log import read_latencies

SIGNIFICANT = 0.05
_RELEVANT = math.log(1.01)
_TPS = re.compile(r"^tps = ([0-9.]+) ", re.MULTILINE)

RUNS, RUN_S = 10, 6.0
"""Runs on each server, and the seconds of each."""

Speed = Callable[[Server, float], float]
"""Runs the work on a server once, for about the given number of seconds, and returns its speed (1/s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A method's verdict on B compared with A."""

    verdict: str
    """faster, slower, or no claim."""
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A number of runs on each server, and a rule that compares them."""

    runs: int
    differs: Callable[[Sequence[float], Sequence[float]], bool]
    """Takes the logs of the speeds of A and of B."""
    middle: Callable[[Sequence[float]], float] = fmean

    def claim(self, a: Sequence[float], b: Sequence[float], *, may_merge: bool) -> Claim:
        """Compare the speeds of the shared runs.

        may_merge: whether neighboring runs may count as a longer one; otherwise only the first runs count.
        """
        logs = [list(map(math.log, self._merged(side) if may_merge else side[: self.runs])) for side in (a, b)]
        log_ratio = self.middle(logs[1]) - self.middle(logs[0])
        if not self.differs(*logs):
            return Claim(verdict="no claim", ratio=math.exp(log_ratio))
        return Claim(verdict="faster" if log_ratio > 0 else "slower", ratio=math.exp(log_ratio))

    def _merged(self, speeds: Sequence[float]) -> list[float]:
        length = len(speeds) // self.runs
        return [fmean(speeds[first : first + length]) for first in range(0, len(speeds), length)]


METHODS = {
    "one run": Method(runs=1, differs=lambda a, b: abs(b[0] - a[0]) > _RELEVANT),
    "five runs, t test": Method(
        runs=5, differs=lambda a, b: bool(ttest_ind(a, b, equal_var=False).pvalue < SIGNIFICANT)
    ),
    "benchstat": Method(runs=10, differs=lambda a, b: bool(mannwhitneyu(a, b).pvalue < SIGNIFICANT), middle=median),
}


def shared_runs(a: Server, b: Server, speed: Speed) -> tuple[list[float], list[float]]:
    """Return the speeds of all runs on A, then of all runs on B."""
    first, second = ([speed(server, RUN_S) for _ in range(RUNS)] for server in (a, b))
    return first, second


@contextmanager
def two_servers(
    versions: tuple[str, str], setups: tuple[str, str], settings: tuple[dict[str, str], dict[str, str]]
) -> Iterator[tuple[Server, Server]]:
    """Start two servers, each with its own version, data and settings; stop and remove them at the end."""
    user, cache = server_user(), open_cache()
    builds = provide([parse_server(version) for version in versions], USUAL_MANNER, cache, user, Progress())
    with run_directory(cache, user) as directory, ExitStack() as stack:
        servers = []
        for arm, build in enumerate(builds):
            assert build is not None
            cluster = make_cluster(build, directory.snapshot_directory(arm), user)
            server = Server(cluster, directory.socket_directory(arm), directory.server_log(arm), settings[arm])
            server.start()
            stack.callback(server.stop)
            with connect(server.target) as connection:
                connection.execute(SQL(setups[arm]))
            servers.append(server)
        yield servers[0], servers[1]


def tps_of(script: Path) -> Speed:
    """Return the speed of a pgbench script: transactions per second, as pgbench prints them."""

    def speed(server: Server, seconds: float) -> float:
        printed = _pgbench(server, script, seconds)
        found = _TPS.search(printed)
        assert found is not None, printed
        return float(found[1])

    return speed


def p95_of(script: Path, load: Sequence[str]) -> Speed:
    """Return the speed of a script under a rate: 1 / the 95th percentile of the latencies that pgbench logs.

    load: pgbench's options for the rate and the clients. The log of a run contains all of its transactions.
    """
    user = server_user()

    def speed(server: Server, seconds: float) -> float:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            user.change_owner(directory)
            _pgbench(server, script, seconds, *load, "-l", "--log-prefix", str(directory / "log"))
            return 1 / read_latencies(list(directory.iterdir()), is_open_loop=True).histogram.quantile(0.95)

    return speed


def _pgbench(server: Server, script: Path, seconds: float, *options: str) -> str:
    """Run pgbench once; return what it prints."""
    client, target = fixed_client(server_user()), server.target
    arguments = [str(client.pgbench), "-n", "-T", f"{seconds:g}", *options, "-f", str(script), target.conninfo]
    finished = run(arguments, environment=client.environment(target), user=client.user)
    assert finished.succeeded, finished.stderr
    return finished.stdout


def repeated(prepare: str, statement: str) -> Speed:
    """Return the speed of an operation: 1 / its seconds. prepare: SQL that restores the state before it."""

    def speed(server: Server, seconds: float) -> float:
        del seconds
        with connect(server.target) as connection:
            connection.execute(SQL(prepare))
            connection.execute("CHECKPOINT")
            began = time.perf_counter()
            connection.execute(SQL(statement))
            return 1 / (time.perf_counter() - began)

    return speed
