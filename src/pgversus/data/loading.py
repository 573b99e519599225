"""Loading data: pgbench's tables, the user's SQL files, preparations, on a new cluster or on a copy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pgversus.builds.model import Build
from pgversus.data.changed_files import check_unchanged
from pgversus.data.data_directories import dump_of
from pgversus.data.dumped_database import (
    ClusterLocale,
    DumpedDatabase,
    apply_settings,
    cluster_locale,
    installed_locales,
    read_database,
)
from pgversus.data.restoring import restore
from pgversus.errors import DatasetError, ServerError
from pgversus.host.commands import Finished, may_read, run
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import write_for
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres import catalog
from pgversus.postgres.client import Client, program_environment
from pgversus.postgres.cluster import Cluster, copy_cluster, make_home, remove_directory, was_shut_down
from pgversus.postgres.fingerprint import Fingerprint, gather
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, connect
from pgversus.records.preparation import RestoreProblem
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset, Dump, DumpFormat, SetupFile, Statistics
from pgversus.text.sql import quoted
from pgversus.workload.pgbench import initialize_command, with_missing_tables

# Loading is not measured, so it may be fast: no WAL for new tables, no waiting for the disk, no WAL files recycled.
# The next start reverts these settings; a checkpoint and a clean stop leave the same bytes.
LOADING_SETTINGS = {
    "fsync": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "wal_recycle": "off",
    "min_wal_size": "32MB",
    "autovacuum": "off",
}


def variable_commands(variables: Sequence[tuple[str, str]]) -> str:
    """Return the commands that set psql's variables, which must not be on a command line that every user can read."""
    return "".join(f"\\set {name} {quoted(value)}\n" for name, value in variables)


def settle(target: Target, *, is_restored: bool) -> None:
    """Run VACUUM (ANALYZE) and CHECKPOINT, so that all arms begin with equal visibility, statistics and WAL state.

    is_restored: whether the data come from a dump. Their rows are frozen as well, like those of a server that has run
    for some time.
    """
    with connect(target) as connection:
        catalog.vacuum_analyze(connection, freezes=is_restored)
        if target.is_ours:
            if catalog.can_prewarm(connection):
                catalog.install_prewarm(connection)
            catalog.checkpoint(connection)


def _failed(what: str, where: str, label: str, finished: Finished, client: Client) -> DatasetError:
    words = finished.stderr.strip() or f"exit code {finished.exit_code}"
    return DatasetError(
        what,
        slug="dataset-load-failed",
        where=f"{where}, on {label}",
        found=words,
        expected="loading without errors on every arm",
        to_do=client.user.run_as_hint(words)
        or with_missing_tables(words, "load only SQL that runs on all compared servers"),
    )


