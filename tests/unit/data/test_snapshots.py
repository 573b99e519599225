"""A run uses the cache if possible, and continues without it otherwise."""

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgversus.builds.model import Build
from pgversus.data import snapshots
from pgversus.data.loading import LoadedCluster
from pgversus.data.snapshots import SnapshotCache
from pgversus.engine.progress import Progress
from pgversus.errors import HostError
from pgversus.host.directories import Cache
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres.cluster import Cluster
from tests.unit.data.kept import FINGERPRINT, USER, cache_in, made, recipe

BUILD = Build(version="17.8", bin_directory=Path("/nowhere"), origin="zonky", sha256="a")


class Said(Progress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return cache_in(tmp_path)


def snapshot_cache(cache: Cache, said: Said, most_bytes: int = 10**9) -> SnapshotCache:
    directory = RunDirectory(root=cache.runs, sockets=cache.runs, user=USER)
    return SnapshotCache(cache, directory, said, most_bytes)


def loaded(cache: Cache) -> LoadedCluster:
    data = made(cache.runs / "first")
    return LoadedCluster(
        cluster=Cluster(build=BUILD, data_directory=data, user=USER), fingerprint=FINGERPRINT, has_prewarm=True
    )


def test_a_cached_snapshot_comes_back_as_a_cluster_with_the_same_data(cache: Cache) -> None:
    said = Said()
    one = snapshot_cache(cache, said)
    assert one.take(recipe(), cache.runs / "second", BUILD) is None
    kept = loaded(cache)
    one.keep(recipe(), kept)
    taken = one.take(recipe(), cache.runs / "second", BUILD)
    assert taken is not None
    assert (taken.fingerprint, taken.has_prewarm, taken.cluster.build) == (FINGERPRINT, True, BUILD)
    assert (taken.cluster.data_directory / "PG_VERSION").samefile(kept.cluster.data_directory / "PG_VERSION")
    assert said.lines == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full"),
        (
            HostError("it could not be taken", slug="host-copy", found="cp: so it is"),
            "it could not be taken (cp: so it is)",
        ),
        (ValueError("pg_tblspc/1 is neither a file nor a directory"), "pg_tblspc/1 is neither a file nor a directory"),
    ],
)
def test_a_failure_to_cache_is_reported_and_not_fatal(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, error: Exception, words: str
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise error

    said = Said()
    monkeypatch.setattr(snapshots, "keep", fail)
    snapshot_cache(cache, said).keep(recipe(), loaded(cache))
    assert said.lines == [f"the loaded data could not be added to the cache: {words}"]


@pytest.mark.parametrize(("most", "lines"), [(0, 0), (10, 1)])
def test_nothing_is_cached_beyond_the_limit_which_is_reported_unless_the_cache_is_off(
    cache: Cache, most: int, lines: int
) -> None:
    said = Said()
    snapshot_cache(cache, said, most).keep(recipe(), loaded(cache))
    assert list(cache.snapshots.iterdir()) == []
    assert len(said.lines) == lines


def test_a_lowered_limit_is_applied_at_the_end_of_a_run_even_if_the_disk_is_full(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_cache(cache, Said()).keep(recipe(), loaded(cache))
    full = SimpleNamespace(total=10**12, used=10**12, free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    snapshot_cache(cache, Said()).trim()
    assert len(list(cache.snapshots.iterdir())) == 1
    snapshot_cache(cache, Said(), 0).trim()
    assert list(cache.snapshots.iterdir()) == []


def test_data_with_files_elsewhere_is_not_cached(cache: Cache, tmp_path: Path) -> None:
    said, whole = Said(), loaded(cache)
    (whole.cluster.data_directory / "tablespace").symlink_to(tmp_path)
    snapshot_cache(cache, said).keep(recipe(), whole)
    assert list(cache.snapshots.iterdir()) == []
    assert said.lines == [
        "the loaded data could not be added to the cache: tablespace is neither a file nor a directory"
    ]
