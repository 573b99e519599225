"""Files of a build in the cache: its manifest; open to the servers' user, on disk before named, known by hashes."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from pydantic import TypeAdapter, ValidationError

from pgversus.host.hashes import file_sha256
from pgversus.postgres.builds.model import MANIFEST, MadeFrom


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What stands in the manifest of a build."""

    version: str
    bin: str
    """The path of its programs inside of its directory."""
    sha256: str
    files_sha256: dict[str, str] | None = None
    """As file_hashes has them; None where an earlier pgversus kept none."""
    made_from: MadeFrom | None = None
    """Of a build from source."""


_MANIFEST = TypeAdapter(Manifest)


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the build in this directory; None where there is none that can be read."""
    try:
        found = _MANIFEST.validate_json((directory / MANIFEST).read_bytes())
    except (OSError, ValidationError):
        return None
    programs = PurePath(found.bin)
    # Programs of this build are started, and none that lie elsewhere.
    return None if programs.is_absolute() or ".." in programs.parts else found


def open_to_all(directory: Path) -> None:
    """Set modes explicitly: under umask 077 the servers' user could not enter what was unpacked or installed."""
    directory.chmod(0o755)
    for path in directory.rglob("*"):
        if path.is_symlink():
            continue
        is_open = path.is_dir() or path.stat().st_mode & 0o100
        path.chmod(0o755 if is_open else 0o644)


def put_in_place(made: Path, place: Path) -> None:
    """Give a file or a directory its final name once all of it is on disk: after a crash it is whole, or not there."""
    for path in (made, *made.rglob("*")):
        if not path.is_symlink():
            _write_to_disk(path)
    made.rename(place)
    _write_to_disk(place.parent)


def file_hashes(directory: Path) -> dict[str, str]:
    """SHA-256 of every file but the manifest, by its path inside."""
    return {
        str(path.relative_to(directory)): file_sha256(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != MANIFEST
    }


def changed_files(directory: Path, known: Mapping[str, str]) -> list[str]:
    """Files that are gone, came later, or hold something else than when the build was made."""
    now = file_hashes(directory)
    return sorted(name for name in {*known, *now} if known.get(name) != now.get(name))


def _write_to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
