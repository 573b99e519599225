"""Tarballs in the cache: each beside a record of its hash, so that a short or changed one is fetched again."""

import json
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.postgres.builds.files import put_in_place
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.source import Source


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
        record = json.loads(_record_of(place).read_text(encoding="utf-8"))
        source = archive_source(place, name=name, checked=str(record["checked"]))
        return source if source.facts.sha256 == record["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError, BuildError):
        return None


def stored_tarballs(cache: Cache) -> list[Path]:
    """Every tarball in the cache, by name."""
    return sorted(path for path in cache.sources.glob("*") if is_archive(path))


def remove_stored(place: Path) -> None:
    """Remove a tarball from the cache; OSError when it cannot be removed."""
    place.unlink(missing_ok=True)
    _record_of(place).unlink(missing_ok=True)


def _record_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")
