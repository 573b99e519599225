"""How much the cache may keep, and what goes first: loaded data can be made again, so they give way to all else."""

import os
import shutil

from pgversus.host.directories import Cache
from pgversus.lab.data.snapshot_cache import kept_snapshots, remove
from pgversus.text.units import parse_size

_VARIABLE = "PGVERSUS_SNAPSHOTS"
_DEFAULT_BYTES = 20 * 10**9
_FREE_SHARE = 0.1
# Of the file system: what is kept never takes it from others.


def most_kept_bytes() -> int:
    """The most that snapshots in the cache may weigh: PGVERSUS_SNAPSHOTS, else 20 GB; StudyError when it is no size."""
    text = os.environ.get(_VARIABLE, "").strip()
    return parse_size(text, _VARIABLE) if text else _DEFAULT_BYTES


def make_room_for(new_bytes: int, cache: Cache, most_bytes: int) -> bool:
    """Whether a new snapshot of that size may be kept; the least recently used have then gone for it.

    A tenth of the file system stays free, also while the run that has made the new one has its own copy.
    """
    kept = kept_snapshots(cache)
    there = sum(one.size_bytes for one in kept)
    usage = shutil.disk_usage(cache.root)
    most = min(most_bytes, there + usage.free - _FREE_SHARE * usage.total)
    if new_bytes > most:
        return False
    for one in kept:
        if there + new_bytes <= most:
            break
        remove(one.directory)
        there -= one.size_bytes
    return True


def unused_bytes(cache: Cache) -> int:
    """What removing every kept snapshot that no run has taken would give."""
    return sum(one.size_bytes for one in kept_snapshots(cache) if one.gives_room)


def free_at_least(wanted_bytes: float, cache: Cache) -> list[str]:
    """Remove kept snapshots that no run has, the least recently used first, until so much is free; their names."""
    removed = []
    for one in kept_snapshots(cache):
        if shutil.disk_usage(cache.runs).free >= wanted_bytes:
            break
        if one.gives_room:
            remove(one.directory)
            removed.append(one.key)
    return removed
