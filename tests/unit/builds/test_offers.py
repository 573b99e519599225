"""Lists of released versions are cached, and remains of killed fetches are removed."""

from pathlib import Path

import pytest

from pgversus.builds import ready_made as index_module
from pgversus.builds.families import RegistryError
from pgversus.builds.ready_made import offers
from pgversus.study.servers import BuildFamily, Version

NEWEST = Version(major=17, minor=8)


class Registry:
    """A registry that responds only once."""

    def __init__(self) -> None:
        self.requested = 0
        self.found: list[str] = []

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        self.requested += 1
        if self.requested > 1:
            raise RegistryError("no answer")
        self.found = sorted(path.name for path in scratch.parent.iterdir())
        return (NEWEST,)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    registry = Registry()
    monkeypatch.setattr(index_module, "SOURCES", {BuildFamily.ZONKY: registry})
    return registry


def test_a_list_is_fetched_once_and_used_when_the_registry_fails(tmp_path: Path, registry: Registry) -> None:
    for must_be_fresh in (False, False, True):
        (offer,) = offers(tmp_path, must_be_fresh=must_be_fresh)
        assert offer.versions == (NEWEST,)
    assert registry.requested == 2
    assert offer.problem


def test_remains_of_a_killed_fetch_are_removed_by_the_next(tmp_path: Path, registry: Registry) -> None:
    (tmp_path / "index-killed" / "deeper").mkdir(parents=True)
    offers(tmp_path)
    assert "index-killed" not in registry.found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fetch.lock", "zonky.json"]


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"fetched_at": 1e999, "versions": []}',
        b'{"fetched_at": "now", "versions": []}',
        b'{"fetched_at": 1, "versions": [["17", {}]]}',
        b'{"fetched_at": 1, "versions": [[17]]}',
        b'{"fetched_at": 1, "versions": [[-1, 99999999999999999999]]}',
        b'{"fetched_at": 1, "versions": ' + b"9" * 10_000 + b"}",
    ],
)
def test_a_damaged_list_is_fetched_again(tmp_path: Path, registry: Registry, kept: bytes) -> None:
    (tmp_path / "zonky.json").write_bytes(kept)
    (offer,) = offers(tmp_path)
    assert (offer.versions, registry.requested) == ((NEWEST,), 1)
