"""Servers on this host, the contents of the cache, and their removal."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pgversus.builds.inspect import changed_files, missing_libraries, read_manifest, read_version
from pgversus.builds.model import BuildInputs
from pgversus.builds.provide import CachedBuild, cached_builds, remove_build
from pgversus.builds.tarballs import remove_stored, stored_tarballs
from pgversus.data.snapshot_cache import CachedSnapshot, cached_snapshots, remove
from pgversus.data.snapshot_key import SnapshotKey
from pgversus.errors import BuildError, StudyError
from pgversus.host.commands import run
from pgversus.host.directories import Cache, unused
from pgversus.host.files import states_of
from pgversus.host.identity import ServerUser
from pgversus.records.inventory import CachedKind, CachedThing, InstalledServer
from pgversus.study.build_options import BuildProfile, BuildSystem
from pgversus.text.units import count

_INSTALLED = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/postgresql*/bin")
_MOST_SHOWN = 3
_CFLAGS = re.compile(r"^CFLAGS = (.*)$", re.MULTILINE)
_SAYS_LITTLE = re.compile(r"-W(?![lap],)\S*|-fno-strict-aliasing|-fwrapv|-fexcess-precision=standard")
# Warnings, and flags that configure adds to every build.


def installed_servers(cache: Cache, user: ServerUser) -> list[InstalledServer]:
    """Return cached servers by name, then installed ones. user: the user to run their programs as."""
    return [*(_cached(build, user) for build in cached_builds(cache)), *_installed(user)]


def named_builds(cache: Cache, names: Sequence[str]) -> list[CachedBuild]:
    """Return the cached builds with these names, or all if names is empty; raise StudyError for an unknown name."""
    builds = {build.name: build for build in cached_builds(cache)}
    for name in names:
        if name not in builds:
            near = get_close_matches(name, builds, n=1)
            raise StudyError(
                f'"{name}" is not in the cache',
                slug="cache-unknown-name",
                where="pgversus servers",
                found=f'"{name}"',
                expected="the name of a server in the cache; pgversus servers also lists servers installed elsewhere",
                to_do=f"did you mean {near[0]}?" if near else "list the servers with: pgversus servers",
            )
    return [builds[name] for name in dict.fromkeys(names)] if names else list(builds.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of checking every file of a build."""

    problems: tuple[str, ...]
    """Empty if the build is unchanged."""
    has_checksums: bool
    """Whether checksums exist to compare the files with: earlier versions of pgversus stored none."""

    def __str__(self) -> str:
        """Return the result as text."""
        if self.problems:
            return "; ".join(self.problems)
        return "unchanged" if self.has_checksums else "runs; no checksums were stored when it was installed"


def verified(build: CachedBuild, user: ServerUser) -> Verified:
    """Return the problems of a cached build: changed files, missing libraries, a different version.

    user: the user to run its programs as.
    """
    manifest = read_manifest(build.directory)
    if manifest is None:
        return Verified(problems=("incomplete: its manifest cannot be read",), has_checksums=False)
    known, programs = manifest.files_sha256, build.directory / manifest.bin
    problems = (
        *_changes(build, known),
        *_what_does_not_run(programs, manifest.version, user),
    )
    return Verified(problems=problems, has_checksums=known is not None)


def _changes(build: CachedBuild, known: Mapping[str, str] | None) -> Iterator[str]:
    changed = [] if known is None else changed_files(build.directory, known)
    if changed:
        more = f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
        yield f"changed since the build: {', '.join(changed[:_MOST_SHOWN])}{more}"


def _what_does_not_run(programs: Path, version: str, user: ServerUser) -> Iterator[str]:
    if missing := missing_libraries(programs, user):
        yield f"missing libraries: {', '.join(missing)}"
        return
    try:
        if (found := read_version(programs, user)) != version:
            yield f"reports version {found}"
    except BuildError as error:
        yield error.found


def _cached(build: CachedBuild, user: ServerUser) -> InstalledServer:
    origin, _, version = build.name.partition("-")
    made = build.built.made_from if build.built is not None else None
    programs = next((path.parent for path in sorted(build.directory.glob("**/bin/postgres"))), build.directory / "bin")
    return InstalledServer(
        name=build.name,
        version=build.built.version if build.built is not None else version,
        origin=origin,
        block_size_bytes=_block_size(programs, user),
        flags=_flags(programs, user),
        options="" if made is None else str(made.options),
        size_bytes=build.size_bytes,
        directory=str(build.directory),
        made_from="" if made is None else _inputs_text(made),
    )


def _inputs_text(made: BuildInputs) -> str:
    """Return what distinguishes builds with the same options: source, manner unless it is the usual one, compiler."""
    system = [] if made.manner.system in (None, BuildSystem.CONFIGURE) else [made.manner.system.value]
    profile = [] if made.manner.profile is BuildProfile.MINIMAL else [made.manner.profile.value]
    return ", ".join([made.source.words, *profile, *system, made.compiler])


