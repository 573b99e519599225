"""Snapshots: every copy is identical, including dead rows, in this run and the next; partial ones are never used."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from pgversus.builds.model import Build
from pgversus.data.loading import Loading
from pgversus.data.snapshot_cache import cached_snapshots
from pgversus.data.snapshots import Snapshot, SnapshotCache, Snapshots
from pgversus.engine.progress import Progress
from pgversus.errors import DatasetError, ExitCode
from pgversus.host.directories import Cache, make_directory
from pgversus.host.files import manifest
from pgversus.host.identity import server_user
from pgversus.host.run_directory import RunDirectory, run_directory
from pgversus.postgres.client import fixed_client
from pgversus.postgres.cluster import copy_cluster, remove_directory
from pgversus.postgres.server import Server
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset, SetupFile
from tests.builders import comparison
from tests.live.conftest import QUICK, CommandLine, provided

pytestmark = pytest.mark.own_snapshots

USER = server_user()


class Said(Progress):
    """Progress that records its messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@dataclass
class Run:
    """A run of pgversus, reduced to its snapshots."""

    directory: RunDirectory
    snapshots: Snapshots
    said: list[str]


@pytest.fixture(scope="module")
def build() -> Build:
    return provided("17.8")


@pytest.fixture
def cache() -> Iterator[Cache]:
    """A cache in a directory open to all users, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="pgversus-test-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        cache = Cache(root=Path(name))
        make_directory(cache.runs, 0o755)
        yield cache


@contextmanager
def a_run(cache: Cache) -> Iterator[Run]:
    progress = Said()
    with run_directory(cache, USER) as directory:
        snapshot_cache = SnapshotCache(cache, directory, progress, 10**10)
        loading = Loading(directory, fixed_client(USER))
        yield Run(directory, Snapshots(directory, loading, snapshot_cache, {}, progress), progress.lines)


def sql(text: str) -> SetupFile:
    return SetupFile(path="prepare", sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def arm(*prepare: str, share: str = "7") -> Arm:
    """Return an arm with pgbench's tables, prepared by these statements."""
    dataset = Dataset(pgbench_scale=1)
    if prepare:
        dataset = replace(dataset, prepare=tuple(map(sql, prepare)), variables=(("share", share),))
    return replace(comparison().arms[0], dataset=dataset)


DIRTY = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 10 < :share;"


def contents_of_copies(snapshot: Snapshot, directory: Path, count: int) -> set[frozenset[tuple[str, str | None]]]:
    """Return the names and hashes of the files of copies: one set if all copies are equal."""
    assert snapshot.cluster is not None
    found = set()
    for number in range(count):
        copy = copy_cluster(snapshot.cluster, directory / f"copy-{number}")
        found.add(frozenset((one.path, one.sha256) for one in manifest(copy.data_directory)))
        remove_directory(copy.data_directory)
    return found


def what_vacuum_finds(snapshot: Snapshot, directory: RunDirectory) -> tuple[int, int, str]:
    """Return counted pages and dead rows, and VACUUM's report of removed rows, from a copy."""
    assert snapshot.cluster is not None
    copy = copy_cluster(snapshot.cluster, directory.copy_directory(1, 0))
    server = Server(copy, directory.socket_directory(0), directory.server_log(0), {"autovacuum": "off"})
    server.start()
    try:
        with psycopg.connect(server.target.conninfo, autocommit=True) as connection:
            said: list[str] = []
            connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
            counted = connection.execute(
                "SELECT (pg_relation_size('pgbench_accounts') / 8192)::int, n_dead_tup::int"
                " FROM pg_stat_all_tables WHERE relname = 'pgbench_accounts'"
            ).fetchone()
            connection.execute("VACUUM (VERBOSE) pgbench_accounts")
    finally:
        server.stop()
        remove_directory(copy.data_directory)
    assert counted is not None
    (removed,) = (line for line in "\n".join(said).splitlines() if line.startswith("tuples: "))
    return (*counted, removed)


def test_ten_copies_have_identical_bytes_and_dead_rows_also_in_the_next_run(cache: Cache, build: Build) -> None:
    found = []
    for copies in (7, 3):
        with a_run(cache) as run:
            snapshot = run.snapshots.get(arm(DIRTY), build)
            (one,) = contents_of_copies(snapshot, run.directory.root, copies)
            found.append((one, what_vacuum_finds(snapshot, run.directory), snapshot.fingerprint, run.said))
        assert list(cache.runs.iterdir()) == []
    (first, dead, fingerprint, made), (second, still_dead, same_fingerprint, taken) = found
    assert (first, dead, fingerprint) == (second, still_dead, same_fingerprint)
    # The rows of scale 1 fill 1640 pages; seven of ten rows exist twice.
    assert dead[0] > 1.6 * 1640
    assert dead[1] == 70_000
    assert dead[2].startswith("tuples: 70000 removed, 100000 remain")
    assert made == ["loading the data of 16.12", "preparing the data of 16.12"]
    assert taken == ["16.12 starts from a cached snapshot"]
    assert fingerprint.tables["public.pgbench_accounts"].rows == 100_000


def test_data_is_loaded_once_for_all_snapshots_derived_from_it(cache: Cache, build: Build) -> None:
    with a_run(cache) as run:
        pages = [
            what_vacuum_finds(run.snapshots.get(arm(DIRTY, share=share), build), run.directory)[0] for share in "37"
        ]
        assert run.said.count("loading the data of 16.12") == 1
        assert pages[0] < pages[1]
        assert len(cached_snapshots(cache)) == 3
    assert all(one.gives_room for one in cached_snapshots(cache))


