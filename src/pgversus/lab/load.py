"""One window of pgbench: run it, read its summary and its transaction log."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pgversus.host.commands import Finished, run
from pgversus.lab.apparatus import TrialFailedError
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.stats.trials import Window
from pgversus.study.workload import PgbenchWorkload
from pgversus.workload.pgbench import UnreadableOutputError, command, error_words, parse_summary
from pgversus.workload.pgbench_log import UnreadableLogError, read_latencies

_GRACE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A workload that can be put on any server."""

    workload: PgbenchWorkload
    client: Client
    script_files: tuple[Path | None, ...]
    """Copies of the scripts, so that an edit while it runs changes nothing."""
    scratch: Path
    """For transaction logs; emptied after each window."""
    kept_logs: Path | None
    """Where transaction logs are kept; None to throw them away once read."""
    longest_s: float
    """A window that takes longer than this beyond its own length is given up."""


def write_scripts(workload: PgbenchWorkload, directory: Path) -> tuple[Path | None, ...]:
    """Write each script of the mix to a file of ours; None for the built-ins."""
    directory.mkdir(parents=True, exist_ok=True)
    files: list[Path | None] = []
    for index, script in enumerate(workload.scripts):
        if script.text is None:
            files.append(None)
            continue
        file = directory / f"script-{index}.sql"
        file.write_text(script.text)
        files.append(file)
    return tuple(files)


def run_window(load: Load, target: Target, seconds: float, seed: int) -> Window:
    """One window of load; TrialFailedError with pgbench's own words when it fails in any way."""
    load.scratch.mkdir(parents=True, exist_ok=True)
    try:
        return _run_window(load, target, seconds, seed)
    finally:
        _clear(load)


def _run_window(load: Load, target: Target, seconds: float, seed: int) -> Window:
    arguments = command(
        load.workload,
        pgbench=load.client.pgbench,
        conninfo=target.conninfo,
        script_files=load.script_files,
        seconds=max(1, round(seconds)),
        seed=seed,
        log_prefix=load.scratch / "log",
    )
    finished = run(arguments, environment=target.environment(), timeout_s=seconds + load.longest_s + _GRACE_S)
    if not finished.succeeded:
        raise TrialFailedError(_why(finished))
    try:
        summary = parse_summary(finished.stdout)
        latencies = read_latencies(sorted(load.scratch.glob("log.*")))
    except (UnreadableOutputError, UnreadableLogError) as error:
        raise TrialFailedError(f"{error}\n{error_words(finished.stderr)}".strip()) from error
    if latencies.histogram.total != summary.transactions:
        raise TrialFailedError(
            f"pgbench counted {summary.transactions} transactions and logged {latencies.histogram.total}"
        )
    return Window(
        transactions=summary.transactions,
        seconds=summary.seconds,
        failed=summary.failed,
        latency_sum_s=latencies.sum_s,
        latency_max_s=latencies.max_s,
        histogram=latencies.histogram,
        output=finished.stdout + finished.stderr,
    )


def _why(finished: Finished) -> str:
    words = error_words(finished.stderr)
    if finished.exit_code < 0:
        return f"pgbench was ended by signal {-finished.exit_code}. {words}".strip()
    return words or f"pgbench returned {finished.exit_code} without a word"


def _clear(load: Load) -> None:
    for file in sorted(load.scratch.glob("log.*")):
        if load.kept_logs is None:
            file.unlink()
        else:
            load.kept_logs.mkdir(parents=True, exist_ok=True)
            number = sum(1 for _ in load.kept_logs.iterdir()) + 1
            shutil.move(file, load.kept_logs / f"{number:06d}-{file.name}")
