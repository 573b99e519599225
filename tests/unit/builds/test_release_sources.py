"""The source of a release comes from the user's directory, else from the cache, else from apt."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from pgversus.builds import orders as module
from pgversus.builds.debian import AptError
from pgversus.builds.model import SourceCode
from pgversus.builds.orders import VARIABLE, release_source, source_here
from pgversus.builds.tarballs import store
from pgversus.errors import BuildError, ExitCode
from pgversus.host.directories import Cache
from pgversus.study.servers import Release
from tests.unit.builds.source_tarballs import publish, sha256, tarball

SEVENTEEN = Release(major=17, minor=None)
DAY_S = 24 * 3600


class Apt:
    """An apt with at most one tarball."""

    def __init__(self) -> None:
        self.requested: list[Release] = []
        self.version = ""

    def __call__(self, release: Release, directory: Path) -> tuple[Path, str]:
        self.requested.append(release)
        assert not list(directory.parent.glob(f"{directory.name}/*")), "begins with nothing of an earlier run"
        (directory / "lists").mkdir(parents=True)
        if not self.version:
            raise AptError("sid: no answer")
        number = self.version.partition("-")[0]
        return tarball(directory / f"postgresql-{release.major}_{number}.orig.tar.bz2"), self.version


@pytest.fixture(autouse=True)
def apt(monkeypatch: pytest.MonkeyPatch) -> Apt:
    apt = Apt()
    monkeypatch.setattr(module, "debian_archive", apt)
    monkeypatch.delenv(VARIABLE, raising=False)
    return apt


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(root=tmp_path / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    return cache


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the user with some tarballs."""
    directory = tmp_path / "mine"
    for name in ("17.9.tar.bz2", "17.10.tar.gz", "16.4.tgz"):
        # Distinguished by their contents.
        tarball(directory / f"postgresql-{name}", {"configure": name, "src/backend/main.c": ""})
    for name in (
        "postgresql-17.11.tar.bz2.sha256",
        "postgresql-17.12.zip",
        "postgresql-17beta1.tar.gz",
        "pg-17.99.tar",
    ):
        (directory / name).touch()
    monkeypatch.setenv(VARIABLE, str(directory))
    return directory


def stored(cache: Cache, version: str) -> Path:
    """A tarball in the cache, as stored by an earlier run."""
    place = cache.sources / f"postgresql-{version}.tar.bz2"
    part = tarball(cache.staging / place.name, {"configure": version, "src/backend/main.c": ""})
    store(part, place, sha256=sha256(part), checked="the index")
    return place


def found(release: Release, cache: Cache) -> tuple[SourceCode, list[str]]:
    said: list[str] = []
    return release_source(release, cache, said.append, lambda _name, _size: None), said


@pytest.mark.parametrize(
    ("release", "name"),
    [
        (SEVENTEEN, "postgresql-17.10.tar.gz"),
        (Release(major=17, minor=9), "postgresql-17.9.tar.bz2"),
        (Release(major=16, minor=None), "postgresql-16.4.tgz"),
    ],
)
def test_the_newest_requested_minor_is_used(mine: Path, cache: Cache, apt: Apt, release: Release, name: str) -> None:
    source, said = found(release, cache)
    assert (source.facts.words, source.facts.sha256) == (name, sha256(mine / name))
    assert source.facts.checked is None
    here = source_here(release, cache)
    assert here is not None
    assert here.facts == source.facts
    assert (said, apt.requested) == ([], [])


def test_a_tarball_of_the_user_is_verified_against_its_checksum_file(mine: Path, cache: Cache) -> None:
    publish(mine / "postgresql-17.10.tar.gz", "f" * 64)
    with pytest.raises(BuildError) as caught:
        found(SEVENTEEN, cache)
    assert (caught.value.slug, caught.value.where) == ("build-damaged", str(mine / "postgresql-17.10.tar.gz"))


@pytest.mark.parametrize(
    ("release", "name"),
    [(Release(major=17, minor=8), "postgresql-17.8.tar.*"), (Release(major=14, minor=None), "postgresql-14.*.tar.*")],
)
def test_a_missing_source_is_reported_with_everything_tried(
    mine: Path, cache: Cache, apt: Apt, release: Release, name: str
) -> None:
    with pytest.raises(BuildError) as caught:
        found(release, cache)
    error = caught.value
    assert (error.slug, error.exit_code, error.where) == ("build-no-source", ExitCode.HOST, f"server {release}")
    assert error.found == f"tried: {mine} ({VARIABLE}; no {name}); apt (sid: no answer)"
    assert f"./postgresql-{release}.tar.bz2" in error.to_do
    assert VARIABLE in error.to_do
    assert apt.requested == [release]
    assert source_here(release, cache) is None


