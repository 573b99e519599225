"""Loading: pgbench's tables, the user's SQL files, then VACUUM ANALYZE and CHECKPOINT; preparing what is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pgversus.errors import DatasetError
from pgversus.host.commands import Finished, run
from pgversus.postgres import catalog
from pgversus.postgres.client import Client, program_environment
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, connect
from pgversus.text.sql import quoted

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


def make_pgbench_tables(target: Target, client: Client, arguments: Sequence[str], label: str) -> None:
    """Run `pgbench -i`; DatasetError with its words when it fails."""
    finished = run(
        arguments, environment=client.environment(target), user=client.user, ends_with_us=True, is_abridged=True
    )
    if not finished.succeeded:
        raise _failed("pgbench could not make its tables", "pgbench -i", label, finished, client)


def run_setup_file(target: Target, client: Client, file: Path, label: str, *, name: str) -> None:
    """Run one SQL file with psql, stopping at its first error; DatasetError with psql's words when there is one.

    name: how the user knows the file.
    """
    finished = _run_file(target, client, file, client.environment(target), name=name)
    if not finished.succeeded:
        raise _failed("the setup file failed", name, label, finished, client)


def run_prepare_file(
    server: Server, client: Client, file: Path, label: str, *, name: str, variables: Path | None
) -> None:
    """The same with a file that brings loaded data into another state. variables: a file with variable_commands().

    Programs that it runs find the server as those of an operation do, and its files in PGDATA.
    """
    environment = program_environment(client, server.target, server.cluster.data_directory)
    finished = _run_file(server.target, client, file, environment, variables, name=name)
    if not finished.succeeded:
        raise _failed("the file that prepares the data failed", name, label, finished, client)


def variable_commands(variables: Sequence[tuple[str, str]]) -> str:
    """The commands that set psql's variables: what stands on its command line is read by every user of the host."""
    return "".join(f"\\set {name} {quoted(value)}\n" for name, value in variables)


def write_out(target: Target) -> None:
    """CHECKPOINT and nothing else: what was prepared stays as it is, also what VACUUM would tidy up."""
    with connect(target) as connection:
        catalog.checkpoint(connection)


def settle(target: Target) -> None:
    """VACUUM ANALYZE and CHECKPOINT: every arm begins with the same visibility, statistics and a clean log."""
    with connect(target) as connection:
        catalog.vacuum_analyze(connection)
        if target.is_ours:
            if catalog.can_prewarm(connection):
                catalog.install_prewarm(connection)
            catalog.checkpoint(connection)


def _run_file(
    target: Target,
    client: Client,
    file: Path,
    environment: Mapping[str, str],
    variables: Path | None = None,
    *,
    name: str,
) -> Finished:
    arguments = [str(client.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    arguments += ["-f", str(variables)] if variables is not None else []
    arguments += ["-f", str(file), "-d", target.conninfo]
    finished = run(arguments, environment=environment, user=client.user, ends_with_us=True, is_abridged=True)
    return replace(finished, stderr=finished.stderr.replace(str(file), name))


def _failed(what: str, where: str, label: str, finished: Finished, client: Client) -> DatasetError:
    words = finished.stderr.strip() or f"exit code {finished.exit_code}"
    return DatasetError(
        what,
        slug="dataset-load-failed",
        where=f"{where}, on {label}",
        found=words,
        expected="a load without errors on every arm",
        to_do=client.user.way_out(words) or "what is loaded must run on each of the servers compared",
    )
