"""Sources of releases: from where the user keeps them, from earlier times, else by way of apt.

PGVERSUS_SOURCES names a directory of tarballs, or an address with {version} in it.
"""

import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.postgres.builds.model import Notify, NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.debian import AptError, debian_archive, released_version
from pgversus.postgres.builds.source.download import DownloadError, downloaded, name_of, place_of
from pgversus.postgres.builds.source.source import Source
from pgversus.study.servers import Release, Version

VARIABLE = "PGVERSUS_SOURCES"
_NAME = re.compile(r"postgresql-(\d+\.\d+)\.(?:tar\.\w+|tgz|tar)")
_FRESH_S = 24 * 3600.0
_BY_APT = "the index that the distribution signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A tarball and the version that is in it."""

    version: Version
    path: Path


def release_source(release: Release, cache: Cache, notify: Notify, progress: NotifyBytes) -> Source:
    """The source of a release, fetched where it is not here; BuildError that says what was tried."""
    tried: list[str] = []
    given = os.environ.get(VARIABLE, "")
    if given and (found := _of_user(release, given, cache, progress, tried)) is not None:
        return found
    kept = _newest(release, _kept(cache.sources))
    if kept is not None and (release.minor is not None or time.time() - kept.path.stat().st_mtime < _FRESH_S):
        return _of_apt(kept)
    notify(f"asking apt for the source of PostgreSQL {release}")
    try:
        return _of_apt(_fetched(release, cache))
    except AptError as error:
        if kept is not None:
            notify(f"PostgreSQL {kept.version} is taken, which is here already: {error}")
            return _of_apt(kept)
        raise _no_source(release, [*tried, f"apt ({error})"]) from error


def source_here(release: Release, cache: Cache) -> Source | None:
    """The same without fetching anything: None for one that is not on this host yet."""
    given = os.environ.get(VARIABLE, "")
    if given and not _is_address(given):
        mine = _newest(release, _kept(Path(given)))
        if mine is not None:
            return archive_source(mine.path)
    elif given and release.minor is not None:
        place = place_of(given.replace("{version}", str(release)), cache)
        if place.exists():
            return archive_source(place, name=name_of(place))
    kept = _newest(release, _kept(cache.sources))
    return None if kept is None else _of_apt(kept)


def kept_tarballs(cache: Cache) -> list[Path]:
    """Every tarball in the cache, by name."""
    return sorted(path for path in cache.sources.glob("*") if is_archive(path))


def _of_apt(kept: _Kept) -> Source:
    return archive_source(kept.path, checked=_BY_APT)


def _of_user(release: Release, given: str, cache: Cache, progress: NotifyBytes, tried: list[str]) -> Source | None:
    """From where the user keeps them; None, and why, when it is not there."""
    if not _is_address(given):
        mine = _newest(release, _kept(Path(given)))
        if mine is None:
            tried.append(
                f"{given} ({VARIABLE}; no postgresql-{release}{'' if release.minor is not None else '.*'}.tar.*)"
            )
        return None if mine is None else archive_source(mine.path)
    if "{version}" not in given:
        tried.append(f"{VARIABLE} (an address needs {{version}} in it)")
        return None
    if release.minor is None:
        tried.append(f"{VARIABLE} (an address cannot be asked for the newest {release}: name the minor)")
        return None
    try:
        return downloaded(given.replace("{version}", str(release)), cache, progress)
    except DownloadError as error:
        tried.append(f"{VARIABLE} ({error})")
        return None


def _is_address(text: str) -> bool:
    return "://" in text


def _fetched(release: Release, cache: Cache) -> _Kept:
    """By way of apt, kept under the name that it was published with. AptError when there is none."""
    with FileLock(cache.staging / "apt.lock"):
        archive, text = debian_archive(release, cache.staging / "apt")
        version = released_version(text)
        assert version is not None  # noqa: S101 - only such are chosen
        suffix = archive.name.partition(".orig")[2]
        place = cache.sources / f"postgresql-{version}{suffix}"
        part = place.with_name(f"{place.name}.part")
        shutil.copyfile(archive, part)
        part.rename(place)
        # Lists of packages, tens of megabytes, which are of another day when they are asked for again.
        shutil.rmtree(cache.staging / "apt", ignore_errors=True)
    return _Kept(version=version, path=place)


def _kept(directory: Path) -> list[_Kept]:
    if not directory.is_dir():
        return []
    found = []
    for path in sorted(directory.iterdir()):
        match = _NAME.fullmatch(path.name)
        version = released_version(match[1]) if match and is_archive(path) else None
        if version is not None:
            found.append(_Kept(version=version, path=path))
    return found


def _newest(release: Release, kept: list[_Kept]) -> _Kept | None:
    return max((one for one in kept if release.admits(one.version)), key=lambda one: one.version, default=None)


def _no_source(release: Release, tried: list[str]) -> BuildError:
    return BuildError(
        f"the source of PostgreSQL {release} cannot be had",
        slug="build-no-source",
        where=f"server {release}",
        found=f"tried: {'; '.join(tried)}",
        expected="a tarball of that version",
        to_do=f"give it: ./postgresql-{release}.tar.bz2 in place of {release}, or keep tarballs in a directory and "
        f"name it in {VARIABLE}; what is ready made needs no source: zonky:{release}",
    )