_BESIDE_IT = re.compile(rb"\\(?:ir|include_relative)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCluster:
    """A stopped cluster with data and their fingerprint."""

    cluster: Cluster
    fingerprint: Fingerprint
    has_prewarm: bool
    not_restored: tuple[RestoreProblem, ...] = ()
    """Parts of a dump that the server rejected."""


class Loading:
    """Loads and prepares the data of a study."""

    def __init__(
        self,
        directory: RunDirectory,
        client: Client,
        builds: Iterable[Build | None] = (),
        settings_of_arms: frozenset[str] = frozenset(),
    ) -> None:
        """builds: builds of the arms, one of which starts on a data directory that is restored.

        settings_of_arms: names of the settings that the arms have; those of a dumped database do not replace them.
        """
        self.directory = directory
        self.client = client
        self._builds = tuple(builds)
        self._dumps: dict[Dump, Dump] = {}
        self._databases: dict[Dump, DumpedDatabase] = {}
        self.settings_of_arms = settings_of_arms

    def load(self, cluster: Cluster, arm: Arm, settings: Mapping[str, str]) -> LoadedCluster:
        """Load an arm's data into a new cluster; DatasetError or ServerError if that fails.

        settings: settings of its server, including those that speed up loading.
        """
        with self._running(cluster, arm, settings) as server:
            not_restored = self.load_into(server.target, arm)
            fingerprint = gather(server.target)
            with connect(server.target) as connection:
                has_prewarm = catalog.has_prewarm(connection)
                if arm.workload.is_of_application:
                    catalog.create_application_role(connection)
        _check_tablespaces(cluster, arm)
        return LoadedCluster(
            cluster=cluster, fingerprint=fingerprint, has_prewarm=has_prewarm, not_restored=not_restored
        )

    def load_into(self, target: Target, arm: Arm) -> tuple[RestoreProblem, ...]:
        """Load an arm's data into a database; return the parts of a dump that the server rejected.

        DatasetError with the program's message if loading fails.
        """
        data, client = arm.dataset, self.client
        not_restored: list[RestoreProblem] = []
        if data.restore is not None:
            not_restored += restore(self._dump_of(data.restore), target, client, arm.label)
            not_restored += apply_settings(self._database_of(data.restore).settings, target, self.settings_of_arms)
            if (problem := self.locale_of(data).problem) is not None:
                not_restored.append(problem)
        if data.pgbench_scale is not None:
            arguments = initialize_command(pgbench=client.pgbench, conninfo=target.conninfo, scale=data.pgbench_scale)
            finished = self._run(arguments, client.environment(target))
            if not finished.succeeded:
                raise _failed("pgbench could not create its tables", "pgbench -i", arm.label, finished, client)
        for file in data.setup_files:
            self._run_file("setup", file, target, client.environment(target), arm)
        settle(target, is_restored=data.restore is not None)
        if data.full_statistics:
            with connect(target) as connection:
                catalog.analyze_fully(connection)
        return tuple(not_restored)

    def locale_of(self, data: Dataset) -> ClusterLocale:
        """Return the locale of a cluster for these data: that of a dumped database if this host has it, otherwise C."""
        if data.restore is None:
            return ClusterLocale(options=())
        return cluster_locale(self._database_of(data.restore), installed_locales())

    def _database_of(self, source: Dump) -> DumpedDatabase:
        if source not in self._databases:
            self._databases[source] = read_database(self._dump_of(source), self.client)
        return self._databases[source]

    def _dump_of(self, source: Dump) -> Dump:
        """Return the dump itself, or a dump of the data directory, which is made once per run."""
        if source.format is not DumpFormat.DATA_DIRECTORY:
            return source
        if source not in self._dumps:
            self._dumps[source] = dump_of(source, self._builds, self.client, self.directory)
        return self._dumps[source]

    def derive(self, loaded: LoadedCluster, home: Path, arm: Arm, settings: Mapping[str, str]) -> LoadedCluster:
        """Prepare a copy of loaded data for an operation, or remove its statistics; DatasetError if that fails.

        The tables are not read here, since a sequential scan would prune dead rows. The fingerprint of prepared data is
        read from another copy, which is then removed.
        """
        data = arm.dataset
        cluster = copy_cluster(loaded.cluster, make_home(home))
        with self._running(cluster, arm, settings) as server:
            variables = self._variables_of(arm)
            # Programs that a file starts have the same environment as those of an operation, with PGDATA.
            environment = program_environment(self.client, server.target, cluster.data_directory)
            for file in data.prepare:
                self._run_file("prepare", file, server.target, environment, arm, variables)
            # Not VACUUM: the prepared state remains, including everything that VACUUM would clean up.
            with connect(server.target) as connection:
                if data.statistics is not Statistics.ALL:
                    catalog.remove_statistics(connection, only_extended=data.statistics is Statistics.KEPT)
                catalog.checkpoint(connection)
        _check_tablespaces(cluster, arm)
        fingerprint = self._look_at_copy(cluster, home, arm, settings) if data.prepare else loaded.fingerprint
        return replace(loaded, cluster=cluster, fingerprint=fingerprint)

    def _look_at_copy(self, cluster: Cluster, home: Path, arm: Arm, settings: Mapping[str, str]) -> Fingerprint:
        copy = copy_cluster(cluster, home / "look")
        try:
            with self._running(copy, arm, settings) as server:
                return gather(server.target)
        finally:
            remove_directory(copy.data_directory)

    @contextmanager
    def _running(self, cluster: Cluster, arm: Arm, settings: Mapping[str, str]) -> Iterator[Server]:
        """Run a server on the cluster within the block; ServerError if it did not stop cleanly after a success."""
        directory = self.directory
        server = Server(cluster, directory.socket_directory(arm.index), directory.server_log(arm.index), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
        if not was_shut_down(cluster):
            raise _not_clean(cluster, arm, server)

    def _run_file(
        self,
        kind: str,
        file: SetupFile,
        target: Target,
        environment: Mapping[str, str],
        arm: Arm,
        variables: Path | None = None,
    ) -> None:
        """Run an SQL file with psql, stopping at the first error; DatasetError with psql's message if there is one.

        kind: setup or prepare. variables: a file with variable_commands().
        """
        path = self._path_of(file)
        arguments = [str(self.client.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        arguments += ["-f", str(variables)] if variables is not None else []
        arguments += ["-f", str(path), "-d", target.conninfo]
        finished = self._run(arguments, environment)
        if not finished.succeeded:
            # With the name that the user knows.
            named = replace(finished, stderr=finished.stderr.replace(str(path), file.path))
            raise _failed(f"the {kind} file failed", file.path, arm.label, named, self.client)

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Finished:
        return run(arguments, environment=environment, user=self.client.user, ends_with_us=True, is_abridged=True)

    def _path_of(self, file: SetupFile) -> Path:
        """Return the path that psql reads: the file itself or, if psql's user cannot read it, a copy for that user.

        SQL from a study file is always written to such a file. DatasetError if the file has changed since the study
        began, or if it must be copied but includes files in its directory.
        """
        user, place = self.client.user, Path(file.path)
        if file.text is None:
            check_unchanged(file.path, file.sha256)
            if may_read(user, place):
                return place
        content = place.read_bytes() if file.text is None else file.text.encode()
        if file.text is None and _BESIDE_IT.search(content):
            raise _not_readable(file, user)
        copy = self.directory.root / f"setup-{file.sha256[:12]}.sql"
        write_for(user, copy, content)
        check_unchanged(file.path, file.sha256, place=copy)
        return copy

    def _variables_of(self, arm: Arm) -> Path | None:
        """Return a file that sets the psql variables of an arm; None without any."""
        if not arm.dataset.variables:
            return None
        path = self.directory.root / "variables.sql"
        write_for(self.client.user, path, variable_commands(arm.dataset.variables).encode())
        return path


def _not_readable(file: SetupFile, user: ServerUser) -> DatasetError:
    return DatasetError(
        "a file of the dataset includes other files from its directory, which psql cannot read",
        slug="dataset-not-readable",
        where=file.path,
        found=f'psql runs as user "{user.name}", who cannot read that directory',
        expected="files and directories that this user can read: \\ir is relative to the directory of the file",
        to_do="move them to where this user can read them (o+r, and o+x for all parent directories), or use "
        "--run-as USER to specify a user who can read them",
    )


def _check_tablespaces(cluster: Cluster, arm: Arm) -> None:
    """Raise DatasetError for tablespaces outside of the cluster, which all of its copies would share."""
    links = [path for path in (cluster.data_directory / "pg_tblspc").iterdir() if path.is_symlink()]
    if links:
        raise DatasetError(
            "the data is in a tablespace, which copies of the data directory would share",
            slug="dataset-tablespace",
            where=arm.label,
            found=", ".join(str(path.readlink()) for path in links),
            expected="all data in the default tablespace",
            to_do="remove CREATE TABLESPACE from the file, and that directory; a dump without tablespaces: pg_dump "
            "--no-tablespaces",
        )


def _not_clean(cluster: Cluster, arm: Arm, server: Server) -> ServerError:
    return ServerError(
        f"PostgreSQL {cluster.build.version} did not stop cleanly after loading",
        slug="server-stop",
        where=arm.label,
        found=server.log_text(),
        expected="a cleanly stopped cluster, so that every start begins with the same bytes",
        to_do="see the server's messages above, and try again",
    )
