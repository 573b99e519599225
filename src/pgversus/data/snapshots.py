"""Snapshots: data loaded once for each server and dataset; every block begins on a copy.

Arms that differ only in settings share a snapshot, so their data, statistics and files are the same bytes. A snapshot
of an earlier run with equal inputs is taken from the cache. Data prepared for an operation, and data without
statistics, derive from loaded data.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from pgversus.builds.model import Build
from pgversus.data.cache_quota import fit_into_quota, reduce_to
from pgversus.data.loading import LOADING_SETTINGS, LoadedCluster, Loading
from pgversus.data.snapshot_cache import keep, take
from pgversus.data.snapshot_key import SnapshotKey, snapshot_key
from pgversus.engine.progress import Progress
from pgversus.errors import DatasetError, PgversusError, ServerError, StudyError
from pgversus.host.directories import Cache
from pgversus.host.files import tree_bytes
from pgversus.host.full_disk import is_full
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres import catalog
from pgversus.postgres.cluster import Cluster, make_cluster, remove_directory
from pgversus.postgres.fingerprint import Fingerprint, check_equal_data, gather
from pgversus.postgres.session import Target, connect, uri_target
from pgversus.records.preparation import Preparation, RestoreProblem
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset, DumpFormat
from pgversus.study.needs import SnapshotName
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting, shaping_settings
from pgversus.study.study import Context
from pgversus.text.units import size


class SnapshotCache:
    """The snapshot cache as used by one run."""

    def __init__(self, cache: Cache, directory: RunDirectory, progress: Progress, most_bytes: int) -> None:
        """most_bytes: total size limit of cached snapshots."""
        self._cache = cache
        self._directory = directory
        self._progress = progress
        self._most_bytes = most_bytes

    def take(self, recipe: SnapshotKey, home: Path, build: Build) -> LoadedCluster | None:
        """Take the cached snapshot of an earlier run to `home`, which is created; None if it is not cached.

        HostError if a cached snapshot cannot be taken.
        """
        record = take(self._cache, recipe, home, self._progress.say)
        if record is None:
            return None
        cluster = Cluster(build=build, data_directory=home / "data", user=self._directory.user)
        return LoadedCluster(
            cluster=cluster,
            fingerprint=record.fingerprint,
            has_prewarm=record.has_prewarm,
            not_restored=record.not_restored,
        )

    def keep(self, recipe: SnapshotKey, made: LoadedCluster) -> None:
        """Store a new snapshot for later runs, if there is space for it."""
        if self._most_bytes == 0:
            # The user has disabled the cache.
            return
        data = made.cluster.data_directory
        needed = tree_bytes(data)
        try:
            if not fit_into_quota(needed, self._cache, self._most_bytes):
                self._report_not_cached(f"the cache has no space for {size(needed)}")
                return
            # False if another run has stored it first, which is as good.
            keep(
                self._cache,
                recipe,
                data,
                self._directory.root / "to-be-kept",
                size_bytes=needed,
                fingerprint=made.fingerprint,
                has_prewarm=made.has_prewarm,
                not_restored=made.not_restored,
            )
        except (OSError, ValueError, PgversusError) as error:
            self._report_not_cached(_error_text(error))

    def trim(self) -> None:
        """Reduce the cache to its size limit, which may have been lowered since the snapshots were stored."""
        try:
            reduce_to(self._most_bytes, self._cache)
        except OSError as error:
            self._progress.say(f"could not remove cached snapshots: {error.strerror or error}")

    def _report_not_cached(self, reason: str) -> None:
        self._progress.say(f"the loaded data could not be added to the cache: {reason}")


def _error_text(error: OSError | ValueError | PgversusError) -> str:
    if isinstance(error, PgversusError):
        return f"{error.what} ({error.found})"
    if isinstance(error, OSError) and is_full(error):
        return "the disk is full"
    return str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Loaded data and their fingerprint."""

    fingerprint: Fingerprint
    cluster: Cluster | None
    """Stopped and never changed; None for an external server, whose data cannot be copied."""
    size_bytes: int
    has_prewarm: bool
    """Whether pg_prewarm is installed in the data."""
    not_restored: tuple[RestoreProblem, ...] = ()
    """Parts of a dump that its server rejected."""


