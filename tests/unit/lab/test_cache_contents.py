"""The contents of the cache are described and found by name."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.builds.provide import using_builds
from pgversus.builds.ready_made import Choice, installed
from pgversus.errors import StudyError
from pgversus.host.directories import Cache
from pgversus.lab.inventory import cached_things, named, take_out
from pgversus.records.inventory import CachedKind
from pgversus.study.servers import BuildFamily, Version
from tests.unit.data.kept import cache_in, kept, recipe

PREPARED = replace(recipe(10), setup_sha256=("1",), prepare_sha256=("2",), variables=(("share", "70"),))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = cache_in(tmp_path)
    build = cache.builds / "zonky-17.8"
    build.mkdir()
    (build / "build.json").write_text('{"version": "17.8", "bin": "bin", "sha256": "a"}')
    kept(cache, PREPARED, size_bytes=7000, last_used=2000.0)
    kept(cache, replace(recipe(), pgbench_scale=None), last_used=1000.0)
    return cache


def test_everything_in_the_cache_is_described(cache: Cache) -> None:
    assert [(thing.kind, thing.what) for thing in cached_things(cache)] == [
        (CachedKind.BUILD, "PostgreSQL 17.8 of the zonky family"),
        (
            CachedKind.SNAPSHOT,
            "PostgreSQL 17.8 (zonky), pgbench tables at scale 10, 1 setup file, prepared by 1 file with share=70",
        ),
        (CachedKind.SNAPSHOT, "PostgreSQL 17.8 (zonky), nothing loaded"),
    ]
    assert cached_things(cache)[1].size_bytes == 7000


def test_an_unreadable_snapshot_is_shown_and_can_be_removed(cache: Cache) -> None:
    (cache.snapshots / PREPARED.key / "snapshot.json").write_text("{")
    (broken,) = named(cached_things(cache), [PREPARED.key])
    assert broken.what == "not readable"
    assert take_out(cache, [broken]) == []
    assert len(cached_things(cache)) == 2


def test_snapshots_are_found_by_prefix_and_builds_by_full_name(cache: Cache) -> None:
    things = cached_things(cache)
    assert [thing.name for thing in named(things, [PREPARED.key[:6], "zonky-17.8"])] == [PREPARED.key, "zonky-17.8"]
    for name in ("zonky-17", PREPARED.key[:2], "nothing", ""):
        with pytest.raises(StudyError) as caught:
            named(things, [name])
        assert caught.value.slug == "cache-unknown-name"


def test_a_build_in_use_stays_and_everything_else_is_removed(cache: Cache) -> None:
    build = installed(cache, Choice(family=BuildFamily.ZONKY, version=Version(major=17, minor=8)))
    with using_builds([build], cache):
        assert [thing.name for thing in take_out(cache, cached_things(cache))] == ["zonky-17.8"]
    assert [thing.name for thing in cached_things(cache)] == ["zonky-17.8"]


def test_source_tarballs_are_shown_and_removed(cache: Cache) -> None:
    cache.sources.mkdir()
    (cache.sources / "postgresql-17.8.tar.bz2").write_bytes(b"1234")
    (cache.sources / "postgresql-17.8.tar.bz2.sha256").touch()
    (tarball,) = named(cached_things(cache), ["postgresql-17.8.tar.bz2"])
    assert (tarball.kind, tarball.size_bytes) == (CachedKind.SOURCE, 4)
    assert take_out(cache, [tarball]) == []
    assert [thing.kind for thing in cached_things(cache)] == [
        CachedKind.BUILD,
        CachedKind.SNAPSHOT,
        CachedKind.SNAPSHOT,
    ]