def _installed(user: ServerUser) -> Iterator[InstalledServer]:
    directories = {path.resolve() for pattern in _INSTALLED for path in Path("/").glob(pattern[1:])}
    for directory in sorted(directories):
        try:
            version = read_version(directory, user)
        except BuildError:
            # A client alone, or a server that cannot run here: nothing to compare.
            continue
        yield InstalledServer(
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
    """Return the block size that the program reports, which needs no cluster; None if it cannot."""
    arguments = [str(programs / "postgres"), "-C", "block_size", "-c", "config_file=/dev/null", "-D", "/"]
    try:
        output = run(arguments, user=user, directory=Path("/")).stdout.strip()
    except OSError:
        return None
    return int(output) if output.isdecimal() else None


def _flags(programs: Path, user: ServerUser) -> str:
    for file in sorted((programs.parent / "lib").glob("**/pgxs/src/Makefile.global")):
        # Without permission to read it, pg_config may still answer.
        with suppress(OSError):
            if match := _CFLAGS.search(file.read_text(encoding="utf-8", errors="replace")):
                return _notable_flags(match[1])
    try:
        return _notable_flags(run([str(programs / "pg_config"), "--cflags"], user=user, directory=Path("/")).stdout)
    except OSError:
        return ""


def _notable_flags(flags: str) -> str:
    return " ".join(_SAYS_LITTLE.sub("", flags).split())


_KEY_SHOWN = 4
# Digits of a key that are enough to name it, if they are unique.


def cached_things(cache: Cache) -> list[CachedThing]:
    """Return everything in the cache, builds first."""
    return [
        *map(_build_shown, cached_builds(cache)),
        *(shown for tarball in stored_tarballs(cache) for shown in _source_shown(tarball)),
        *_ccache_shown(cache.ccache),
        *map(_snapshot_shown, reversed(cached_snapshots(cache))),
    ]


def named(things: Sequence[CachedThing], names: Sequence[str]) -> list[CachedThing]:
    """Return the named things; a snapshot may be named by the first digits of its key. StudyError if unknown."""
    return [_named(things, name) for name in dict.fromkeys(names)]


def take_out(cache: Cache, things: Sequence[CachedThing]) -> list[CachedThing]:
    """Remove things from the cache and return those that stay because a run uses them. OSError if a removal fails.

    Snapshots are removed at once, since a run that uses one has it in its own directory.
    """
    builds = {build.name: build for build in cached_builds(cache)}
    stay = []
    for thing in things:
        if thing.kind is CachedKind.SNAPSHOT:
            remove(cache.snapshots / thing.name)
        elif thing.kind is CachedKind.SOURCE:
            remove_stored(cache.sources / thing.name)
        elif thing.kind is CachedKind.CCACHE:
            with unused(cache.ccache) as is_free:
                if is_free:
                    shutil.rmtree(cache.ccache)
                else:
                    stay.append(thing)
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
            f'"{name}" is not in the cache' if not found else f'"{name}" matches more than one name',
            slug="cache-unknown-name",
            where="the cache",
            found=", ".join(thing.name for thing in found) or f'"{name}"',
            expected="a name shown by pgversus cache, or the first digits of a snapshot's name",
            to_do="list the contents with: pgversus cache",
        )
    return found[0]


def _build_shown(build: CachedBuild) -> CachedThing:
    return CachedThing(
        kind=CachedKind.BUILD,
        name=build.name,
        size_bytes=build.size_bytes,
        last_used=build.last_used,
        what=_build_text(build),
    )


def _source_shown(tarball: Path) -> Iterator[CachedThing]:
    for found in states_of([tarball]):
        yield CachedThing(
            kind=CachedKind.SOURCE,
            name=tarball.name,
            size_bytes=found.st_size,
            last_used=found.st_mtime,
            what="a tarball of PostgreSQL's source",
        )


def _ccache_shown(directory: Path) -> Iterator[CachedThing]:
    # A build that runs elsewhere renames and removes files meanwhile.
    paths = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    files = list(states_of(paths))
    if files:
        yield CachedThing(
            kind=CachedKind.CCACHE,
            name=directory.name,
            size_bytes=sum(found.st_size for found in files),
            last_used=max(found.st_mtime for found in files),
            what="compiler output, reused for unchanged files",
        )


def _build_text(build: CachedBuild) -> str:
    if not build.is_from_source:
        family, _, version = build.name.partition("-")
        return f"PostgreSQL {version} of the {family} family"
    if build.built is None or build.built.made_from is None:
        return "not readable"
    made = build.built.made_from
    return f"PostgreSQL {build.built.version}{made.options} built from {made.source.words}"


def _snapshot_shown(snapshot: CachedSnapshot) -> CachedThing:
    record = snapshot.record()
    return CachedThing(
        kind=CachedKind.SNAPSHOT,
        name=snapshot.key,
        size_bytes=snapshot.size_bytes,
        last_used=snapshot.last_used,
        what="not readable" if record is None else _snapshot_text(record.made_of.hidden),
    )


def _snapshot_text(recipe: SnapshotKey) -> str:
    parts = [f"PostgreSQL {recipe.version} ({recipe.origin})"]
    if recipe.restore_sha256 is not None:
        parts.append("a dump")
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
