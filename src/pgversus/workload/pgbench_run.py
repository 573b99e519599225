"""One window of pgbench: running it, and reading its summary and transaction log."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import HostError, StoreError
from pgversus.host.commands import Finished, run, shortened
from pgversus.host.directories import make_directory
from pgversus.host.full_disk import full_disk, has_no_room
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import PRIVATE_DIRECTORY, make_private, open_private, open_regular, write_for
from pgversus.host.processors import started_on
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.records.trials import Window
from pgversus.study.workload import PgbenchWorkload
from pgversus.workload.pgbench import UnreadableOutputError, command, has_begun_nothing, parse_summary, stderr_text
from pgversus.workload.pgbench_log import UnreadableLogError, read_latencies

_GRACE_S = 10.0
_MOST_RUNS = 3
LOG = "log"
"""Prefix of the transaction logs of a run of pgbench that is not paused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchLoad:
    """A workload that can be run on any server."""

    workload: PgbenchWorkload
    client: Client
    script_files: tuple[Path | None, ...]
    """Copies of the scripts, so that editing a script during the run has no effect."""
    scratch: Path
    """Directory for transaction logs; emptied after each window."""
    kept_logs: Path | None
    """Directory in which transaction logs are stored; None to delete them once read."""
    connect_allowance_s: int
    """Whole seconds added to each run of pgbench, because its -T begins before its clients are connected."""
    processors: tuple[int, ...] = ()
    """Processors that pgbench may run on; any if empty."""
    longest_s: float
    """A window that exceeds its length by more than this is considered hung and terminated."""


def write_scripts(workload: PgbenchWorkload, directory: Path, user: ServerUser) -> tuple[Path | None, ...]:
    """Write each script of the mix to a file that only pgbench's user can read; None for the built-ins."""
    # The directory belongs to root, since root must not write where that user can.
    make_directory(directory, PRIVATE_DIRECTORY)
    user.grant_access(directory)
    files: list[Path | None] = []
    for index, script in enumerate(workload.scripts):
        if script.text is None:
            files.append(None)
            continue
        file = directory / f"script-{index}.sql"
        # UTF-8, as it was read: the encoding of the locale may differ or lack its characters.
        write_for(user, file, script.text.encode())
        files.append(file)
    return tuple(files)


def run_window(load: PgbenchLoad, target: Target, seconds: float, seed: int) -> Window:
    """Run one window of load without storing its log; TrialFailedError with pgbench's message if it fails."""
    with finished_load(load, target, seconds, seed) as finished:
        return read_window(load, finished)


@contextmanager
def finished_load(
    load: PgbenchLoad, target: Target, seconds: float, seed: int, *, log_name: str | None = None
) -> Iterator[Finished]:
    """Run one window of load, leaving its transaction log unread; TrialFailedError if pgbench fails.

    The caller can then read counters before the log, since reading the log is itself work.
    log_name: name of the log if logs are stored; without a name it is not stored.
    """
    with _logs(load, log_name):
        yield _run(load, target, seconds, seed)


@contextmanager
def finished_run(load: PgbenchLoad, target: Target, seconds: int, seed: int) -> Iterator[Finished]:
    """Like finished_load(), but run pgbench for exactly this long, and only once."""
    with _logs(load, None):
        yield _finished(load, target, ("-T", str(seconds)), seed, seconds)


@contextmanager
def finished_transactions(
    load: PgbenchLoad, target: Target, transactions: int, seed: int, *, seconds: float, log_name: str | None = None
) -> Iterator[Finished]:
    """Like finished_load(), but run a number of transactions per client, which take about `seconds`."""
    with _logs(load, log_name):
        yield _finished(load, target, ("-t", str(transactions)), seed, seconds)


@contextmanager
def _logs(load: PgbenchLoad, log_name: str | None) -> Iterator[None]:
    make_private(load.client.user, load.scratch)
    try:
        yield
    finally:
        clear_logs(load, LOG, log_name)


def _run(load: PgbenchLoad, target: Target, seconds: float, seed: int) -> Finished:
    connect_s = load.connect_allowance_s
    for _ in range(_MOST_RUNS):
        length = str(max(1, round(seconds)) + connect_s)
        finished = _finished(load, target, ("-T", length), seed, seconds + connect_s)
        if load.workload.is_open_loop or not has_begun_nothing(finished.stdout):
            break
        # Without a rate a connected client always finishes its first transaction, however long that takes. So no client
        # was connected in time: pgbench itself was delayed, which says nothing about the server.
        connect_s = 2 * connect_s + 2
    return finished


def _finished(load: PgbenchLoad, target: Target, length: tuple[str, str], seed: int, seconds: float) -> Finished:
    """Run pgbench once, for about `seconds`."""
    limit_s = seconds + load.longest_s + _GRACE_S
    arguments = pgbench_command(load, target, length, seed, LOG)
    with started_on(load.processors):
        finished = run(
            arguments,
            environment=load.client.environment(target),
            timeout_s=limit_s,
            user=load.client.user,
            ends_with_us=True,
            is_abridged=True,
        )
    check_end(finished, limit_s)
    return finished


