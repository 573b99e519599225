"""Room on disk for the data of a study: asked for beforehand, and made from what is kept for later runs."""

import shutil
from collections.abc import Callable

from pgversus.errors import HostError
from pgversus.host.directories import Cache
from pgversus.lab.data.cache_room import free_at_least, unused_bytes
from pgversus.study.needs import Needs
from pgversus.text.units import count, size


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
