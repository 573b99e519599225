"""Disk space for the data of a study and the size limit of the snapshot cache."""

import os
import shutil
from collections.abc import Callable, Sequence

from pgversus.data.snapshot_cache import CachedSnapshot, cached_snapshots, remove
from pgversus.errors import HostError
from pgversus.host.directories import Cache
from pgversus.study.needs import Needs
from pgversus.text.units import count, parse_size, size

_VARIABLE = "PGVERSUS_SNAPSHOTS"
_DEFAULT_BYTES = 20 * 10**9
_FREE_SHARE = 0.1
"""Share of the file system that the cache leaves free."""


def most_kept_bytes() -> int:
    """Return the size limit of the snapshot cache: PGVERSUS_SNAPSHOTS, or 20 GB; StudyError for an invalid size."""
    text = os.environ.get(_VARIABLE, "").strip()
    return parse_size(text, _VARIABLE) if text else _DEFAULT_BYTES


def fit_into_quota(new_bytes: int, cache: Cache, most_bytes: int) -> bool:
    """Remove the least recently used snapshots to fit a new one; return False, removing none, if it cannot fit.

    A tenth of the file system stays free, even while the run that created the new snapshot has its own copy.
    """
    kept = cached_snapshots(cache)
    there = sum(one.size_bytes for one in kept)
    usage = shutil.disk_usage(cache.root)
    most = min(most_bytes, there + usage.free - _FREE_SHARE * usage.total)
    if new_bytes > most:
        return False
    _reduce(kept, most - new_bytes)
    return True


def reduce_to(most_bytes: int, cache: Cache) -> None:
    """Remove the least recently used snapshots until the cache has at most this size, however full the disk is."""
    _reduce(cached_snapshots(cache), most_bytes)


def _reduce(kept: Sequence[CachedSnapshot], most_bytes: float) -> None:
    there = sum(one.size_bytes for one in kept)
    for one in kept:
        if there <= most_bytes:
            break
        remove(one.directory)
        there -= one.size_bytes


def unused_bytes(cache: Cache) -> int:
    """Return the space that removing all cached snapshots not in use by a run would free, in bytes."""
    return sum(one.size_bytes for one in cached_snapshots(cache) if one.gives_room)


def check_room(needs: Needs, cache: Cache) -> None:
    """Raise HostError if the data of a study would not fit, even after removing all unused cached snapshots."""
    free = shutil.disk_usage(cache.runs).free
    if needs.disk_bytes > free and needs.disk_bytes > free + unused_bytes(cache):
        raise _no_room(needs, free, cache)


def free_space_for(needs: Needs, cache: Cache, say: Callable[[str], None]) -> None:
    """Remove cached snapshots until the data of a study fit; HostError at once, not after hours, if they cannot."""
    check_room(needs, cache)
    free_up(needs.disk_bytes, cache, say)
    free = shutil.disk_usage(cache.runs).free
    if needs.disk_bytes > free:
        raise _no_room(needs, free, cache)


def free_up(wanted_bytes: float, cache: Cache, say: Callable[[str], None]) -> None:
    """Remove unused cached snapshots, least recently used first, until this much space is free or none is left."""
    if shutil.disk_usage(cache.runs).free >= wanted_bytes:
        return
    removed = 0
    for one in cached_snapshots(cache):
        if shutil.disk_usage(cache.runs).free >= wanted_bytes:
            break
        if one.gives_room:
            remove(one.directory)
            removed += 1
    if removed:
        say(f"removed {count(removed, 'cached snapshot')} to free disk space")


def _no_room(needs: Needs, free: int, cache: Cache) -> HostError:
    return HostError(
        "not enough disk space for the data of this study",
        slug="host-no-room",
        where=str(cache.runs),
        found=f"{size(free)} free",
        expected=f"about {size(needs.disk_bytes)} for loaded clusters and working copies",
        to_do="free disk space, set PGVERSUS_CACHE to a directory on a different file system, or "
        + (
            f"leave out the largest data ([[exclude]]), such as {needs.largest}"
            if needs.largest
            else "use smaller data"
        ),
    )
