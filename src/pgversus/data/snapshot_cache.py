"""Snapshots that outlive their run: put into the cache whole or not at all, taken out by hard links, checked each time.

CACHE/snapshots/KEY/
    data/           a cleanly stopped cluster
    snapshot.json   what it is made of, a manifest of its files, what its tables hold; its mtime is the last use
"""

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.data.snapshot_key import SnapshotKey
from pgversus.errors import HostError
from pgversus.host.commands import run
from pgversus.host.directories import Cache, make_directory
from pgversus.host.files import TreeEntry, first_change, is_linked, manifest, take_tree, tree_sha256
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_private
from pgversus.postgres.cluster import make_home
from pgversus.postgres.fingerprint import Fingerprint
from pgversus.text.redaction import value_without_secrets

_DATA, _RECORD = "data", "snapshot.json"
_REMOVED = ".removed-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRecord:
    """What is known of a snapshot without a server on it."""

    made_of: SnapshotKey
    made_at: str
    """UTC, ISO 8601."""
    size_bytes: Annotated[int, Field(ge=0, lt=2**63)]
    tree_sha256: str
    """Over the names and contents of all its files."""
    has_prewarm: bool
    fingerprint: Fingerprint
    files: tuple[TreeEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSnapshot:
    """A snapshot in the cache, whether or not it can be used."""

    directory: Path
    record: SnapshotRecord | None
    """None where it cannot be read."""
    last_used: float
    """Seconds since 1970."""

    @property
    def key(self) -> str:
        """Its name."""
        return self.directory.name

    @property
    def size_bytes(self) -> int:
        """Of its files; 0 where nobody knows."""
        return self.record.size_bytes if self.record is not None else 0

    @property
    def gives_room(self) -> bool:
        """Whether removing it makes room now: while a run has it, its files stay."""
        return not is_linked(self.directory / _DATA)


_CODEC = TypeAdapter(SnapshotRecord)


def _record_of(
    data: Path, recipe: SnapshotKey, *, size_bytes: int, fingerprint: Fingerprint, has_prewarm: bool
) -> SnapshotRecord:
    """Return the record of a new snapshot, every file of it read once; OSError or ValueError when it cannot be read."""
    files = manifest(data)
    return SnapshotRecord(
        made_of=recipe,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        size_bytes=size_bytes,
        tree_sha256=tree_sha256(files),
        has_prewarm=has_prewarm,
        fingerprint=fingerprint,
        files=files,
    )


def take(cache: Cache, recipe: SnapshotKey, directory: Path, say: Callable[[str], None]) -> SnapshotRecord | None:
    """A kept snapshot in directory/data, which is made here; None, and no directory, where there is none to be used.

    One that is not what it was when it was kept is removed. HostError when it cannot be taken for another reason.
    """
    kept = cache.snapshots / recipe.key
    record = _read(kept)
    if record is None and not kept.exists():
        return None
    problem = "it cannot be read" if record is None else ""
    if record is not None:
        data = make_home(directory)
        problem = _taken(kept, record, recipe, data)
        if not problem:
            # It may be removed by now; we have it.
            _touch(kept)
            return record
        shutil.rmtree(directory, ignore_errors=True)
    if kept.exists():
        say(f"the kept snapshot {recipe.key} is not what it was ({problem}): removed, and made anew")
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
) -> bool:
    """Put a snapshot into the cache; False where another run was quicker.

    OSError, ValueError or HostError when it cannot be done. It gets its name by one rename once all of it is on disk,
    so that a kill or a full disk leaves nothing half-written there. scratch: a path of the run's own for what is not
    done yet, which goes with the run.
    """
    try:
        scratch.mkdir(mode=PRIVATE_DIRECTORY)
        take_tree(data, scratch / _DATA)
        record = _record_of(
            scratch / _DATA, recipe, size_bytes=size_bytes, fingerprint=fingerprint, has_prewarm=has_prewarm
        )
        write_private(scratch / _RECORD, _CODEC.dump_json(_without_secrets(record)).decode())
        _sync(scratch)
        make_directory(cache.snapshots, PRIVATE_DIRECTORY)
        return _renamed(scratch, cache.snapshots / record.made_of.key)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def kept_snapshots(cache: Cache) -> list[KeptSnapshot]:
    """All that are kept, the least recently used first; what a killed removal has left is removed."""
    found = []
    for directory in cache.snapshots.iterdir() if cache.snapshots.is_dir() else ():
        if directory.name.startswith(_REMOVED):
            shutil.rmtree(directory, ignore_errors=True)
        elif directory.is_dir():
            found.append(KeptSnapshot(directory=directory, record=_read(directory), last_used=_last_used(directory)))
    return sorted(found, key=lambda one: (one.last_used, one.key))


def remove(kept: Path) -> None:
    """Remove a kept snapshot; one that is gone is no error. Whoever has taken it keeps it.

    By another name first, so that nobody finds half of it.
    """
    aside = kept.with_name(f"{_REMOVED}{secrets.token_hex(8)}")
    try:
        kept.rename(aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, ignore_errors=True)


def _taken(kept: Path, record: SnapshotRecord, recipe: SnapshotKey, data: Path) -> str:
    """Why what was taken to `data` is not the snapshot; empty where it is."""
    if record.made_of != recipe.hidden:
        return "it is made of something else"
    if not (kept / _DATA).is_dir():
        return "its data are missing"
    try:
        take_tree(kept / _DATA, data)
    except HostError:
        if kept.exists():
            raise
        return "it was removed meanwhile"
    # Of what we have, not of what is there: that may be on its way out.
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


def _last_used(directory: Path) -> float:
    try:
        return (directory / _RECORD).stat().st_mtime
    except OSError:
        # Of no use to anybody: the first to go.
        return 0.0


def _touch(kept: Path) -> None:
    try:
        os.utime(kept / _RECORD)
    except OSError:
        return


def _sync(directory: Path) -> None:
    """Everything of its file system to disk; OSError where that fails."""
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
    folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True
