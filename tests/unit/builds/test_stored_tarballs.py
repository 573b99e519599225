"""A cached tarball is used only if it is unmodified."""

from pathlib import Path

import pytest

from pgversus.builds.tarballs import remove_stored, store, stored_source, stored_tarballs
from pgversus.host.directories import Cache
from tests.unit.builds.source_tarballs import sha256, tarball


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The path of a stored tarball."""
    place = tmp_path / "sources" / "postgresql-17.8.tar.gz"
    place.parent.mkdir()
    part = tarball(tmp_path / "part.tar.gz")
    store(part, place, sha256=sha256(part), checked="the index")
    return place


def test_a_tarball_is_stored_with_its_hash_and_the_reference_of_its_verification(place: Path) -> None:
    found = stored_source(place, "postgresql-17.8.tar.gz")
    assert found is not None
    assert found.facts.words == "postgresql-17.8.tar.gz"
    assert (found.facts.sha256, found.facts.checked) == (sha256(place), "the index")


@pytest.mark.parametrize("length", [0, 100, -1])
def test_a_truncated_tarball_is_ignored(place: Path, length: int) -> None:
    place.write_bytes(place.read_bytes()[:length])
    assert stored_source(place, "p") is None


def test_a_modified_tarball_is_ignored(place: Path) -> None:
    content = bytearray(place.read_bytes())
    content[50] ^= 1
    place.write_bytes(content)
    assert stored_source(place, "p") is None


@pytest.mark.parametrize(
    "record", [None, "", "[]", "{}", "[" * 10_000, '{"sha256": "0"}', '{"sha256": "0", "checked": "x"}']
)
def test_a_tarball_without_a_record_is_ignored(place: Path, record: str | None) -> None:
    place.with_name(f"{place.name}.json").unlink()
    if record is not None:
        place.with_name(f"{place.name}.json").write_text(record)
    assert stored_source(place, "p") is None


def test_a_record_without_a_tarball_is_ignored(place: Path) -> None:
    place.unlink()
    assert stored_source(place, "p") is None


def test_a_tarball_is_listed_once_and_removed_with_its_record(place: Path, tmp_path: Path) -> None:
    assert stored_tarballs(Cache(root=tmp_path)) == [place]
    remove_stored(place)
    assert list(place.parent.iterdir()) == []
    remove_stored(place)
