"""The cache stays within its size limit, and the least recently used snapshot is removed first."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from pgversus.data import cache_quota
from pgversus.data.cache_quota import fit_into_quota, free_up, most_kept_bytes, reduce_to, unused_bytes
from pgversus.data.snapshot_cache import cached_snapshots, take
from pgversus.errors import StudyError
from pgversus.host.directories import Cache
from tests.unit.data.kept import cache_in, kept, recipe

Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 - the type that shutil returns


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """A cache with snapshots of 1000 bytes at scales 1, 2 and 3; scale 2 was used last, scale 3 first."""
    cache = cache_in(tmp_path)
    for scale, used in ((1, 2000.0), (2, 3000.0), (3, 1000.0)):
        kept(cache, recipe(scale), last_used=used)
    return cache


def scales(cache: Cache) -> list[int | None]:
    records = (one.record() for one in cached_snapshots(cache))
    return [record.made_of.pgbench_scale for record in records if record is not None]


@pytest.mark.parametrize(
    ("most", "new", "fits", "left"),
    [
        (4000, 1000, True, [3, 1, 2]),
        (3999, 1000, True, [1, 2]),
        (2000, 1000, True, [2]),
        (1000, 1000, True, []),
        # A snapshot that does not fit removes no others.
        (1000, 1001, False, [3, 1, 2]),
        (0, 1, False, [3, 1, 2]),
    ],
)
def test_the_size_limit_applies_to_all_snapshots_together(
    cache: Cache, *, most: int, new: int, fits: bool, left: list[int]
) -> None:
    assert scales(cache) == [3, 1, 2]
    assert fit_into_quota(new, cache, most) is fits
    assert scales(cache) == left


@pytest.mark.parametrize(
    ("free", "fits", "left"), [(12_000, True, [3, 1, 2]), (9_000, True, [2]), (0, False, [3, 1, 2])]
)
def test_a_tenth_of_the_file_system_stays_free(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, *, free: int, fits: bool, left: list[int]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100_000, 100_000 - free, free))
    assert fit_into_quota(1000, cache, 10**9) is fits
    assert scales(cache) == left


def test_a_lowered_limit_applies_however_full_the_disk_is(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100_000, 100_000, 0))
    reduce_to(3000, cache)
    assert scales(cache) == [3, 1, 2]
    reduce_to(1500, cache)
    assert scales(cache) == [2]
    reduce_to(0, cache)
    assert scales(cache) == []


def test_only_snapshots_not_in_use_are_removed_to_free_space(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    take(cache, recipe(1), cache.runs / "home", print)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100_000, 100_000, 1000 * (3 - len(scales(cache)))))
    assert unused_bytes(cache) == 2000
    said: list[str] = []
    for wanted_bytes, left in ((1000, [2, 1]), (1000, [2, 1]), (5000, [1])):
        free_up(wanted_bytes, cache, said.append)
        assert scales(cache) == left
    assert said == ["removed 1 cached snapshot to free disk space"] * 2


@pytest.mark.parametrize(("text", "size"), [(None, 20 * 10**9), ("", 20 * 10**9), ("5GB", 5 * 10**9), ("0", 0)])
def test_the_size_limit_is_set_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str | None, size: int) -> None:
    monkeypatch.delenv(cache_quota._VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(cache_quota._VARIABLE, text)
    assert most_kept_bytes() == size


def test_an_invalid_size_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGVERSUS_SNAPSHOTS", "much")
    with pytest.raises(StudyError) as caught:
        most_kept_bytes()
    assert (caught.value.slug, caught.value.where) == ("study-bad-size", "PGVERSUS_SNAPSHOTS=much")
