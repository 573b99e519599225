"""Programs and files of a build: version, libraries, hashes."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath

from pydantic import TypeAdapter, ValidationError

from pgversus.builds.model import MANIFEST, Build, BuildInputs
from pgversus.errors import BuildError
from pgversus.host.commands import run
from pgversus.host.files import file_sha256, readable_sha256
from pgversus.host.identity import ServerUser
from pgversus.study.servers import OLDEST_MAJOR

_VERSION = re.compile(r"^postgres \(PostgreSQL\) (.+)$", re.MULTILINE)
_MAJOR = re.compile(r"\d+")
_MOST_WORDS = 500
# The set of libraries varies between versions of glibc.
_C_LIBRARY = re.compile(r"lib(c|m|rt|dl|pthread|resolv|util)\.so|linux-vdso|ld-linux")
_NEEDED = ("postgres", "initdb")


def inspect_bin_directory(directory: Path, user: ServerUser) -> Build:
    """Return the build in the user's bin directory; BuildError if it is not one or the servers' user cannot run it."""
    directory = directory.absolute()
    check_bin_directory(directory, user)
    version = read_version(directory, user)
    if (major := _MAJOR.match(version)) is not None and int(major[0]) < OLDEST_MAJOR:
        raise BuildError(
            f"PostgreSQL {version} is too old",
            slug="build-too-old",
            where=str(directory),
            found=version,
            expected=f"PostgreSQL {OLDEST_MAJOR} or newer",
            to_do="compare newer versions",
        )
    return Build(version=version, bin_directory=directory, origin="bin directory")


def check_bin_directory(directory: Path, user: ServerUser) -> None:
    """Raise a BuildError if a directory lacks the server programs or cannot be read; nothing is run."""
    try:
        missing = [name for name in _NEEDED if not (directory / name).is_file()]
    except OSError as error:
        raise _cannot_run(directory, user, error.strerror or str(error)) from error
    if missing:
        inner = directory / "bin"
        raise BuildError(
            "this directory does not contain a PostgreSQL server",
            slug="build-not-a-bin-directory",
            where=str(directory),
            found=f"no {' and no '.join(missing)}" if directory.is_dir() else "no directory",
            expected="a bin directory that contains postgres and initdb, or PostgreSQL's source",
            to_do=f"use {inner}" if (inner / "postgres").is_file() else "run pg_config --bindir to find the directory",
        )


def read_version(bin_directory: Path, user: ServerUser) -> str:
    """Return the output of `postgres --version`, run as the servers' user; BuildError if it cannot be run."""
    program = bin_directory / "postgres"
    try:
        finished = run([str(program), "--version"], user=user, directory=Path("/"))
    except OSError as error:
        raise _cannot_run(program, user, error.strerror or str(error)) from error
    match = _VERSION.search(finished.stdout)
    if not finished.succeeded or match is None:
        raise _cannot_run(program, user, (finished.stderr.strip() or finished.stdout.strip())[:_MOST_WORDS])
    return match[1].strip()


def missing_libraries(bin_directory: Path, user: ServerUser) -> tuple[str, ...]:
    """Return the names of shared libraries that postgres requires and this host lacks; empty without ldd."""
    return tuple(sorted({line.split()[0] for line in _ldd(bin_directory, user) if "not found" in line}))


@cache
def linked_libraries(bin_directory: Path, user: ServerUser) -> frozenset[str]:
    """Return the libraries that postgres is linked with, by name and version, except those of the C library.

    Empty without ldd.
    """
    names = (line.split()[0] for line in _ldd(bin_directory, user) if "=>" in line)
    return frozenset(name for name in names if not _C_LIBRARY.match(name))


def _ldd(bin_directory: Path, user: ServerUser) -> list[str]:
    if shutil.which("ldd") is None:
        return []
    # As the given user, since ldd may run the program itself, through the loader that it specifies.
    return run(["ldd", str(bin_directory / "postgres")], user=user, directory=Path("/")).stdout.splitlines()


def _cannot_run(program: Path, user: ServerUser, words: str) -> BuildError:
    name = f'user "{user.name}"'
    return BuildError(
        f"postgres cannot be run as {name}",
        slug="build-cannot-run",
        where=str(program),
        found=words,
        expected="postgres (PostgreSQL) VERSION",
        to_do=f"check that it is a PostgreSQL server and that {name} may access it and every directory above it (o+rx)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of a build."""

    version: str
    bin: str
    """The path of its programs, relative to its directory."""
    sha256: str
    files_sha256: dict[str, str] | None = None
    """The hashes that file_hashes() returns; None in manifests of earlier versions of pgversus."""
    made_from: BuildInputs | None = None
    """Set for builds from source."""


_MANIFEST = TypeAdapter(Manifest)


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the build in this directory; None if it is missing or invalid."""
    try:
        found = _MANIFEST.validate_json((directory / MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None
    programs = PurePath(found.bin)
    # Never run programs outside of the build; no path contains a null byte.
    return None if programs.is_absolute() or ".." in programs.parts or "\0" in found.bin else found


def complete_build(directory: Path, origin: str) -> Build | None:
    """Return the build in a directory of the cache; None if it is missing or incomplete."""
    manifest = read_manifest(directory)
    if manifest is None:
        return None
    return Build(
        version=manifest.version,
        bin_directory=directory / manifest.bin,
        origin=origin,
        sha256=manifest.sha256,
        made_from=manifest.made_from,
    )


def open_to_all(directory: Path) -> None:
    """Make a tree readable for all, whatever the umask: with 077 the servers' user could not enter it."""
    directory.chmod(0o755)
    for path in directory.rglob("*"):
        if path.is_symlink():
            continue
        is_open = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_open else 0o644)


def file_hashes(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of every file except the manifest, by relative path; OSError if one cannot be read."""
    return {name: file_sha256(directory / name) for name in _file_names(directory)}


def changed_files(directory: Path, known: Mapping[str, str]) -> list[str]:
    """Return the files that were removed, added or modified since the build was made, or cannot be read."""
    now = {name: readable_sha256(directory / name) for name in _file_names(directory)}
    return sorted(name for name in {*known, *now} if name not in known or known[name] != now.get(name))


def _file_names(directory: Path) -> list[str]:
    """Return the relative paths of all files except the manifest, in order."""
    return [
        str(path.relative_to(directory))
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink() and path != directory / MANIFEST
    ]
