"""Tarballs in the cache: each beside a record of its hash, so that a short or changed one is fetched again."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.postgres.builds.files import put_in_place
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What is kept of a tarball."""

    sha256: str
    checked: str
    """Against what its hash was verified."""


_RECORD = TypeAdapter(_Record)


def store(tarball: Path, place: Path, *, sha256: str, checked: str) -> None:
    """Move a tarball to its place in the cache. checked: against what its hash was verified."""
    record = tarball.with_name(f"{tarball.name}.record")
    record.write_text(json.dumps({"sha256": sha256, "checked": checked}), encoding="utf-8")
    # The record comes first: without its tarball it does no harm.
    put_in_place(record, _record_of(place))
    put_in_place(tarball, place)


def stored_source(place: Path, name: str) -> Source | None:
    """The source in a tarball of the cache; None where it is not there, or differs from what was stored.

    name: of the tarball, for people.
    """
    try:
        record = _RECORD.validate_json(_record_of(place).read_bytes())
        source = archive_source(place, name=name, checked=record.checked)
    except (OSError, ValidationError, BuildError):
        return None
    return source if source.facts.sha256 == record.sha256 else None


def stored_tarballs(cache: Cache) -> list[Path]:
    """Every tarball in the cache, by name."""
    return sorted(path for path in cache.sources.glob("*") if is_archive(path))


def remove_stored(place: Path) -> None:
    """Remove a tarball from the cache; OSError when it cannot be removed."""
    place.unlink(missing_ok=True)
    _record_of(place).unlink(missing_ok=True)


def _record_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")
