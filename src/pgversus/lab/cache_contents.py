"""What the cache holds, and taking some of it out; what a run uses goes on working."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.builds.provide import CachedBuild, cached_builds, remove_build
from pgversus.builds.tarballs import remove_stored, stored_tarballs
from pgversus.data.snapshot_cache import KeptSnapshot, kept_snapshots, remove
from pgversus.data.snapshot_key import Recipe
from pgversus.errors import StudyError
from pgversus.host.directories import Cache
from pgversus.report.cached import CachedThing, Kind
from pgversus.text.units import count

_KEY_SHOWN = 4
# Digits of a key that are enough to name it, where they are one's alone.


def cached_things(cache: Cache) -> list[CachedThing]:
    """Everything in the cache, builds first."""
    return [
        *map(_build_shown, cached_builds(cache)),
        *map(_source_shown, stored_tarballs(cache)),
        *_ccache_shown(cache.ccache),
        *map(_snapshot_shown, reversed(kept_snapshots(cache))),
    ]


def named(things: Sequence[CachedThing], names: Sequence[str]) -> list[CachedThing]:
    """Those with these names; the first digits of a snapshot's key do. StudyError for a name that is nobody's."""
    return [_named(things, name) for name in dict.fromkeys(names)]


def take_out(cache: Cache, things: Sequence[CachedThing]) -> list[CachedThing]:
    """Remove these from the cache; those that a run uses stay and come back. OSError when one cannot be removed.

    Loaded data go at once, since a run that uses them has them in its own directory.
    """
    builds = {build.name: build for build in cached_builds(cache)}
    stay = []
    for thing in things:
        if thing.kind is Kind.SNAPSHOT:
            remove(cache.snapshots / thing.name)
        elif thing.kind is Kind.SOURCE:
            remove_stored(cache.sources / thing.name)
        elif thing.kind is Kind.CCACHE:
            shutil.rmtree(cache.ccache)
        elif thing.name in builds and not remove_build(builds[thing.name], cache):
            stay.append(thing)
    return stay


def _named(things: Sequence[CachedThing], name: str) -> CachedThing:
    found = [thing for thing in things if thing.name == name] or [
        thing
        for thing in things
        if thing.kind is Kind.SNAPSHOT and len(name) >= _KEY_SHOWN and thing.name.startswith(name)
    ]
    if len(found) != 1:
        raise StudyError(
            f'"{name}" is the name of nothing in the cache'
            if not found
            else f'"{name}" is the beginning of more than one name',
            slug="cache-unknown-name",
            where="the cache",
            found=", ".join(thing.name for thing in found) or f'"{name}"',
            expected="a name that pgversus cache shows, or the first digits of a snapshot's",
            to_do="pgversus cache shows what is there",
        )
    return found[0]


def _build_shown(build: CachedBuild) -> CachedThing:
    return CachedThing(
        kind=Kind.BUILD,
        name=build.name,
        size_bytes=build.size_bytes,
        last_used=build.last_used,
        what=_words_of_build(build),
    )


def _source_shown(tarball: Path) -> CachedThing:
    found = tarball.stat()
    return CachedThing(
        kind=Kind.SOURCE,
        name=tarball.name,
        size_bytes=found.st_size,
        last_used=found.st_mtime,
        what="a tarball of PostgreSQL's source",
    )


def _ccache_shown(directory: Path) -> Iterator[CachedThing]:
    files = [path.stat() for path in directory.glob("**/*") if path.is_file()]
    if files:
        yield CachedThing(
            kind=Kind.CCACHE,
            name=directory.name,
            size_bytes=sum(found.st_size for found in files),
            last_used=max(found.st_mtime for found in files),
            what="what was compiled: equal files are not compiled again",
        )


def _words_of_build(build: CachedBuild) -> str:
    if not build.is_from_source:
        family, _, version = build.name.partition("-")
        return f"PostgreSQL {version} of the {family} family"
    if build.built is None or build.built.made_from is None:
        return "not readable"
    made = build.built.made_from
    return f"PostgreSQL {build.built.version}{made.options} built from {made.source.words}"


def _snapshot_shown(snapshot: KeptSnapshot) -> CachedThing:
    return CachedThing(
        kind=Kind.SNAPSHOT,
        name=snapshot.key,
        size_bytes=snapshot.size_bytes,
        last_used=snapshot.last_used,
        what="not readable" if snapshot.record is None else _words(snapshot.record.made_of.hidden),
    )


def _words(recipe: Recipe) -> str:
    parts = [f"PostgreSQL {recipe.version} ({recipe.origin})"]
    if recipe.pgbench_scale is not None:
        parts.append(f"pgbench tables at scale {recipe.pgbench_scale}")
    if recipe.setup_sha256:
        parts.append(count(len(recipe.setup_sha256), "setup file"))
    if recipe.prepare_sha256:
        variables = " ".join(f"{name}={value}" for name, value in recipe.variables)
        parts.append(
            f"prepared by {count(len(recipe.prepare_sha256), 'file')}{f' with {variables}' if variables else ''}"
        )
    return ", ".join(parts) if len(parts) > 1 else f"{parts[0]}, nothing loaded"
