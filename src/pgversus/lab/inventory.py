"""Servers on this host and the contents of the cache, and taking them out."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pgversus.builds.inspect import changed_files, missing_libraries, read_manifest, read_version
from pgversus.builds.model import MadeFrom
from pgversus.builds.provide import CachedBuild, cached_builds, remove_build
from pgversus.builds.tarballs import remove_stored, stored_tarballs
from pgversus.data.snapshot_cache import KeptSnapshot, kept_snapshots, remove
from pgversus.data.snapshot_key import SnapshotKey
from pgversus.errors import BuildError, StudyError
from pgversus.host.commands import run
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.report.inventory import CachedKind, CachedThing, ServerHere
from pgversus.study.build_options import BuildProfile, BuildSystem
from pgversus.text.units import count

_INSTALLED = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/postgresql*/bin")
_MOST_SHOWN = 3
_CFLAGS = re.compile(r"^CFLAGS = (.*)$", re.MULTILINE)
_SAYS_LITTLE = re.compile(r"-W(?![lap],)\S*|-fno-strict-aliasing|-fwrapv|-fexcess-precision=standard")
# Warnings, and what configure gives every build.


def installed_servers(cache: Cache, user: ServerUser) -> list[ServerHere]:
    """Those in the cache by name, then those that others installed. user: whom their programs are asked as."""
    return [*(_cached(build, user) for build in cached_builds(cache)), *_installed(user)]


def named_builds(cache: Cache, names: Sequence[str]) -> list[CachedBuild]:
    """The builds in the cache with these names, all without one; StudyError for a name that is nobody's."""
    builds = {build.name: build for build in cached_builds(cache)}
    for name in names:
        if name not in builds:
            near = get_close_matches(name, builds, n=1)
            raise StudyError(
                f'"{name}" is no server in the cache',
                slug="cache-unknown-name",
                where="pgversus servers",
                found=f'"{name}"',
                expected="a name that pgversus servers shows",
                to_do=f"{near[0]}, if that is meant" if near else "pgversus servers shows what is there",
            )
    return [builds[name] for name in dict.fromkeys(names)] if names else list(builds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What looking at every file of a build has shown."""

    problems: tuple[str, ...]
    """What is wrong with it; empty where it is as it was when it was made."""
    has_checksums: bool
    """Whether there is something to hold its files against: an earlier pgversus kept nothing of the kind."""

    def __str__(self) -> str:
        """In words."""
        if self.problems:
            return "; ".join(self.problems)
        return "as it was made" if self.has_checksums else "it runs; when it was fetched no checksums were kept"


def verified(build: CachedBuild, user: ServerUser) -> Verified:
    """What is wrong with a build in the cache: files that changed, libraries that are missing, another version.

    user: whom its programs are asked as.
    """
    manifest = read_manifest(build.directory)
    if manifest is None:
        return Verified(problems=("it is not whole: its manifest cannot be read",), has_checksums=False)
    known, programs = manifest.files_sha256, build.directory / manifest.bin
    problems = (
        *_changes(build, known or {}, has_checksums=known is not None),
        *_what_does_not_run(programs, manifest.version, user),
    )
    return Verified(problems=problems, has_checksums=known is not None)


def _changes(build: CachedBuild, known: Mapping[str, str], *, has_checksums: bool) -> Iterator[str]:
    changed = changed_files(build.directory, known) if has_checksums else []
    if changed:
        more = f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
        yield f"changed since it was made: {', '.join(changed[:_MOST_SHOWN])}{more}"


def _what_does_not_run(programs: Path, version: str, user: ServerUser) -> Iterator[str]:
    if missing := missing_libraries(programs, user):
        yield f"libraries are missing: {', '.join(missing)}"
        return
    try:
        if (found := read_version(programs, user)) != version:
            yield f"it says that it is {found}"
    except BuildError as error:
        yield error.found


def _cached(build: CachedBuild, user: ServerUser) -> ServerHere:
    origin, _, version = build.name.partition("-")
    made = build.built.made_from if build.built is not None else None
    programs = next((path.parent for path in sorted(build.directory.glob("**/bin/postgres"))), build.directory / "bin")
    return ServerHere(
        name=build.name,
        version=build.built.version if build.built is not None else version,
        origin=origin,
        block_size_bytes=_block_size(programs, user),
        flags=_flags(programs, user),
        options="" if made is None else str(made.options),
        size_bytes=build.size_bytes,
        directory=str(build.directory),
        made_from="" if made is None else _words(made),
    )


def _words(made: MadeFrom) -> str:
    """What tells it from others with the same options: source, manner where it is not the usual one, compiler."""
    system = [] if made.manner.system in (None, BuildSystem.CONFIGURE) else [made.manner.system.value]
    profile = [] if made.manner.profile is BuildProfile.MINIMAL else [made.manner.profile.value]
    return ", ".join([made.source.words, *profile, *system, made.compiler])


def _installed(user: ServerUser) -> Iterator[ServerHere]:
    directories = {path.resolve() for pattern in _INSTALLED for path in Path("/").glob(pattern[1:])}
    for directory in sorted(directories):
        try:
            version = read_version(directory, user)
        except BuildError:
            # A client alone, or one that cannot run here: no server to compare.
            continue
        yield ServerHere(
            name=str(directory),
            version=version,
            origin="installed",
            block_size_bytes=_block_size(directory, user),
            flags=_flags(directory, user),
            options="",
            size_bytes=None,
            directory=str(directory),
            made_from="",
        )


def _block_size(programs: Path, user: ServerUser) -> int | None:
    """As the program itself says it, which takes no cluster."""
    arguments = [str(programs / "postgres"), "-C", "block_size", "-c", "config_file=/dev/null", "-D", "/"]
    try:
        told = run(arguments, user=user, directory=Path("/")).stdout.strip()
    except OSError:
        return None
    return int(told) if told.isdecimal() else None


def _flags(programs: Path, user: ServerUser) -> str:
    for file in sorted((programs.parent / "lib").glob("**/pgxs/src/Makefile.global")):
        if match := _CFLAGS.search(file.read_text(encoding="utf-8", errors="replace")):
            return _telling(match[1])
    try:
        return _telling(run([str(programs / "pg_config"), "--cflags"], user=user, directory=Path("/")).stdout)
    except OSError:
        return ""


def _telling(flags: str) -> str:
    return " ".join(_SAYS_LITTLE.sub("", flags).split())


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
        if thing.kind is CachedKind.SNAPSHOT:
            remove(cache.snapshots / thing.name)
        elif thing.kind is CachedKind.SOURCE:
            remove_stored(cache.sources / thing.name)
        elif thing.kind is CachedKind.CCACHE:
            shutil.rmtree(cache.ccache)
        elif thing.name in builds and not remove_build(builds[thing.name], cache):
            stay.append(thing)
    return stay


def _named(things: Sequence[CachedThing], name: str) -> CachedThing:
    found = [thing for thing in things if thing.name == name] or [
        thing
        for thing in things
        if thing.kind is CachedKind.SNAPSHOT and len(name) >= _KEY_SHOWN and thing.name.startswith(name)
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
        kind=CachedKind.BUILD,
        name=build.name,
        size_bytes=build.size_bytes,
        last_used=build.last_used,
        what=_words_of_build(build),
    )


def _source_shown(tarball: Path) -> CachedThing:
    found = tarball.stat()
    return CachedThing(
        kind=CachedKind.SOURCE,
        name=tarball.name,
        size_bytes=found.st_size,
        last_used=found.st_mtime,
        what="a tarball of PostgreSQL's source",
    )


def _ccache_shown(directory: Path) -> Iterator[CachedThing]:
    files = [path.stat() for path in directory.glob("**/*") if path.is_file()]
    if files:
        yield CachedThing(
            kind=CachedKind.CCACHE,
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
        kind=CachedKind.SNAPSHOT,
        name=snapshot.key,
        size_bytes=snapshot.size_bytes,
        last_used=snapshot.last_used,
        what="not readable" if snapshot.record is None else _words_of_kept(snapshot.record.made_of.hidden),
    )


def _words_of_kept(recipe: SnapshotKey) -> str:
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
