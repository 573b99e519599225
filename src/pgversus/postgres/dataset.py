"""Loading: pgbench's tables, the user's SQL files, then VACUUM ANALYZE and CHECKPOINT."""

from collections.abc import Sequence
from pathlib import Path

from pgversus.errors import DatasetError
from pgversus.host.commands import Finished, run
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target, connect

# Loading is not measured, so it may be quick: no WAL for new tables, no waiting for the disk, no WAL files kept.
# All of it is undone by the next start; a checkpoint and a clean stop leave the same bytes.
LOADING_SETTINGS = {
    "fsync": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_recycle": "off",
    "min_wal_size": "32MB",
    "autovacuum": "off",
}


def make_pgbench_tables(target: Target, arguments: Sequence[str], label: str) -> None:
    """Run `pgbench -i`; DatasetError with its words when it fails."""
    finished = run(arguments, environment=target.environment(), ends_with_us=True)
    if not finished.succeeded:
        raise _failed("pgbench could not make its tables", "pgbench -i", label, finished)


def run_setup_file(target: Target, client: Client, file: Path, label: str, *, name: str) -> None:
    """Run one SQL file with psql, stopping at its first error; DatasetError with psql's words when there is one.

    name: how the user knows the file.
    """
    arguments = [str(client.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), "-d", target.conninfo]
    finished = run(arguments, environment=target.environment(), ends_with_us=True)
    if not finished.succeeded:
        raise _failed("the setup file failed", name, label, finished)


def settle(target: Target) -> None:
    """VACUUM ANALYZE and CHECKPOINT: every arm begins with the same visibility, statistics and a clean log."""
    with connect(target) as connection:
        catalog.vacuum_analyze(connection)
        if target.is_ours:
            if catalog.can_prewarm(connection):
                catalog.install_prewarm(connection)
            catalog.checkpoint(connection)


def _failed(what: str, where: str, label: str, finished: Finished) -> DatasetError:
    return DatasetError(
        what,
        slug="dataset-load-failed",
        where=f"{where}, on {label}",
        found=finished.stderr.strip() or f"exit code {finished.exit_code}",
        expected="a load without errors on every arm",
        to_do="what is loaded must run on each of the servers compared",
    )
