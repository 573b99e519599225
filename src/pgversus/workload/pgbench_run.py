"""One window of pgbench: run it, read its summary and its transaction log."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import HostError, StoreError
from pgversus.host.commands import Finished, run
from pgversus.host.directories import make_directory
from pgversus.host.full_disk import full_disk, has_no_room
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import PRIVATE_DIRECTORY, make_private, open_private, open_regular, write_for
from pgversus.host.processors import started_on
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.records.trials import Window
from pgversus.study.workload import PgbenchWorkload
from pgversus.workload.pgbench import UnreadableOutputError, command, error_words, has_begun_nothing, parse_summary
from pgversus.workload.pgbench_log import UnreadableLogError, read_latencies

_GRACE_S = 10.0
_MOST_RUNS = 3
_MOST_WORDS = 4000
_LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchLoad:
    """A workload that can be put on any server."""

    workload: PgbenchWorkload
    client: Client
    script_files: tuple[Path | None, ...]
    """Copies of the scripts, so that an edit while it runs changes nothing."""
    scratch: Path
    """For transaction logs; emptied after each window."""
    kept_logs: Path | None
    """Where transaction logs are kept; None to throw them away once read."""
    connect_allowance_s: int
    """Whole seconds by which each run of pgbench is longer, because its -T begins before its clients are connected."""
    processors: tuple[int, ...] = ()
    """On which pgbench runs; any where empty."""
    longest_s: float
    """A window that takes longer than this beyond its own length is given up: it hangs."""


def write_scripts(workload: PgbenchWorkload, directory: Path, user: ServerUser) -> tuple[Path | None, ...]:
    """Write each script of the mix to a file for pgbench's user alone; None for the built-ins."""
    # Root's own: what that user may write, root does not write to.
    make_directory(directory, PRIVATE_DIRECTORY)
    user.let_through(directory)
    files: list[Path | None] = []
    for index, script in enumerate(workload.scripts):
        if script.text is None:
            files.append(None)
            continue
        file = directory / f"script-{index}.sql"
        # In what it was read in: the locale's own encoding may lack its characters, or spell them otherwise.
        write_for(user, file, script.text.encode())
        files.append(file)
    return tuple(files)


def run_window(load: PgbenchLoad, target: Target, seconds: float, seed: int) -> Window:
    """One window of load whose log is not kept; TrialFailedError with pgbench's own words when it fails in any way."""
    with finished_load(load, target, seconds, seed) as finished:
        return read_window(load, finished)


@contextmanager
def finished_load(
    load: PgbenchLoad, target: Target, seconds: float, seed: int, *, log_name: str | None = None
) -> Iterator[Finished]:
    """One window of load that has just ended, its transaction log still unread; TrialFailedError when pgbench fails.

    For what must be read at that very moment: reading the log is work of its own. log_name: what the log is called
    where logs are kept; that of a load without a name never is.
    """
    with _logs(load, log_name):
        yield _run(load, target, seconds, seed)


@contextmanager
def finished_transactions(
    load: PgbenchLoad, target: Target, transactions: int, seed: int, *, seconds: float, log_name: str | None = None
) -> Iterator[Finished]:
    """The same of a number of transactions of each client, which take about so many seconds."""
    with _logs(load, log_name):
        yield _finished(load, target, ("-t", str(transactions)), seed, seconds)


@contextmanager
def _logs(load: PgbenchLoad, log_name: str | None) -> Iterator[None]:
    make_private(load.client.user, load.scratch)
    try:
        yield
    finally:
        clear_logs(load, _LOG, log_name)


def _run(load: PgbenchLoad, target: Target, seconds: float, seed: int) -> Finished:
    connect_s = load.connect_allowance_s
    for _ in range(_MOST_RUNS):
        length = str(max(1, round(seconds)) + connect_s)
        finished = _finished(load, target, ("-T", length), seed, seconds + connect_s)
        if load.workload.is_open_loop or not has_begun_nothing(finished.stdout):
            break
        # Without a rate a client begins its first transaction once it is connected, and ends it however long that
        # takes. So nobody was connected in time: pgbench itself was kept waiting, and nothing is known of the server.
        connect_s = 2 * connect_s + 2
    return finished