def test_data_needed_only_by_finished_contexts_is_removed_and_other_data_is_kept(cache: Cache, build: Build) -> None:
    with a_run(cache) as run:
        ended, following = (arm(DIRTY, share=share) for share in "37")
        first = run.snapshots.get(ended, build)
        loaded = run.snapshots.get(replace(ended, dataset=ended.dataset.loaded), build)
        assert run.snapshots.keep_only([ended]) == first.size_bytes + loaded.size_bytes
        assert run.snapshots.keep_only([following]) == loaded.size_bytes
        assert len(list(run.directory.root.glob("snapshot-*"))) == 1
        run.snapshots.get(following, build)
        run.snapshots.get(ended, build)
        assert run.said.count("loading the data of 16.12") == 1
        # It is in the cache and need not be created again.
        assert run.said[-1] == "16.12 starts from a cached snapshot"


def test_failing_preparation_is_reported_with_psqls_message_and_leaves_nothing(cache: Cache, build: Build) -> None:
    with a_run(cache) as run:
        for _ in range(2):
            with pytest.raises(DatasetError) as caught:
                run.snapshots.get(arm(DIRTY, "DELETE FROM nowhere;"), build)
        error = caught.value
        assert (error.slug, error.exit_code) == ("dataset-load-failed", ExitCode.USAGE)
        assert 'ERROR:  relation "nowhere" does not exist' in error.found
        assert error.where == "prepare, on 16.12"
        assert len(list(run.directory.root.glob("snapshot-*"))) == len(cached_snapshots(cache)) == 1
        assert run.said.count("preparing the data of 16.12") == 1


def test_a_file_changed_since_the_start_of_the_study_prepares_nothing(
    cache: Cache, build: Build, tmp_path: Path
) -> None:
    file = tmp_path / "dirty.sql"
    file.write_text("SELECT 2;")
    requested = arm("SELECT 1;")
    prepare = (replace(requested.dataset.prepare[0], path=str(file), text=None),)
    with a_run(cache) as run, pytest.raises(DatasetError) as caught:
        run.snapshots.get(replace(requested, dataset=replace(requested.dataset, prepare=prepare)), build)
    assert (caught.value.slug, caught.value.where) == ("dataset-changed", str(file))


@pytest.mark.long
def test_data_loaded_by_one_comparison_is_reused_by_the_next(command_line: CommandLine) -> None:
    arguments = ("compare", "17.8", "17.8", "-i", "-S", *QUICK)
    ended = [command_line.run(*arguments, "--results", str(number)) for number in range(2)]
    assert [("loading" in one.stderr, one.code) for one in ended] == [(True, 0), (False, 0)], ended[1].stderr
    assert "data copied" in command_line.run("report", "1", "--verbose").stdout
    listed = command_line.run("cache")
    assert "pgbench tables at scale 1" in listed.stdout
    assert "1 snapshot" in listed.stdout


@pytest.mark.long
def test_a_copy_interrupted_by_kill_9_is_not_used_by_the_next_run(command_line: CommandLine) -> None:
    arguments = ("compare", "17.8", "17.8", "-i", "-s", "20", "-S", *QUICK)
    process = command_line.start(*arguments)
    command_line.wait_for(lambda: list(command_line.runs.glob("*/copies-*/arm-*.part")))
    process.kill()
    process.communicate(timeout=60)
    command_line.wait_for(lambda: not command_line.leftovers(), seconds=20)
    (kept,) = cached_snapshots(Cache(root=command_line.cache))
    record = kept.record()
    assert record is not None
    assert manifest(kept.directory / "data") == record.files
    ended = command_line.run(*arguments)
    assert ended.code == 0, ended.stderr
    assert "starts from a cached snapshot" in ended.stderr
    assert manifest(kept.directory / "data") == record.files


# On a file system of 100 MB, mounted only for this program: space for one empty cluster and its copy, no more.
FULL = """
import sys
from pathlib import Path
from pgversus.errors import HostError
from pgversus.host.identity import server_user
from pgversus.builds.model import Build
from pgversus.postgres.cluster import copy_cluster, make_cluster

binaries, disk = map(Path, sys.argv[1:])
build = Build(version="17.8", bin_directory=binaries, origin="zonky")
cluster = make_cluster(build, disk / "snapshot", server_user())
try:
    for number in range(3):
        copy_cluster(cluster, disk / f"copy-{number}")
except HostError as error:
    print(error.slug, error.exit_code, "No space left" in error.found, bool(error.expected and error.to_do))
print(*sorted(path.name for path in disk.iterdir()))
"""


def test_a_disk_that_fills_up_during_a_copy_leaves_no_partial_copy(cache: Cache, build: Build) -> None:
    (cache.root / "disk").mkdir()
    mount = 'mount -t tmpfs -o size=100m,mode=755 tmpfs "$0" && exec "$@"'
    # An ordinary user mounts as root of a namespace, and becomes that user again in a nested one.
    is_root = os.geteuid() == 0
    as_root = [] if is_root else ["--user", "--map-root-user"]
    as_oneself = [] if is_root else ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}"]
    disk = str(cache.root / "disk")
    command = ["unshare", "--mount", *as_root, "sh", "-c", mount, disk]
    command += [*as_oneself, sys.executable, "-c", FULL, str(build.bin_directory), disk]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines() == ["host-copy 3 True True", "copy-0 snapshot"]
