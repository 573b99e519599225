"""Conversion of server names to build orders: all sources are located and verified before the first build starts.

PGVERSUS_SOURCES is a directory of tarballs, or an address that contains {version}.
"""

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgversus.builds.build_commands import check_tools, compiler_version
from pgversus.builds.compile import RECENT_MAJOR, built, major_of
from pgversus.builds.debian import AptError, debian_archive
from pgversus.builds.model import Notify, NotifyBytes, Order, SourceCode, order_of
from pgversus.builds.source_tree import commit_source, is_tree, no_tree, tree_source
from pgversus.builds.tarballs import (
    DownloadError,
    archive_source,
    downloaded,
    is_archive,
    name_of,
    place_of,
    store,
    stored_source,
)
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.files import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.study.build_options import BuildManner, BuildSystem
from pgversus.study.servers import (
    Checkout,
    Download,
    LocalPath,
    Release,
    ServerName,
    SourceBuild,
    Version,
    released_version,
)


def normalized_name(name: ServerName) -> ServerName:
    """Resolve a name against the file system: a path that contains source becomes a SourceBuild.

    A name that looks like a commit but is an existing directory, such as /opt/postgresql@17/bin, is that directory.
    """
    if isinstance(name, SourceBuild) and isinstance(name.source, Checkout) and Path(str(name)).is_dir():
        return normalized_name(LocalPath(path=str(name)))
    if isinstance(name, LocalPath) and _holds_source(Path(name.path)):
        return SourceBuild(source=name)
    return name


def local_orders(
    names: Iterable[SourceBuild],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    compilers: Mapping[ServerName, str],
) -> dict[SourceBuild, Order | None]:
    """Return the build order for each server without fetching anything; None if its source is not on this host yet.

    user: the user that builds.
    compilers: the compilers of existing earlier builds; other servers use the current compiler.
    BuildError if a path does not contain source, or if prerequisites are missing for builds that are not in the cache;
    it lists all of them.
    """
    sources = {name: _source_here(name, cache) for name in dict.fromkeys(names)}
    orders = {
        name: None if source is None else _order(name, source, manner, user, compilers)
        for name, source in sources.items()
    }
    _check_tools(orders, manner, cache, user)
    return orders


def fetched_orders(
    here: Mapping[SourceBuild, Order | None],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    notify: Notify,
    progress: NotifyBytes,
    compilers: Mapping[ServerName, str],
) -> dict[SourceBuild, Order]:
    """Complete the orders: fetch missing sources, and the newest minor of a requested major.

    BuildError if a source is unavailable or cannot be built here.
    """
    orders = {}
    for name, order in here.items():
        if order is not None and isinstance(name.source, LocalPath | Checkout):
            orders[name] = order
        else:
            orders[name] = _order(name, _fetched(name, cache, notify, progress), manner, user, compilers)
    _check_tools(orders, manner, cache, user)
    return orders


def _order(
    name: SourceBuild, source: SourceCode, manner: BuildManner, user: ServerUser, compilers: Mapping[ServerName, str]
) -> Order:
    compiler = compilers.get(name) or compiler_version(name.options, user)
    release = name.source if isinstance(name.source, Release) else None
    return order_of(str(name), source, name.options, manner, compiler, release)


def _check_tools(
    orders: Mapping[SourceBuild, Order | None], manner: BuildManner, cache: Cache, user: ServerUser
) -> None:
    lacking = [(name, order) for name, order in orders.items() if order is None or built(cache, order.name) is None]
    if lacking:
        # A missing source is a release or a tarball of one, which can be built with configure.
        systems = [order.made_from.manner.system if order is not None else manner.system for _, order in lacking]
        check_tools(
            [name.options for name, _ in lacking],
            manner,
            [system or BuildSystem.CONFIGURE for system in systems],
            user,
            newest_major=max(_major_of(name) for name, _ in lacking),
        )


def _major_of(name: SourceBuild) -> int:
    """Return the major version of a server's source; a recent one if it is unknown before unpacking."""
    match name.source:
        case Release(major=major):
            return major
        case LocalPath(path=path):
            return major_of(Path(path))
        case Checkout() | Download():
            return RECENT_MAJOR


def _source_here(name: SourceBuild, cache: Cache) -> SourceCode | None:
    match name.source:
        case Release() as release:
            return source_here(release, cache)
        case Download() as download:
            place = place_of(download, cache)
            return stored_source(place, name_of(place))
        case LocalPath() | Checkout() as local:
            return _local(local)


def _fetched(name: SourceBuild, cache: Cache, notify: Notify, progress: NotifyBytes) -> SourceCode:
    match name.source:
        case Release() as release:
            return release_source(release, cache, notify, progress)
        case Download() as download:
            try:
                return downloaded(download, cache, progress)
            except DownloadError as error:
                raise _not_downloaded(download, error) from error
        case LocalPath() | Checkout() as local:
            return _local(local)


def _local(name: LocalPath | Checkout) -> SourceCode:
    path = Path(name.path)
    if isinstance(name, Checkout):
        return commit_source(path, name.ref)
    if path.is_file() or (is_archive(path) and not path.is_dir()):
        return archive_source(path)
    if is_tree(path):
        return tree_source(path)
    found = "a directory without src/backend" if path.is_dir() else "no such file or directory"
    raise no_tree(str(path.absolute()), found)


