"""The snapshot cache: snapshots are stored atomically, taken by hard links and verified each time.

CACHE/snapshots/KEY/
    data/           a cleanly stopped cluster
    snapshot.json   key, manifest of the files and fingerprint of the data; its mtime is the last use
"""

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.data.snapshot_key import SnapshotKey
from pgversus.errors import HostError
from pgversus.host.commands import run
from pgversus.host.directories import Cache, make_directory
from pgversus.host.files import TreeEntry, first_change, is_linked, manifest, take_tree
from pgversus.host.on_disk import sync_to_disk
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_private
from pgversus.postgres.cluster import make_home
from pgversus.postgres.fingerprint import Fingerprint
from pgversus.records.preparation import RestoreProblem
from pgversus.text.redaction import value_without_secrets

_DATA, _RECORD = "data", "snapshot.json"
_REMOVED = ".removed-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecord:
    """Stored properties of a snapshot. Without them, a server would have to be started to read them."""

    made_of: SnapshotKey
    size_bytes: Annotated[int, Field(ge=0, lt=2**63)]
    has_prewarm: bool
    fingerprint: Fingerprint
    files: tuple[TreeEntry, ...]
    not_restored: tuple[RestoreProblem, ...] = ()
    """Parts of a dump that its server rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSnapshot:
    """A snapshot in the cache, usable or not."""

    directory: Path
    size_bytes: int
    """Size of its files; 0 if unknown."""
    last_used: float
    """Seconds since 1970."""

    @property
    def key(self) -> str:
        """The cache key of the snapshot."""
        return self.directory.name

    @property
    def gives_room(self) -> bool:
        """Whether removing it frees space: its files stay on disk while a run uses them."""
        return not is_linked(self.directory / _DATA)

    def record(self) -> SnapshotRecord | None:
        """Read its record; None if that is not possible."""
        return _read(self.directory)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """The part of a record that contains the size: reading the entries of all files takes six times as long."""

    size_bytes: Annotated[int, Field(ge=0, lt=2**63)]


_CODEC, _SIZE = TypeAdapter(SnapshotRecord), TypeAdapter(_Size)


def take(cache: Cache, recipe: SnapshotKey, directory: Path, say: Callable[[str], None]) -> SnapshotRecord | None:
    """Take a cached snapshot to directory/data, which is created; return None if it is not cached.

    A snapshot that has changed since it was stored is removed. HostError if it cannot be taken for another reason.
    """
    kept = cache.snapshots / recipe.key
    record = _read(kept)
    if record is None and not kept.exists():
        return None
    problem = "its record cannot be read" if record is None else ""
    if record is not None:
        data = make_home(directory)
        problem = _taken(kept, record, recipe, data)
        if not problem:
            # It may have been removed meanwhile; the taken files remain.
            with suppress(OSError):
                os.utime(kept / _RECORD)
            return record
        shutil.rmtree(directory, ignore_errors=True)
    if kept.exists():
        say(f"removed cached snapshot {recipe.key}, which will be created again: {problem}")
        remove(kept)
    return None


def keep(
    cache: Cache,
    recipe: SnapshotKey,
    data: Path,
    scratch: Path,
    *,
    size_bytes: int,
    fingerprint: Fingerprint,
    has_prewarm: bool,
    not_restored: tuple[RestoreProblem, ...] = (),
) -> bool:
    """Store a snapshot in the cache; return False if another run has stored it first.

    It is renamed into place once it is completely on disk, so that a kill or a full disk leaves nothing half-written.
    OSError, ValueError or HostError if it cannot be stored. scratch: temporary path, removed with the run.
    """
    try:
        scratch.mkdir(mode=PRIVATE_DIRECTORY)
        take_tree(data, scratch / _DATA)
        # Reads every file once.
        files = manifest(scratch / _DATA)
        record = SnapshotRecord(
            made_of=recipe,
            size_bytes=size_bytes,
            has_prewarm=has_prewarm,
            fingerprint=fingerprint,
            files=files,
            not_restored=not_restored,
        )
        write_private(scratch / _RECORD, _CODEC.dump_json(_without_secrets(record)).decode())
        _sync(scratch)
        make_directory(cache.snapshots, PRIVATE_DIRECTORY)
        return _renamed(scratch, cache.snapshots / record.made_of.key)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def cached_snapshots(cache: Cache) -> list[CachedSnapshot]:
    """Return all cached snapshots, least recently used first; also finish interrupted removals."""
    found = []
    for directory in cache.snapshots.iterdir() if cache.snapshots.is_dir() else ():
        if directory.name.startswith(_REMOVED):
            shutil.rmtree(directory, ignore_errors=True)
        elif directory.is_dir():
            found.append(
                CachedSnapshot(directory=directory, size_bytes=_size(directory), last_used=_last_used(directory))
            )
    return sorted(found, key=lambda one: (one.last_used, one.key))


def remove(kept: Path) -> None:
    """Remove a cached snapshot, if it exists. Runs that have taken it are not affected.

    It is renamed first, so that no run finds a partial snapshot.
    """
    aside = kept.with_name(f"{_REMOVED}{secrets.token_hex(8)}")
    try:
        kept.rename(aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, ignore_errors=True)


def _taken(kept: Path, record: SnapshotRecord, recipe: SnapshotKey, data: Path) -> str:
    """Take a snapshot to `data` and verify it; return the problem, or an empty text."""
    if record.made_of != recipe.hidden:
        return "its key does not match its record"
    if not (kept / _DATA).is_dir():
        return "its data directory is missing"
    try:
        take_tree(kept / _DATA, data)
    except HostError:
        if kept.exists():
            raise
        return "it was removed meanwhile"
    # Verify the taken files: those in the cache may be about to be removed.
    return first_change(data, record.files, os.geteuid())


def _without_secrets(record: SnapshotRecord) -> SnapshotRecord:
    settings = {
        name: replace(found, value=value_without_secrets(name, found.value))
        for name, found in record.fingerprint.settings.items()
    }
    return replace(record, made_of=record.made_of.hidden, fingerprint=replace(record.fingerprint, settings=settings))


def _read(kept: Path) -> SnapshotRecord | None:
    try:
        return _CODEC.validate_json((kept / _RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


def _size(kept: Path) -> int:
    try:
        return _SIZE.validate_json((kept / _RECORD).read_bytes()).size_bytes
    except (OSError, ValidationError):
        return 0


def _last_used(directory: Path) -> float:
    try:
        return (directory / _RECORD).stat().st_mtime
    except OSError:
        # Unusable, so it is removed first.
        return 0.0


def _sync(directory: Path) -> None:
    """Write the whole file system to disk; OSError if that fails."""
    finished = run(["sync", "--file-system", str(directory)])
    if not finished.succeeded:
        raise OSError(finished.stderr.strip())


def _renamed(directory: Path, place: Path) -> bool:
    try:
        directory.rename(place)
    except OSError:
        if place.exists():
            return False
        raise
    sync_to_disk(place.parent)
    return True
