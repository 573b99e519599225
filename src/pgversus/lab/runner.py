"""Measurement of a context, by load or as an operation: tried once, then by a trial runner for the engine.

A server, pgbench or psql that runs out of disk space reports it in its own words, and so does pgbench if its server is
away. Mistaken for a property of an arm, such a failure would be stored with the results and never tried again.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialFailedError, TrialRunner
from pgversus.errors import HostError, PgversusError, ServerError, StoreError
from pgversus.host.counters import read_host
from pgversus.host.full_disk import WHAT_IS_KEPT, full_disk, full_disk_text, has_no_room, is_full
from pgversus.host.processes import cpu_time
from pgversus.lab.arm_servers import ArmServer
from pgversus.postgres import catalog
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.counters import CounterSession
from pgversus.postgres.session import connect
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.stats.counters import difference
from pgversus.study.design import Design

Settings = Mapping[str, SettingValue]
"""Settings by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """The results of running the workload once on every arm."""

    design: Design
    """Fitted to the workload and final."""
    settings: tuple[Settings, ...]
    """For each arm, as in a session of the workload."""
    writes: bool
    """Whether any arm's rows were changed."""
    connect_allowance_s: int = 0
    """Whole seconds added to each run of pgbench, because its -T begins before its clients are connected."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients."""
    longest_transaction_s: float
    """The slowest transaction of any arm, or the slowest operation."""
    plans: CapturedPlans | None = None
    """None for an operation, or if not requested."""
    not_explained: str = ""
    """Why requested plans are missing."""


class WorkloadRunner(Protocol):
    """One context's workload on its servers."""

    def try_out(self) -> FirstRun:
        """Run it on every arm and discard the numbers; raise WorkloadError if it cannot run on one."""

    def trial_runner(self, preparation: Preparation) -> TrialRunner:
        """Return the trial runner for the engine, as prepared."""


def session_settings(server: ArmServer) -> Settings:
    """Return the settings of a running server as a session of the workload has them."""
    with connect(server.target, as_the_load=True) as connection:
        return catalog.session_settings(connection)


CPUS = os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All counters at one moment, by name."""

    server: dict[str, float]
    host: dict[str, float]


def read_before(server: ArmServer, session: CounterSession) -> Reading:
    """Read before a window: the host last, to exclude the cost of reading."""
    counters = session.read()
    return Reading(server=counters | _processes(server), host=read_host_of(server))


def read_after(server: ArmServer, session: CounterSession) -> Reading:
    """Read after a window: the host first; the server once the ended sessions have reported."""
    host = read_host_of(server)
    counters = session.read(settled=True)
    return Reading(server=counters | _processes(server), host=host)


def grown(before: Reading, after: Reading, own: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each counter that is present in both readings.

    own: growth caused by the reading before, which is not work of the load.
    """
    server = difference(before.server, after.server)
    load = {name: max(0.0, value - own.get(name, 0.0)) for name, value in server.items()}
    return load | difference(before.host, after.host)


def read_host_of(server: ArmServer) -> dict[str, float]:
    """Return the counters of the server's host; empty if it is a different host."""
    return read_host(server.data_directory) if server.data_directory is not None else {}


def _processes(server: ArmServer) -> dict[str, float]:
    pid = server.postmaster_pid
    times = cpu_time(pid) if pid is not None else None
    if times is None:
        return {}
    return {"server_cpu_user_s": times.user_s, "server_cpu_system_s": times.system_s}


_LONGEST_AWAY_S, _POLL_S = 30.0, 0.5
# Longer than a restart, or the recovery of a small server after a crash.


@contextmanager
def failures_of_the_host(directory: Path) -> Iterator[None]:
    """Raise HostError instead of any failure in the block that is caused by a full disk or by the host.

    directory: of the run; its file system is checked if the message does not identify the cause.
    """
    try:
        yield
    except (HostError, StoreError):
        raise
    except (PgversusError, TrialFailedError) as error:
        words = error.found if isinstance(error, PgversusError) else str(error)
        said = full_disk_text(words)
        if said or has_no_room(directory):
            raise full_disk(directory, said or words) from error
        raise
    except OSError as error:
        if is_full(error):
            raise full_disk(error.filename or directory, str(error.strerror)) from error
        raise _host_failed(error, directory) from error


@contextmanager
def failures_of_arm(server: ArmServer, directory: Path, progress: Progress) -> Iterator[None]:
    """End the run instead of a trial when the host fails or an external server stays away.

    directory: of the run.
    """
    try:
        with failures_of_the_host(directory):
            yield
    except TrialFailedError:
        if not server.can_restart:
            _wait_for(server, progress)
        raise


def _wait_for(server: ArmServer, progress: Progress) -> None:
    """Return when an external server accepts sessions, usually at once; raise ServerError if it stays away."""
    end = time.monotonic() + _LONGEST_AWAY_S
    has_said_so = False
    while True:
        try:
            with connect(server.target):
                return
        except ServerError as error:
            if time.monotonic() >= end:
                raise _away(server, error) from error
        if not has_said_so:
            progress.say(f"{server.arm.label} is away; waiting for {_LONGEST_AWAY_S:.0f} s")
            has_said_so = True
        time.sleep(_POLL_S)


def _away(server: ArmServer, error: ServerError) -> ServerError:
    return ServerError(
        "an external server has gone away during the run",
        slug="server-away",
        where=server.arm.label,
        found=error.found,
        expected=f"a session within {_LONGEST_AWAY_S:.0f} s after a load failed on it",
        to_do=f"check that it runs; {WHAT_IS_KEPT}",
    )


def _host_failed(error: OSError, directory: Path) -> HostError:
    fault = error.strerror or str(error)
    return HostError(
        "this host failed during the run",
        slug="host-failed",
        where=str(error.filename or directory),
        found=fault,
        expected="files that can be written and read, programs that can be started",
        to_do=f"fix the cause of this fault of the host ({fault}); {WHAT_IS_KEPT}",
    )
