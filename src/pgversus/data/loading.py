"""Loading data: pgbench's tables, the user's SQL files, preparations, on a new cluster or on a copy."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pgversus.errors import DatasetError, ServerError
from pgversus.host.commands import Finished, may_read, run
from pgversus.host.files import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import write_for
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres import catalog
from pgversus.postgres.client import Client, program_environment
from pgversus.postgres.cluster import Cluster, copy_cluster, make_home, remove_directory, was_shut_down
from pgversus.postgres.fingerprint import Fingerprint, gather
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, connect
from pgversus.study.comparison import Arm
from pgversus.study.dataset import SetupFile
from pgversus.text.sql import quoted
from pgversus.workload.pgbench import initialize_command

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


_BESIDE_IT = re.compile(rb"\\(?:ir|include_relative)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCluster:
    """A stopped cluster with data, and what they are."""

    cluster: Cluster
    fingerprint: Fingerprint
    has_prewarm: bool


class Loading:
    """How the data of a study are made."""

    def __init__(self, directory: RunDirectory, client: Client) -> None:
        self.directory = directory
        self.client = client

    def load(self, cluster: Cluster, arm: Arm, settings: Mapping[str, str]) -> LoadedCluster:
        """Load an arm's data into a new cluster; DatasetError or ServerError when it fails.

        settings: of its server, those that make loading quick among them.
        """
        with self._running(cluster, arm, settings) as server:
            self.load_into(server.target, arm)
            fingerprint = gather(server.target)
            with connect(server.target) as connection:
                has_prewarm = catalog.has_prewarm(connection)
        return LoadedCluster(cluster=cluster, fingerprint=fingerprint, has_prewarm=has_prewarm)

    def load_into(self, target: Target, arm: Arm) -> None:
        """Load an arm's data into a database."""
        data = arm.dataset
        if data.pgbench_scale is not None:
            arguments = initialize_command(
                pgbench=self.client.pgbench, conninfo=target.conninfo, scale=data.pgbench_scale
            )
            make_pgbench_tables(target, self.client, arguments, arm.label)
        for file in data.setup_files:
            run_setup_file(target, self.client, self._path_of(file), arm.label, name=file.path)
        settle(target)
        if data.full_statistics:
            with connect(target) as connection:
                catalog.analyze_fully(connection)

    def prepare(
        self, loaded: Cluster, home: Path, arm: Arm, settings: Mapping[str, str], *, has_prewarm: bool
    ) -> LoadedCluster:
        """Bring a copy of loaded data into the state in which an operation finds it; DatasetError when it fails.

        Nothing reads the tables: a sequential scan would tidy up dead rows on its way. What they hold is looked at on
        another copy, which then goes.
        """
        cluster = copy_cluster(loaded, make_home(home))
        with self._running(cluster, arm, settings) as server:
            variables = self._variables_of(arm)
            for file in arm.dataset.prepare:
                path = self._path_of(file)
                run_prepare_file(server, self.client, path, arm.label, name=file.path, variables=variables)
            write_out(server.target)
        return LoadedCluster(
            cluster=cluster, fingerprint=self._look_at_copy(cluster, home, arm, settings), has_prewarm=has_prewarm
        )

    def _look_at_copy(self, cluster: Cluster, home: Path, arm: Arm, settings: Mapping[str, str]) -> Fingerprint:
        copy = copy_cluster(cluster, home / "look")
        try:
            with self._running(copy, arm, settings) as server:
                return gather(server.target)
        finally:
            remove_directory(copy.data_directory)

    @contextmanager
    def _running(self, cluster: Cluster, arm: Arm, settings: Mapping[str, str]) -> Iterator[Server]:
        """A server on it for as long as this lasts; ServerError when it did not end cleanly after all went well."""
        directory = self.directory
        server = Server(cluster, directory.socket_directory(arm.index), directory.server_log(arm.index), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
        if not was_shut_down(cluster):
            raise _not_clean(cluster, arm, server)

    def _path_of(self, file: SetupFile) -> Path:
        """Where psql reads it: where it lies, if psql's user can read it there; else in a copy for that user alone.

        SQL that stands in a study file lies nowhere. DatasetError when a file has changed since the study began, or
        when it includes files that lie beside it and not beside its copy.
        """
        user, place = self.client.user, Path(file.path)
        if file.text is None:
            _check_unchanged(file, place)
            if may_read(user, place):
                return place
        content = place.read_bytes() if file.text is None else file.text.encode()
        if file.text is None and _BESIDE_IT.search(content):
            raise _not_readable(file, user)
        copy = self.directory.root / f"setup-{file.sha256[:12]}.sql"
        write_for(user, copy, content)
        _check_unchanged(file, copy)
        return copy

    def _variables_of(self, arm: Arm) -> Path | None:
        """Return a file that gives psql the variables of an arm; None if there are none."""
        if not arm.dataset.variables:
            return None
        path = self.directory.root / "variables.sql"
        write_for(self.client.user, path, variable_commands(arm.dataset.variables).encode())
        return path


def _check_unchanged(file: SetupFile, place: Path) -> None:
    """Hash it again: a file that was changed while the study waited would be another dataset."""
    try:
        found = file_sha256(place)
    except OSError as error:
        found = error.strerror or str(error)
    if found != file.sha256:
        raise DatasetError(
            "a file that makes the data has changed since the study began",
            slug="dataset-changed",
            where=file.path,
            found=found,
            expected=file.sha256,
            to_do="put the file back as it was, or begin anew",
        )


def _not_readable(file: SetupFile, user: ServerUser) -> DatasetError:
    return DatasetError(
        "a file that makes the data includes files beside it, and psql cannot read it where it lies",
        slug="dataset-not-readable",
        where=file.path,
        found=f"{user.name}, the user that psql runs as, cannot read it",
        expected=f"files and directories that {user.name} can read: with \\ir psql looks for others beside it",
        to_do=f"move them to where {user.name} can read them (o+r, and o+x for every directory above), or name a user "
        "who can with --run-as USER",
    )


def _not_clean(cluster: Cluster, arm: Arm, server: Server) -> ServerError:
    return ServerError(
        f"PostgreSQL {cluster.build.version} did not stop cleanly after loading",
        slug="server-stop",
        where=arm.label,
        found=server.log_words(),
        expected="a cluster from which every start begins at the same bytes",
        to_do="see what the server says, and try again",
    )