def _holds_source(path: Path) -> bool:
    try:
        return is_tree(path) or (is_archive(path) and not path.is_dir())
    except OSError:
        # Reported when the path is opened later.
        return False


def _not_downloaded(download: Download, error: DownloadError) -> BuildError:
    return BuildError(
        "a tarball of PostgreSQL's source could not be fetched",
        slug="build-no-source",
        where=str(download),
        found=str(error),
        expected="a tarball at this address, and its hash at the same address followed by .sha256",
        to_do="check the address; append a hash published elsewhere: "
        f"{download.address}#sha256=HASH; "
        "or use a tarball on this host: ./postgresql-17.8.tar.bz2",
    )


VARIABLE = "PGVERSUS_SOURCES"
_NAME = re.compile(r"postgresql-(\d+\.\d+)\.(?:tar\.\w+|tgz|tar)")
_FRESH_S = 24 * 3600.0
_BY_APT = "the index that the distribution signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """A tarball fetched earlier by apt."""

    version: Version
    fetched_at: float
    """Seconds since 1970."""
    source: SourceCode


def release_source(release: Release, cache: Cache, notify: Notify, progress: NotifyBytes) -> SourceCode:
    """Return the source of a release, fetching it if needed; BuildError with everything that was tried."""
    tried: list[str] = []
    given = os.environ.get(VARIABLE, "")
    if given and (found := _of_user(release, given, cache, progress, tried)) is not None:
        return found
    stored = _stored(release, cache)
    if stored is not None and (release.minor is not None or time.time() - stored.fetched_at < _FRESH_S):
        return stored.source
    notify(f"fetching the source of PostgreSQL {release} with apt")
    try:
        return _fetched_by_apt(release, cache)
    except AptError as error:
        if stored is not None:
            notify(f"using the cached source of PostgreSQL {stored.version}: {error}")
            return stored.source
        raise _no_source(release, [*tried, f"apt ({error})"]) from error


def source_here(release: Release, cache: Cache) -> SourceCode | None:
    """Return the source of a release without fetching anything; None if it is not on this host yet."""
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


def _of_user(release: Release, given: str, cache: Cache, progress: NotifyBytes, tried: list[str]) -> SourceCode | None:
    """Return the source from PGVERSUS_SOURCES; if it is missing, append the reason to `tried` and return None."""
    if not _is_address(given):
        mine = _newest_of_user(release, Path(given))
        if mine is None:
            tried.append(
                f"{given} ({VARIABLE}; no postgresql-{release}{'' if release.minor is not None else '.*'}.tar.*)"
            )
        return None if mine is None else archive_source(mine)
    if "{version}" not in given:
        tried.append(f"{VARIABLE} (the address must contain {{version}})")
        return None
    if release.minor is None:
        tried.append(f"{VARIABLE} (an address cannot provide the newest {release}: give the minor version)")
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


def _fetched_by_apt(release: Release, cache: Cache) -> SourceCode:
    """Fetch a source with apt and store it under its published name. AptError if apt has none."""
    with private_lock(cache.staging / "apt.lock"), _apt_directory(cache) as directory:
        archive, text = debian_archive(release, directory)
        version = released_version(text)
        assert version is not None  # noqa: S101 - debian_archive() returns releases only
        suffix = archive.name.partition(".orig")[2]
        place = cache.sources / f"postgresql-{version}{suffix}"
        part = directory / place.name
        shutil.copyfile(archive, part)
        store(part, place, sha256=file_sha256(part), checked=_BY_APT)
    return archive_source(place, checked=_BY_APT)


@contextmanager
def _apt_directory(cache: Cache) -> Iterator[Path]:
    """Yield an empty directory for apt's lists and downloads; remove it, and the remains of killed runs.

    Package lists have tens of megabytes and would be outdated when next needed.
    """
    directory = cache.staging / "apt"
    shutil.rmtree(directory, ignore_errors=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _stored(release: Release, cache: Cache) -> _Stored | None:
    """Return the newest unmodified tarball of a release in the cache."""
    for version, path in sorted(_tarballs(release, cache.sources), reverse=True):
        source = stored_source(path, path.name)
        if source is not None:
            return _Stored(version=version, fetched_at=path.stat().st_mtime, source=source)
    return None


def _newest_of_user(release: Release, directory: Path) -> Path | None:
    return max(_tarballs(release, directory), default=(None, None))[1]


def _tarballs(release: Release, directory: Path) -> Iterator[tuple[Version, Path]]:
    """Yield version and path of the tarballs of a release in a directory, judging by their names."""
    for path in directory.iterdir() if directory.is_dir() else ():
        match = _NAME.fullmatch(path.name)
        version = released_version(match[1]) if match and is_archive(path) else None
        if version is not None and release.admits(version):
            yield version, path


def _no_source(release: Release, tried: list[str]) -> BuildError:
    return BuildError(
        f"the source of PostgreSQL {release} is unavailable",
        slug="build-no-source",
        where=f"server {release}",
        found=f"tried: {'; '.join(tried)}",
        expected="a tarball of that version",
        to_do=f"use ./postgresql-{release}.tar.bz2 in place of {release}, set {VARIABLE} to a directory of tarballs, "
        f"or use a ready-made build: zonky:{release}",
    )
