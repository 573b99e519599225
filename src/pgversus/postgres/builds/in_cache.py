"""Builds that are in the cache: which are used by a run just now, how big they are, and taking them out."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from pgversus.host.directories import Cache
from pgversus.host.in_use import in_use, unused
from pgversus.host.private import private_lock
from pgversus.postgres.builds.model import FROM_SOURCE, MANIFEST, Build
from pgversus.postgres.builds.source.build import built


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedBuild:
    """A build in the cache."""

    directory: Path
    size_bytes: int
    last_used: float
    """Seconds since 1970."""

    built: Build | None = None
    """Of one that was built here; None where it cannot be read."""

    @property
    def name(self) -> str:
        """Family and version, `zonky-17.8`; of what was built here `source-` and digits."""
        return self.directory.name

    @property
    def is_from_source(self) -> bool:
        """Whether it was built here."""
        return self.name.startswith(f"{FROM_SOURCE}-")


@contextmanager
def using_builds(builds: Iterable[Build | None], cache: Cache) -> Iterator[None]:
    """While this lasts, nobody takes these out of the cache; OSError where somebody just has."""
    directories = {cache.builds / name for build in builds if build is not None if (name := _name_in(cache, build))}
    with in_use(sorted(directories)):
        for directory in directories:
            os.utime(directory / MANIFEST)
        yield


def cached_builds(cache: Cache) -> list[CachedBuild]:
    """All builds in the cache, by name."""
    return [
        CachedBuild(
            directory=directory,
            size_bytes=_size(directory),
            last_used=_last_used(directory),
            built=built(cache, directory.name) if directory.name.startswith(f"{FROM_SOURCE}-") else None,
        )
        for directory in sorted(cache.builds.iterdir())
        if directory.is_dir()
    ]


def remove_build(build: CachedBuild, cache: Cache) -> bool:
    """Whether it was taken out of the cache; not while a run uses it or fetches it. OSError when it cannot be."""
    try:
        with private_lock(cache.staging / f"{build.name}.lock", blocking=False), unused(build.directory) as is_free:
            if is_free:
                # First what makes it a build, so that nobody finds half of one.
                (build.directory / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(build.directory)
            return is_free
    except Timeout:
        return False


def _name_in(cache: Cache, build: Build) -> str | None:
    """Of a build of the cache; None for a directory of the user's."""
    if not build.bin_directory.is_relative_to(cache.builds):
        return None
    return build.bin_directory.relative_to(cache.builds).parts[0]


def _size(directory: Path) -> int:
    return sum(path.lstat().st_size for path in directory.rglob("*"))


def _last_used(directory: Path) -> float:
    manifest = directory / MANIFEST
    return (manifest if manifest.exists() else directory).stat().st_mtime
