"""Builds are found in the cache, and removed from it completely, never while a run uses them."""

import os
import platform
from pathlib import Path

import pytest
from filelock import FileLock

from pgversus.builds import provide as module
from pgversus.builds.model import Build, FamilyOffer
from pgversus.builds.provide import available_builds, cached_builds, remove_build, using_builds
from pgversus.builds.ready_made import Choice, installed
from pgversus.host.directories import Cache
from pgversus.lab.inventory import verified
from pgversus.study.build_options import USUAL_MANNER
from pgversus.study.servers import BuildFamily, Release, Version
from tests.builders import MYSELF

CHOICE = Choice(family=BuildFamily.ZONKY, version=Version(major=17, minor=8))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache with one build."""
    cache = Cache(root=tmp_path)
    directory = cache.builds / "zonky-17.8"
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "postgres").write_bytes(bytes(5000))
    (directory / "build.json").write_text('{"version": "17.8", "bin": "bin", "sha256": "a"}')
    cache.staging.mkdir()
    return cache


def build_in(cache: Cache) -> Build:
    build = installed(cache, CHOICE)
    assert build is not None
    return build


def test_an_unused_build_is_removed(cache: Cache) -> None:
    (found,) = cached_builds(cache)
    assert (found.name, found.size_bytes > 5000) == ("zonky-17.8", True)
    assert remove_build(found, cache)
    assert installed(cache, CHOICE) is None
    assert cached_builds(cache) == []


def test_a_build_that_is_removed_meanwhile_does_not_hide_the_others(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = cache.builds / "zonky-16.1"
    gone.mkdir()

    def size(directory: Path) -> int:
        if directory == gone:
            gone.rmdir()
        return 1

    monkeypatch.setattr(module, "tree_bytes", size)
    assert [one.name for one in cached_builds(cache)] == ["zonky-17.8"]


def test_a_build_in_use_is_not_removed(cache: Cache) -> None:
    own = Build(version="18", bin_directory=Path("/usr/lib/postgresql/18/bin"), origin="bin directory")
    (found,) = cached_builds(cache)
    with using_builds([build_in(cache), None, own, build_in(cache)], cache):
        assert not remove_build(found, cache)
        assert build_in(cache).program("postgres").exists()
    assert remove_build(found, cache)


def test_offline_a_cached_build_is_found_among_directories_with_other_names(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PLATFORM", (platform.system(), platform.machine()))
    offline = FamilyOffer(family=BuildFamily.ZONKY, versions=(), problem="no response")
    monkeypatch.setattr(module, "offers", lambda _: (offline,))
    for name in ("zonky-old", "zonky-17.8.before", "zonky-17."):
        (cache.builds / name).mkdir()
    release = Release(major=17, minor=None)
    found = available_builds([release], USUAL_MANNER, cache, MYSELF, {}, asks_named=False)
    assert found.builds == {release: build_in(cache)}


def test_a_build_being_fetched_is_not_removed(cache: Cache) -> None:
    (found,) = cached_builds(cache)
    with FileLock(cache.staging / "zonky-17.8.lock"):
        assert not remove_build(found, cache)
    assert installed(cache, CHOICE) is not None


def test_using_a_build_updates_its_last_use(cache: Cache) -> None:
    manifest = cache.builds / "zonky-17.8" / "build.json"
    os.utime(manifest, (1000, 1000))
    assert cached_builds(cache)[0].last_used == 1000
    with using_builds([build_in(cache)], cache):
        assert cached_builds(cache)[0].last_used > 1000


def test_a_removed_build_cannot_be_used(cache: Cache) -> None:
    build = build_in(cache)
    remove_build(cached_builds(cache)[0], cache)
    with pytest.raises(FileNotFoundError), using_builds([build], cache):
        pass


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        b'{"version": ["17.8"], "bin": "bin", "sha256": "a"}',
        b'{"version": "17.8", "bin": "/usr/bin", "sha256": "a"}',
        b'{"version": "17.8", "bin": "../../bin", "sha256": "a"}',
        b'{"version": "17.8", "bin": "bin\\u0000", "sha256": "a"}',
        b'{"version": "17.8", "bin": "bin", "sha256": "a", "files_sha256": []}',
        b'{"version": "17.8", "bin": "bin", "sha256": "a", "made_from": {"source": 1}}',
    ],
)
def test_a_damaged_manifest_is_ignored(cache: Cache, manifest: bytes) -> None:
    assert installed(cache, CHOICE) is not None
    for name in ("zonky-17.8", "source-0a1b"):
        (cache.builds / name).mkdir(exist_ok=True)
        (cache.builds / name / "build.json").write_bytes(manifest)
    assert installed(cache, CHOICE) is None
    assert [one.built for one in cached_builds(cache)] == [None, None]
    assert [verified(one, MYSELF).has_checksums for one in cached_builds(cache)] == [False, False]
