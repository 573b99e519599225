"""Data loaded once for each server and dataset; every replicate begins on a copy of it.

Arms that differ only in settings share a snapshot, so their data, statistics and files are the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pgversus.errors import DatasetError, PgversusError, ServerError, StudyError
from pgversus.host.hashes import file_sha256
from pgversus.lab.progress import Progress
from pgversus.lab.run_directory import RunDirectory
from pgversus.postgres import catalog, dataset
from pgversus.postgres.builds.model import Build
from pgversus.postgres.client import Client
from pgversus.postgres.cluster import Cluster, data_bytes, make_cluster
from pgversus.postgres.dataset import LOADING_SETTINGS
from pgversus.postgres.fingerprint import Fingerprint, gather
from pgversus.postgres.server import Server
from pgversus.postgres.session import Target, connect, uri_target
from pgversus.report.units import size
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting, shaping_settings
from pgversus.workload.pgbench import initialize_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Loaded data and what they are."""

    fingerprint: Fingerprint
    cluster: Cluster | None
    """Stopped and frozen; None for a server that somebody else runs, whose data are where they are."""
    size_bytes: int
    has_prewarm: bool
    """Whether pg_prewarm can read the data in."""


class Snapshots:
    """All snapshots of a study; each is made when it is first asked for."""

    def __init__(
        self,
        directory: RunDirectory,
        client: Client,
        common: Mapping[str, str],
        progress: Progress,
        *,
        loaded_before: frozenset[ServerName] = frozenset(),
        note_loaded: Callable[[RunningServer], None] = lambda _: None,
    ) -> None:
        """common: settings that every server of the study gets. loaded_before: running servers with data of ours.

        note_loaded: takes each running server as soon as it holds data of ours.
        """
        self._directory = directory
        self._client = client
        self._common = common
        self._progress = progress
        self._loaded_before = loaded_before
        self._note_loaded = note_loaded
        self._roots = count(1)
        self._failed: dict[tuple[ServerName, Dataset, tuple[Setting, ...]], PgversusError] = {}
        self._made: dict[tuple[ServerName, Dataset, tuple[Setting, ...]], Snapshot] = {}
        self._loaded_uris: dict[str, Dataset] = {}

    def get(self, arm: Arm, build: Build | None) -> Snapshot:
        """The snapshot of an arm; DatasetError or ServerError when its data cannot be loaded."""
        # Data in somebody's database are there once, whatever the settings of those who look at them.
        runs_files = bool(arm.dataset.setup_files)
        shaping = () if isinstance(arm.server, RunningServer) else shaping_settings(arm.settings, runs_files=runs_files)
        key = (arm.server, arm.dataset, shaping)
        if key in self._failed:
            # It would fail again, for each context that wants it.
            raise self._failed[key]
        if key not in self._made:
            is_there = arm.dataset.is_empty or arm.server in self._loaded_before
            what = "looking at" if is_there else "loading"
            self._progress.say(f"{what} {arm.label}")
            try:
                self._made[key] = self._make(arm, build, shaping)
            except (DatasetError, ServerError) as error:
                self._failed[key] = error
                raise
        return self._made[key]

    def _make(self, arm: Arm, build: Build | None, shaping: Sequence[Setting]) -> Snapshot:
        if isinstance(arm.server, RunningServer):
            return self._on_running_server(arm, arm.server)
        assert build is not None  # noqa: S101 - only running servers have no build
        return self._on_new_cluster(arm, build, shaping)

    def _on_new_cluster(self, arm: Arm, build: Build, shaping: Sequence[Setting]) -> Snapshot:
        root = self._directory.snapshot_directory(next(self._roots))
        cluster = make_cluster(build, root, self._directory.user)
        settings = {**self._common, **{setting.name: setting.value for setting in shaping}, **LOADING_SETTINGS}
        server = Server(
            cluster, self._directory.socket_directory(arm.index), self._directory.server_log(arm.index), settings
        )
        server.start()
        try:
            self._load(server.target, arm)
            fingerprint = gather(server.target)
            with connect(server.target) as connection:
                has_prewarm = catalog.has_prewarm(connection)
        finally:
            server.stop()
        return Snapshot(
            fingerprint=fingerprint, cluster=cluster, size_bytes=data_bytes(cluster), has_prewarm=has_prewarm
        )

    def _on_running_server(self, arm: Arm, server: RunningServer) -> Snapshot:
        loaded = self._loaded_uris.setdefault(server.uri, arm.dataset)
        if loaded != arm.dataset:
            raise StudyError(
                "a running server can hold the data of one dataset only",
                slug="study-datasets-of-running-server",
                where=arm.label,
                found="two datasets",
                expected="one, since its data cannot be put back",
                to_do="give each dataset a database of its own, and name both by their URIs",
            )
        target = uri_target(server.uri, arm.settings)
        # What an earlier run of this study has loaded is taken as it is: nothing can be put back.
        if not (arm.dataset.is_empty or server in self._loaded_before):
            if arm.dataset.pgbench_scale is not None:
                _refuse_to_drop_tables(target, arm.label)
            self._load(target, arm)
            self._note_loaded(server)
        fingerprint = self._look_at(target, arm.label)
        return Snapshot(fingerprint=fingerprint, cluster=None, size_bytes=0, has_prewarm=False)

    def _load(self, target: Target, arm: Arm) -> None:
        data, client = arm.dataset, self._client
        if data.pgbench_scale is not None:
            arguments = initialize_command(pgbench=client.pgbench, conninfo=target.conninfo, scale=data.pgbench_scale)
            dataset.make_pgbench_tables(target, arguments, arm.label)
        for file in data.setup_files:
            dataset.run_setup_file(target, client, self._path_of(file), arm.label, name=file.path)
        dataset.settle(target)

    def _look_at(self, target: Target, label: str) -> Fingerprint:
        # Somebody's database may be of any size, and nobody has asked for all of it to be read.
        with connect(target) as connection:
            found = size(catalog.database_bytes(connection))
        self._progress.say(f"reading and hashing every row on {label}, a database of {found}")
        return gather(target)

    def _path_of(self, file: SetupFile) -> Path:
        """Where psql finds it: SQL that stands in a study file is written to a file of ours."""
        if file.text is None:
            _refuse_changed(file)
            return Path(file.path)
        path = self._directory.root / f"setup-{file.sha256[:12]}.sql"
        path.write_text(file.text, encoding="utf-8")
        return path


def _refuse_changed(file: SetupFile) -> None:
    """Hash it again: a file that was changed while the study waited would be another dataset."""
    try:
        found = file_sha256(Path(file.path))
    except OSError as error:
        found = error.strerror or str(error)
    if found != file.sha256:
        raise DatasetError(
            "a setup file has changed since the study began",
            slug="dataset-changed",
            where=file.path,
            found=found,
            expected=file.sha256,
            to_do="put the file back as it was, or begin anew",
        )


def _refuse_to_drop_tables(target: Target, label: str) -> None:
    """pgbench -i drops its tables first; in somebody's database they may be somebody's."""
    with connect(target) as connection:
        if tables := catalog.pgbench_tables(connection):
            raise DatasetError(
                "this database has pgbench's tables already, and -i would drop them",
                slug="dataset-would-drop",
                where=label,
                found=", ".join(tables),
                expected="no table of pgbench's",
                to_do="leave -i out to use them as they are, or drop them yourself",
            )