@pytest.mark.parametrize("version", ["", "17.11-0+deb13u1"])
def test_files_of_apt_are_removed_from_the_cache(cache: Cache, apt: Apt, version: str) -> None:
    apt.version = version
    (cache.staging / "apt" / "partial").mkdir(parents=True)  # left by a killed run
    with nullcontext() if version else pytest.raises(BuildError):
        found(SEVENTEEN, cache)
    assert [path.name for path in cache.staging.iterdir() if path.suffix != ".lock"] == []


def test_a_missing_directory_has_no_source(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(BuildError) as caught:
        found(SEVENTEEN, cache)
    assert str(tmp_path / "nowhere") in caught.value.found


def test_an_address_requires_a_minor_version(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "http://127.0.0.1:1/v{version}.tar.bz2")
    with pytest.raises(BuildError) as caught:
        found(SEVENTEEN, cache)
    assert "give the minor version" in caught.value.found
    with pytest.raises(BuildError) as caught:
        found(Release(major=17, minor=8), cache)
    assert f"{VARIABLE} (/v17.8.tar.bz2.sha256: " in caught.value.found
    assert source_here(SEVENTEEN, cache) is None


def test_a_source_from_apt_is_cached(cache: Cache, apt: Apt) -> None:
    apt.version = "17.11-0+deb13u1"
    source, said = found(SEVENTEEN, cache)
    assert (source.facts.words, source.facts.checked) == (
        "postgresql-17.11.tar.bz2",
        "the index that the distribution signed",
    )
    assert said == ["fetching the source of PostgreSQL 17 with apt"]
    again = [found(release, cache)[0].facts for release in (SEVENTEEN, Release(major=17, minor=11))]
    here = source_here(SEVENTEEN, cache)
    assert here is not None
    assert [*again, here.facts] == [source.facts] * 3
    assert len(apt.requested) == 1
    assert sorted(path.name for path in cache.sources.iterdir()) == [
        "postgresql-17.11.tar.bz2",
        "postgresql-17.11.tar.bz2.json",
    ]


def test_the_newest_minor_is_queried_again_after_a_day_but_not_a_given_minor(cache: Cache, apt: Apt) -> None:
    kept = stored(cache, "17.10")
    os.utime(kept, (kept.stat().st_mtime - 2 * DAY_S,) * 2)
    assert found(Release(major=17, minor=10), cache)[0].facts.words == kept.name
    assert apt.requested == []
    source, said = found(SEVENTEEN, cache)
    assert source.facts.words == kept.name
    assert said[-1] == "using the cached source of PostgreSQL 17.10: sid: no answer"
    apt.version = "17.11-1"
    assert found(SEVENTEEN, cache)[0].facts.words == "postgresql-17.11.tar.bz2"
    assert apt.requested == [SEVENTEEN, SEVENTEEN]


def test_the_directory_of_the_user_takes_precedence_over_the_cache(mine: Path, cache: Cache) -> None:
    stored(cache, "17.12")
    stored(cache, "15.2")
    assert found(SEVENTEEN, cache)[0].facts.sha256 == sha256(mine / "postgresql-17.10.tar.gz")
    assert found(Release(major=15, minor=2), cache)[0].facts.words == "postgresql-15.2.tar.bz2"


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_modified_tarball_is_fetched_again_once(cache: Cache, apt: Apt, length: int) -> None:
    apt.version = "17.11-0+deb13u1"
    facts = found(SEVENTEEN, cache)[0].facts
    kept = cache.sources / "postgresql-17.11.tar.bz2"
    kept.write_bytes(kept.read_bytes()[:length])
    assert source_here(SEVENTEEN, cache) is None
    assert [found(SEVENTEEN, cache)[0].facts for _ in range(2)] == [facts] * 2
    assert len(apt.requested) == 2


def test_an_older_tarball_replaces_a_modified_newer_one(cache: Cache) -> None:
    older, newer = stored(cache, "17.10"), stored(cache, "17.11")
    newer.write_bytes(b"changed")
    source = source_here(SEVENTEEN, cache)
    assert source is not None
    assert source.facts.words == older.name
