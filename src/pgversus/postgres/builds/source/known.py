"""Sources of releases: from where the user keeps them, from earlier times, else by way of apt.

PGVERSUS_SOURCES names a directory of tarballs, or an address with {version} in it.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.hashes import file_sha256
from pgversus.host.private import private_lock
from pgversus.postgres.builds.model import Notify, NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.debian import AptError, debian_archive, released_version
from pgversus.postgres.builds.source.download import DownloadError, downloaded, name_of, place_of
from pgversus.postgres.builds.source.source import Source
from pgversus.postgres.builds.source.stored import store, stored_source
from pgversus.study.servers import Download, Release, Version

VARIABLE = "PGVERSUS_SOURCES"
_NAME = re.compile(r"postgresql-(\d+\.\d+)\.(?:tar\.\w+|tgz|tar)")
_FRESH_S = 24 * 3600.0
_BY_APT = "the index that the distribution signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A tarball that apt has fetched before."""

    version: Version
    fetched_at: float
    """Seconds since 1970."""
    source: Source


def release_source(release: Release, cache: Cache, notify: Notify, progress: NotifyBytes) -> Source:
    """The source of a release, fetched where it is not here; BuildError that says what was tried."""
    tried: list[str] = []
    given = os.environ.get(VARIABLE, "")
    if given and (found := _of_user(release, given, cache, progress, tried)) is not None:
        return found
    stored = _stored(release, cache)
    if stored is not None and (release.minor is not None or time.time() - stored.fetched_at < _FRESH_S):
        return stored.source
    notify(f"asking apt for the source of PostgreSQL {release}")
    try:
        return _fetched(release, cache)
    except AptError as error:
        if stored is not None:
            notify(f"PostgreSQL {stored.version} is taken, which is here already: {error}")
            return stored.source
        raise _no_source(release, [*tried, f"apt ({error})"]) from error


def source_here(release: Release, cache: Cache) -> Source | None:
    """The same without fetching anything: None for one that is not on this host yet."""
    given = os.environ.get(VARIABLE, "")
    if given and not _is_address(given):
        mine = _newest_of_user(release, Path(given))
        if mine is not None:
            return archive_source(mine)
    elif given and release.minor is not None:
        place = place_of(_download(given, release), cache)
        source = stored_source(place, name_of(place))
        if source is not None:
            return source
    stored = _stored(release, cache)
    return None if stored is None else stored.source


def _of_user(release: Release, given: str, cache: Cache, progress: NotifyBytes, tried: list[str]) -> Source | None:
    """From where the user keeps them; None, and why, when it is not there."""
    if not _is_address(given):
        mine = _newest_of_user(release, Path(given))
        if mine is None:
            tried.append(
                f"{given} ({VARIABLE}; no postgresql-{release}{'' if release.minor is not None else '.*'}.tar.*)"
            )
        return None if mine is None else archive_source(mine)
    if "{version}" not in given:
        tried.append(f"{VARIABLE} (an address needs {{version}} in it)")
        return None
    if release.minor is None:
        tried.append(f"{VARIABLE} (an address cannot be asked for the newest {release}: name the minor)")
        return None
    try:
        return downloaded(_download(given, release), cache, progress)
    except DownloadError as error:
        tried.append(f"{VARIABLE} ({error})")
        return None


def _is_address(text: str) -> bool:
    return "://" in text


def _download(given: str, release: Release) -> Download:
    return Download(address=given.replace("{version}", str(release)))


def _fetched(release: Release, cache: Cache) -> Source:
    """By way of apt, kept under the name that it was published with. AptError when there is none."""
    with private_lock(cache.staging / "apt.lock"), _apt_directory(cache) as directory:
        archive, text = debian_archive(release, directory)
        version = released_version(text)
        assert version is not None  # noqa: S101 - only such are chosen
        suffix = archive.name.partition(".orig")[2]
        place = cache.sources / f"postgresql-{version}{suffix}"
        part = directory / place.name
        shutil.copyfile(archive, part)
        store(part, place, sha256=file_sha256(part), checked=_BY_APT)
    return archive_source(place, checked=_BY_APT)


@contextmanager
def _apt_directory(cache: Cache) -> Iterator[Path]:
    """An empty directory for apt's lists and downloads, removed at the end, with what a killed run left in it before.

    Lists of packages are tens of megabytes, and of another day when they are needed again.
    """
    directory = cache.staging / "apt"
    shutil.rmtree(directory, ignore_errors=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _stored(release: Release, cache: Cache) -> _Stored | None:
    """The newest in the cache that is still what was stored there."""
    for version, path in sorted(_tarballs(release, cache.sources), reverse=True):
        source = stored_source(path, path.name)
        if source is not None:
            return _Stored(version=version, fetched_at=path.stat().st_mtime, source=source)
    return None


def _newest_of_user(release: Release, directory: Path) -> Path | None:
    return max(_tarballs(release, directory), default=(None, None))[1]


def _tarballs(release: Release, directory: Path) -> Iterator[tuple[Version, Path]]:
    """Version and path of the tarballs of a release in a directory, as far as their names tell."""
    for path in directory.iterdir() if directory.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        version = released_version(match[1]) if match and is_archive(path) else None
        if version is not None and release.admits(version):
            yield version, path


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
