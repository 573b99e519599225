"""Disk space for a study: cached snapshots are removed if necessary, and a study that cannot fit is rejected."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgversus.data.cache_quota import check_room, free_space_for
from pgversus.errors import HostError
from pgversus.lab.studies import open_study
from pgversus.study.needs import Needs, needs_of
from tests.real_results import PUBLISHED
from tests.unit.data.kept import cache_in, kept, recipe


def test_cached_snapshots_are_removed_for_a_study_only_when_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = cache_in(tmp_path)
    kept(cache, recipe(1), size_bytes=1000, last_used=1.0)
    kept(cache, recipe(2), size_bytes=1000, last_used=2.0)

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=3000 - 1000 * len(list(cache.snapshots.iterdir())))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    said: list[str] = []
    for needed, left, words in ((2000, 1, "removed 1 cached snapshot to free disk space"), (2000, 1, "")):
        check_room(needs(needed), cache)
        free_space_for(needs(needed), cache, said.append)
        assert len(list(cache.snapshots.iterdir())) == left
        assert said == ([words] if words else [])
        said.clear()
    for refuse in (check_room, lambda requested, of: free_space_for(requested, of, said.append)):
        with pytest.raises(HostError) as caught:
            refuse(needs(5000), cache)
        assert (caught.value.slug, caught.value.found) == ("host-no-room", "2 kB free")
        assert caught.value.to_do.endswith("leave out the largest data ([[exclude]]), such as scale=500")
    assert len(list(cache.snapshots.iterdir())) == 1
    assert said == []


def needs(disk_bytes: float) -> Needs:
    return Needs(
        snapshots=1,
        parts=1,
        largest="scale=500" if disk_bytes > 3000 else "",
        disk_bytes=disk_bytes,
        setup_files=0,
        least_trials=1,
        preparation_s=1.0,
        least_s=1.0,
        most_s=None,
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_profiles_need_little_space_or_name_their_largest_data(name: str) -> None:
    found = needs_of(open_study(name, profile="published").study)
    assert found.disk_bytes < 20e9 or found.largest


@pytest.mark.parametrize(("name", "largest"), [("versions-15-to-18", "scale=500"), ("vacuum-15-to-17", "scale=500")])
def test_a_published_profile_that_does_not_fit_says_what_to_leave_out(
    name: str, largest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10_000_000_000))
    with pytest.raises(HostError) as caught:
        check_room(needs_of(open_study(name, profile="published").study), cache_in(tmp_path))
    assert caught.value.slug == "host-no-room"
    assert largest in caught.value.to_do
