"""What a study would do on this host, without doing it; and the refusal of one that has no room."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import HostError
from pgversus.host.directories import Cache, open_cache
from pgversus.postgres.builds.provide import missing_builds
from pgversus.report.units import size
from pgversus.store.files import holds_results
from pgversus.store.reading import read_results
from pgversus.study.needs import Needs, needs_of
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What would be done."""

    study: Study
    needs: Needs
    downloads: tuple[str, ...]
    """Builds that are not in the cache yet."""
    free_bytes: int
    """Where data would lie."""
    blocks_there: int
    """Of an earlier run of the same study."""
    results: str


def dry_run(study: Study, results: Path) -> DryRun:
    """What running this study would do; BuildError for a version that cannot be had, HostError without room."""
    cache = open_cache()
    needs = needs_of(study)
    check_room(needs, cache)
    names = list(dict.fromkeys(arm.server for context in study.contexts for arm in context.comparison.arms))
    earlier = read_results(results).contexts if holds_results(results) else ()
    return DryRun(
        study=study,
        needs=needs,
        downloads=missing_builds(names, cache),
        free_bytes=shutil.disk_usage(cache.runs).free,
        blocks_there=sum(len(one.blocks) for one in earlier),
        results=str(results),
    )


def check_room(needs: Needs, cache: Cache) -> None:
    """HostError when the data of a study would not fit: better now than after hours."""
    free = shutil.disk_usage(cache.runs).free
    if needs.disk_bytes > free:
        raise HostError(
            "there is not enough room for the data of this study",
            slug="host-no-room",
            where=str(cache.runs),
            found=f"{size(free)} free",
            expected=f"about {size(needs.disk_bytes)}: loaded clusters and the copies to run on",
            to_do="make room, name another file system in PGVERSUS_CACHE, or ask for a smaller scale",
        )