def _finished(load: PgbenchLoad, target: Target, length: tuple[str, str], seed: int, seconds: float) -> Finished:
    """One run of pgbench, which takes about so many seconds."""
    limit_s = seconds + load.longest_s + _GRACE_S
    arguments = pgbench_command(load, target, length, seed, _LOG)
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
    """Return the command line of one run of pgbench. log_prefix: of its log files in the scratch folder."""
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
    """TrialFailedError with pgbench's own words when it did not succeed, or took longer than limit_s."""
    if finished.timed_out:
        raise TrialHungError(
            f"pgbench had not ended after {limit_s:.0f} s, so it was ended; a transaction waits for a lock, or is far "
            "slower than any before it"
        )
    if not finished.succeeded:
        raise TrialFailedError(_why(finished))


def read_window(load: PgbenchLoad, finished: Finished) -> Window:
    """What a finished load has done; TrialFailedError when its words or its log cannot be read, or disagree.

    HostError when that is for want of room.
    """
    try:
        summary = parse_summary(finished.stdout)
        latencies = read_latencies(log_files(load, _LOG), is_open_loop=load.workload.is_open_loop)
    except (UnreadableOutputError, UnreadableLogError) as error:
        raise damaged(load, f"{error}\n{error_words(finished.stderr)}".strip()) from error
    left_out = 0 if load.workload.is_open_loop else latencies.unclocked
    known = latencies.histogram.total
    if known + left_out != summary.transactions or not known:
        logged = f"logged {known + left_out}, {known} with a latency"
        raise damaged(load, f"pgbench counted {summary.transactions} transactions and {logged}")
    return Window(
        transactions=summary.transactions,
        seconds=summary.seconds,
        failed=summary.failed,
        latency_sum_s=latencies.sum_s * (known + left_out) / known,
        latency_max_s=latencies.max_s,
        histogram=latencies.histogram,
        unclocked=latencies.unclocked,
        connect_s=summary.connect_s,
        counters={"client_cpu_s": finished.cpu_s, "client_cpu_user_s": finished.cpu_user_s},
        output=output_of(finished),
    )


def damaged(load: PgbenchLoad, problem: str) -> HostError | TrialFailedError:
    """Return the failure of a window whose log or summary is damaged: the host's where no room is left for logs.

    Call it before the logs are removed, which makes room.
    """
    return full_disk(load.scratch, problem) if has_no_room(load.scratch) else TrialFailedError(problem)


def output_of(finished: Finished) -> str:
    """Return what pgbench printed, shortened: a script may raise a notice in each transaction."""
    text = finished.stderr
    if len(text) <= _MOST_WORDS:
        return finished.stdout + text
    return f"{finished.stdout}{text[:_MOST_WORDS]}\n... {len(text) - _MOST_WORDS} characters left out\n"


def _why(finished: Finished) -> str:
    words = error_words(finished.stderr)
    if finished.exit_code < 0:
        return f"pgbench was ended by signal {-finished.exit_code}. {words}".strip()
    return words or f"pgbench returned {finished.exit_code} without a word"


def log_files(load: PgbenchLoad, log_prefix: str) -> list[Path]:
    """Return the log files of a run, one of each thread."""
    return sorted(load.scratch.glob(f"{log_prefix}.*"))


def clear_logs(load: PgbenchLoad, log_prefix: str, log_name: str | None) -> None:
    """Remove pgbench's logs with this prefix, or keep them under this name where logs are kept."""
    # pgbench's own names: PREFIX.PID of the first thread, PREFIX.PID.N of the others.
    for file in log_files(load, log_prefix):
        if load.kept_logs is not None and log_name is not None:
            thread = file.name.split(".")[2:] or ["0"]
            name = f"{log_name}-thread-{thread[0]}.log"
            _keep(file, load.client.user, load.kept_logs / name, stale=f"{log_name}-repeated-*")
        file.unlink()


def _keep(file: Path, user: ServerUser, place: Path, *, stale: str) -> None:
    """stale: what a block that was not finished may have left of the same window, measured again, besides its log."""
    try:
        make_directory(place.parent, PRIVATE_DIRECTORY)
        for left in sorted(place.parent.glob(stale)):
            left.unlink()
        # A copy, so that it belongs to whoever keeps it. What is no log of pgbench's was refused when it was read.
        with suppress(ValueError), open_regular(file, owner=user.uid) as log, open_private(place, "w") as kept:
            shutil.copyfileobj(log, kept)
    except OSError as error:
        raise StoreError(
            "a transaction log cannot be kept",
            slug="store-unwritable",
            where=str(place.parent),
            found=error.strerror or str(error),
            expected="room for about 30 bytes for each transaction",
            to_do="make room there, or leave --keep-logs out; blocks that were finished are kept",
        ) from error
