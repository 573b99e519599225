"""Every server on this host: installed by others, fetched, or built here; and whether it is still what it was."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pgversus.builds.inspect import changed_files, missing_libraries, read_manifest, read_version
from pgversus.builds.model import MadeFrom
from pgversus.builds.provide import CachedBuild, cached_builds
from pgversus.errors import BuildError, StudyError
from pgversus.host.commands import run
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.report.servers import ServerHere
from pgversus.study.build_options import BuildProfile, BuildSystem

_INSTALLED = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/postgresql*/bin")
_MOST_SHOWN = 3
_CFLAGS = re.compile(r"^CFLAGS = (.*)$", re.MULTILINE)
_SAYS_LITTLE = re.compile(r"-W(?![lap],)\S*|-fno-strict-aliasing|-fwrapv|-fexcess-precision=standard")
# Warnings, and what configure gives every build.


def servers_here(cache: Cache, user: ServerUser) -> list[ServerHere]:
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