def pgbench_command(
    load: PgbenchLoad, target: Target, length: tuple[str, str], seed: int, log_prefix: str
) -> list[str]:
    """Return the command line of one run of pgbench. log_prefix: prefix of its log files in the scratch directory."""
    return command(
        load.workload,
        pgbench=load.client.pgbench,
        conninfo=target.conninfo,
        script_files=load.script_files,
        length=length,
        seed=seed,
        log_prefix=load.scratch / log_prefix,
    )


def check_end(finished: Finished, limit_s: float) -> None:
    """Raise TrialFailedError with pgbench's message if it failed or took longer than limit_s."""
    if finished.timed_out:
        raise TrialHungError(
            f"pgbench did not finish within {limit_s:.0f} s and was terminated: a transaction may be waiting for "
            "a lock, or be far slower than all earlier ones"
        )
    if not finished.succeeded:
        raise TrialFailedError(_why(finished))


def read_window(load: PgbenchLoad, finished: Finished) -> Window:
    """Return the window of a finished load.

    TrialFailedError if its output or its log cannot be read, or they disagree; HostError if the disk is full.
    """
    try:
        summary = parse_summary(finished.stdout)
        latencies = read_latencies(log_files(load, LOG), is_open_loop=load.workload.is_open_loop)
    except (UnreadableOutputError, UnreadableLogError) as error:
        raise damaged(load, f"{error}\n{stderr_text(finished.stderr)}".strip()) from error
    known, omitted = latencies.histogram.total, latencies.omitted
    if known + omitted != summary.transactions:
        logged = f"logged {known + omitted}, {known} with a latency"
        raise damaged(load, f"pgbench counted {summary.transactions} transactions and {logged}")
    if latencies.max_s > summary.seconds + summary.connect_s + _GRACE_S:
        ran = f"pgbench ran for {summary.seconds:.3g} s"
        raise damaged(load, f"{ran} and logged a transaction of {latencies.max_s:.3g} s")
    return Window(
        transactions=summary.transactions,
        seconds=summary.seconds,
        failed=summary.failed,
        # Without any known latency, every session had one transaction only, as long as the run.
        latency_sum_s=latencies.sum_s * (known + omitted) / known if known else summary.seconds * omitted,
        latency_max_s=latencies.max_s if known else summary.seconds,
        histogram=latencies.histogram,
        unclocked=latencies.unclocked,
        connect_s=summary.connect_s,
        counters={"client_cpu_s": finished.cpu_s, "client_cpu_user_s": finished.cpu_user_s},
        output=output_of(finished),
    )


def run_seconds(finished: Finished) -> float | None:
    """Return the length of a run without connection time, in seconds; None if no transaction finished."""
    try:
        return parse_summary(finished.stdout).seconds
    except UnreadableOutputError:
        return None


def damaged(load: PgbenchLoad, problem: str) -> HostError | TrialFailedError:
    """Return the error for a window whose log or summary is damaged: HostError if the disk is full.

    Call it before the logs are removed, which frees space.
    """
    return full_disk(load.scratch, problem) if has_no_room(load.scratch) else TrialFailedError(problem)


def output_of(finished: Finished) -> str:
    """Return the output of pgbench, shortened: a script may raise a notice in each transaction."""
    return finished.stdout + shortened(finished.stderr)


def _why(finished: Finished) -> str:
    words = stderr_text(finished.stderr)
    if finished.exit_code < 0:
        return f"pgbench was ended by signal {-finished.exit_code}. {words}".strip()
    return words or f"pgbench exited with code {finished.exit_code} and no message"


def log_files(load: PgbenchLoad, log_prefix: str) -> list[Path]:
    """Return the log files of a run, one per thread."""
    return sorted(load.scratch.glob(f"{log_prefix}.*"))


def clear_logs(load: PgbenchLoad, log_prefix: str, log_name: str | None) -> None:
    """Remove pgbench's logs with this prefix; first copy them under this name if logs are stored."""
    # pgbench names them PREFIX.PID for the first thread and PREFIX.PID.N for the others.
    for file in log_files(load, log_prefix):
        if load.kept_logs is not None and log_name is not None:
            thread = file.name.split(".")[2:] or ["0"]
            name = f"{log_name}-thread-{thread[0]}.log"
            _keep(file, load.client.user, load.kept_logs / name, stale=f"{log_name}-repeated-*")
        file.unlink()


def _keep(file: Path, user: ServerUser, place: Path, *, stale: str) -> None:
    """Copy a log. stale: pattern of logs that an unfinished block may have left for the same window."""
    try:
        make_directory(place.parent, PRIVATE_DIRECTORY)
        for left in sorted(place.parent.glob(stale)):
            left.unlink()
        # A copy belongs to the user of pgversus. ValueError: not a regular file, which reading the log already reports.
        with suppress(ValueError), open_regular(file, owner=user.uid) as log, open_private(place, "w") as kept:
            shutil.copyfileobj(log, kept)
    except OSError as error:
        raise StoreError(
            "a per-transaction log file of pgbench could not be stored",
            slug="store-unwritable",
            where=str(place.parent),
            found=error.strerror or str(error),
            expected="space for about 30 bytes per transaction",
            to_do="free space there, or omit --keep-logs; finished blocks are stored",
        ) from error