class Snapshots:
    """All snapshots of a study; each is created when it is first requested."""

    def __init__(
        self,
        directory: RunDirectory,
        loading: Loading,
        kept: SnapshotCache,
        common: Mapping[str, str],
        progress: Progress,
        *,
        loaded_before: frozenset[ServerName] = frozenset(),
        note_loaded: Callable[[RunningServer], None] = lambda _: None,
    ) -> None:
        """common: settings of every server of the study.

        loaded_before: running servers that already hold the data of the study.
        note_loaded: receives each running server as soon as the data are loaded on it.
        """
        self._directory = directory
        self._loading = loading
        self._kept = kept
        self._common = common
        self._progress = progress
        self._loaded_before = loaded_before
        self._note_loaded = note_loaded
        self._homes = count(1)
        self._failed: dict[SnapshotName, PgversusError] = {}
        self._made: dict[SnapshotName, Snapshot] = {}
        self._loaded_uris = dict[str, Dataset]()

    def get(self, arm: Arm, build: Build | None) -> Snapshot:
        """Return the snapshot of an arm; DatasetError or ServerError if its data cannot be loaded."""
        key = _key_of(arm)
        if key in self._failed:
            # It would fail again for each context that needs it.
            raise self._failed[key]
        if key not in self._made:
            try:
                self._made[key] = self._snapshot(arm, build, key[2])
            except (DatasetError, ServerError) as error:
                self._failed[key] = error
                raise
        return self._made[key]

    def keep_only(self, arms: Sequence[Arm]) -> int:
        """Remove the snapshots that none of these arms needs; return the size of the rest in bytes."""
        needed = {_key_of(one) for arm in arms for one in (arm, replace(arm, dataset=arm.dataset.loaded))}
        for key, snapshot in list(self._made.items()):
            # Snapshots of external servers are kept, so that these are neither loaded nor inspected again.
            if snapshot.cluster is not None and key not in needed:
                del self._made[key]
                remove_directory(snapshot.cluster.data_directory.parent)
        return sum(snapshot.size_bytes for snapshot in self._made.values())

    def _snapshot(self, arm: Arm, build: Build | None, shaping: Sequence[Setting]) -> Snapshot:
        if isinstance(arm.server, RunningServer):
            self._say_what_is_done(arm)
            return self._on_running_server(arm, arm.server)
        assert build is not None  # noqa: S101 - only running servers have no build
        made = self._taken_or_made(arm, build, shaping)
        return Snapshot(
            fingerprint=made.fingerprint,
            cluster=made.cluster,
            size_bytes=tree_bytes(made.cluster.data_directory),
            has_prewarm=made.has_prewarm,
            not_restored=made.not_restored,
        )

    def _taken_or_made(self, arm: Arm, build: Build, shaping: Sequence[Setting]) -> LoadedCluster:
        settings = {**self._common, **{setting.name: setting.value for setting in shaping}, **LOADING_SETTINGS}
        recipe = snapshot_key(
            arm.dataset,
            build,
            self._loading.client,
            settings,
            locale=self._locale_in_key(arm.dataset),
            settings_of_arms=self._loading.settings_of_arms,
            is_of_application=arm.workload.is_of_application,
        )
        home = self._directory.snapshot_directory(next(self._homes))
        if recipe is not None and (taken := self._kept.take(recipe, home, build)) is not None:
            self._progress.say(f"{arm.label} starts from a cached snapshot")
            return taken
        try:
            made = self._make(arm, build, home, settings)
        except BaseException:
            # A partial snapshot is useless, and others may need its space.
            remove_directory(home)
            raise
        if recipe is not None:
            self._kept.keep(recipe, made)
        return made

    def _make(self, arm: Arm, build: Build, home: Path, settings: Mapping[str, str]) -> LoadedCluster:
        if not arm.dataset.is_derived:
            self._say_what_is_done(arm)
            locale = self._loading.locale_of(arm.dataset).options
            return self._loading.load(make_cluster(build, home, self._directory.user, locale), arm, settings)
        loaded = self.get(replace(arm, dataset=arm.dataset.loaded), build)
        assert loaded.cluster is not None  # noqa: S101 - only running servers have none
        self._progress.say(f"preparing the data of {arm.label}")
        frozen = LoadedCluster(
            cluster=loaded.cluster,
            fingerprint=loaded.fingerprint,
            has_prewarm=loaded.has_prewarm,
            not_restored=loaded.not_restored,
        )
        return self._loading.derive(frozen, home, arm, settings)

    def _locale_in_key(self, data: Dataset) -> tuple[str, ...]:
        """Return the options for the locale; none for a data directory, which determines it and takes time to dump."""
        is_dumped_here = data.restore is not None and data.restore.format is DumpFormat.DATA_DIRECTORY
        return () if is_dumped_here else self._loading.locale_of(data).options

    def _say_what_is_done(self, arm: Arm) -> None:
        is_there = arm.dataset.is_empty or arm.server in self._loaded_before
        self._progress.say(f"{'inspecting' if is_there else 'loading'} the data of {arm.label}")

    def _on_running_server(self, arm: Arm, server: RunningServer) -> Snapshot:
        if arm.dataset.prepare:
            raise _nothing_to_copy(arm)
        loaded = self._loaded_uris.setdefault(server.uri, arm.dataset)
        if loaded != arm.dataset:
            raise StudyError(
                "an external server can hold only one dataset",
                slug="study-datasets-of-running-server",
                where=arm.label,
                found="two datasets",
                expected="one dataset, since its data cannot be restored",
                to_do="use a separate database for each dataset, and specify both by their URIs",
            )
        target = uri_target(server.uri, arm.settings)
        # Data loaded by an earlier run of this study are used unchanged, since they cannot be restored.
        if not (arm.dataset.is_empty or server in self._loaded_before):
            if arm.dataset.pgbench_scale is not None:
                _check_existing_tables(target, arm.label)
            self._loading.load_into(target, arm)
            self._note_loaded(server)
        fingerprint = self._look_at(target, arm.label)
        return Snapshot(fingerprint=fingerprint, cluster=None, size_bytes=0, has_prewarm=False)

    def _look_at(self, target: Target, label: str) -> Fingerprint:
        # Reported with its size: an external database may be large, and the user may not expect a full read.
        with connect(target) as connection:
            found = size(catalog.database_bytes(connection))
        self._progress.say(f"reading and hashing every row on {label}, a database of {found}")
        return gather(target)


