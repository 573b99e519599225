"""The cause of a failure in a run: a trial of one arm, its server, or the host.

A server, pgbench or psql that runs out of disk space reports it in its own words, as does pgbench if its server is
away. If it were mistaken for a property of an arm, the failure would be stored with the results and never tried again.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import HostError, PgversusError, ServerError, StoreError, WorkloadError
from pgversus.host.full_disk import WHAT_IS_KEPT, full_disk, full_disk_text, has_no_room, is_full
from pgversus.lab.arm_servers import ArmServer
from pgversus.postgres.session import connect
from pgversus.study.workload import Workload
from pgversus.workload.pgbench import with_missing_tables


@contextmanager
def failing_the_trial() -> Iterator[None]:
    """Turn an error in the body into a failed trial of its arm, with the message of the error.

    HostError and StoreError pass: a full disk, or a log that cannot be stored, is not a property of an arm. Results are
    kept, and the study can be resumed later.
    """
    try:
        yield
    except (HostError, StoreError):
        raise
    except PgversusError as error:
        raise TrialFailedError(f"{error.what}: {error.found}") from error


@contextmanager
def failures_of_first_run(label: str, workload: Workload, patience_s: float, to_do: str) -> Iterator[None]:
    """Raise WorkloadError, with the message of psql or pgbench, if the body fails or hangs.

    label: of the arm. to_do: advice if the work itself fails.
    """
    kind, where = "operation" if workload.runs_once else "load", f"{workload.name}, on {label}"
    try:
        yield
    except TrialHungError as error:
        raise WorkloadError(
            f"the first run of the {kind} did not finish in time on {label}",
            slug="workload-hangs",
            where=where,
            found=str(error),
            expected=f"completion within {patience_s:.0f} s, a fraction of the budget",
            to_do="look for waits in pg_stat_activity and pg_locks, or run the same command with a larger --budget "
            "(and without --blocks)",
        ) from error
    except TrialFailedError as error:
        raise WorkloadError(
            f"the {kind} fails on {label}",
            slug="workload-failed",
            where=where,
            found=str(error),
            expected="no errors on any arm",
            to_do=with_missing_tables(str(error), to_do),
        ) from error


_LONGEST_AWAY_S, _POLL_S = 30.0, 0.5
# Longer than a restart, or the recovery of a small server after a crash.


@contextmanager
def failures_of_the_host(directory: Path) -> Iterator[None]:
    """Raise HostError instead of any failure in the body that is caused by a full disk or by the host.

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
            progress.say(
                f"the connection to {server.arm.label} was lost; waiting up to {_LONGEST_AWAY_S:.0f} s for a new one"
            )
            has_said_so = True
        time.sleep(_POLL_S)


def _away(server: ArmServer, error: ServerError) -> ServerError:
    return ServerError(
        "the connection to an external server was lost during the run",
        slug="server-away",
        where=server.arm.label,
        found=error.found,
        expected=f"a new connection within {_LONGEST_AWAY_S:.0f} s",
        to_do=f"check that the server is running; {WHAT_IS_KEPT}",
    )


def _host_failed(error: OSError, directory: Path) -> HostError:
    fault = error.strerror or str(error)
    return HostError(
        "the run ended because of an operating system error",
        slug="host-failed",
        where=str(error.filename or directory),
        found=fault,
        expected="readable and writable files, and programs that can be executed",
        to_do=f"fix the cause ({fault}); {WHAT_IS_KEPT}",
    )
