"""Room on disk for the data of a study, and how much of it the cache may keep."""

import os
import shutil
from collections.abc import Callable

from pgversus.data.snapshot_cache import kept_snapshots, remove
from pgversus.errors import HostError
from pgversus.host.directories import Cache
from pgversus.study.needs import Needs
from pgversus.text.units import count, parse_size, size

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


def check_room(needs: Needs, cache: Cache) -> None:
    """HostError when the data of a study would not fit, also if all that is kept for later runs went for it."""
    free = shutil.disk_usage(cache.runs).free
    if needs.disk_bytes > free and needs.disk_bytes > free + unused_bytes(cache):
        raise _no_room(needs, free, cache)


def make_room(needs: Needs, cache: Cache, say: Callable[[str], None]) -> None:
    """Remove kept snapshots until the data of a study fit; HostError, better now than after hours, when they do not."""
    check_room(needs, cache)
    free_up(needs.disk_bytes, cache, say)
    free = shutil.disk_usage(cache.runs).free
    if needs.disk_bytes > free:
        raise _no_room(needs, free, cache)


def free_up(wanted_bytes: float, cache: Cache, say: Callable[[str], None]) -> None:
    """Remove kept snapshots until so much is free, or no more can go."""
    if removed := free_at_least(wanted_bytes, cache):
        say(f"removed {count(len(removed), 'kept snapshot')} to make room")


def _no_room(needs: Needs, free: int, cache: Cache) -> HostError:
    return HostError(
        "there is not enough room for the data of this study",
        slug="host-no-room",
        where=str(cache.runs),
        found=f"{size(free)} free",
        expected=f"about {size(needs.disk_bytes)}: loaded clusters and the copies to run on",
        to_do="make room, name another file system in PGVERSUS_CACHE, or ask for a smaller scale",
    )