def _key_of(arm: Arm) -> SnapshotName:
    """Return the key of an arm's snapshot."""
    # An external database holds its data once, regardless of the settings of an arm.
    runs_files = arm.dataset.runs_files
    shaping = () if isinstance(arm.server, RunningServer) else shaping_settings(arm.settings, runs_files=runs_files)
    return arm.server, arm.dataset, shaping


def _check_existing_tables(target: Target, label: str) -> None:
    """Raise DatasetError if pgbench's tables exist: `pgbench -i` would drop them, and they may be a user's data."""
    with connect(target) as connection:
        if tables := catalog.pgbench_tables(connection):
            raise DatasetError(
                "this database already has pgbench's tables, and -i would drop them",
                slug="dataset-would-drop",
                where=label,
                found=", ".join(tables),
                expected="no pgbench tables",
                to_do="omit -i to use the existing tables, or drop them yourself",
            )


def _nothing_to_copy(arm: Arm) -> StudyError:
    return StudyError(
        "the data of an external server cannot be prepared for an operation",
        slug="study-prepared-running-server",
        where=arm.label,
        found="a server that pgversus does not start",
        expected="a server that pgversus starts on a fresh copy of the prepared data each time",
        to_do="specify a version or a bin directory",
    )


def check_equal(arms: Sequence[Arm], snapshots: Sequence[Snapshot]) -> None:
    """Raise DatasetError if arms with the same dataset hold different rows. Compared datasets may differ."""
    like = [
        (arm.label, snapshot.fingerprint)
        for arm, snapshot in zip(arms, snapshots, strict=True)
        if arm.dataset.rows == arms[0].dataset.rows
    ]
    check_equal_data([label for label, _ in like], [fingerprint for _, fingerprint in like])


def check_same_data(context: Context, known: Preparation, snapshots: Sequence[Snapshot]) -> None:
    """Raise DatasetError if the data differs from those of the stored preparation, which would then be invalid."""
    for arm, facts, snapshot in zip(context.comparison.arms, known.arms, snapshots, strict=True):
        if facts.data != data_hash(snapshot.fingerprint):
            raise DatasetError(
                "the data differs from that of the earlier blocks",
                slug="dataset-not-the-same",
                where=context.located(arm.label),
                found="rows that differ from those loaded when the study began",
                expected="the same rows after each load",
                to_do="do not use now() or an unseeded random() in setup files; start again with --new",
            )


def data_hash(fingerprint: Fingerprint) -> str:
    """Return the SHA-256 over the rows of all tables."""
    text = "\n".join(f"{name} {table.rows} {table.digest}" for name, table in sorted(fingerprint.tables.items()))
    return hashlib.sha256(text.encode()).hexdigest()
