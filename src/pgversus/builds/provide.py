"""Builds for all servers of a study at once, so that ready-made ones come from one family."""

import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from filelock import Timeout

from pgversus.builds.compile import build, built
from pgversus.builds.inspect import check_bin_directory, inspect_bin_directory
from pgversus.builds.model import FROM_SOURCE, MANIFEST, Build, FamilyOffer, Notify, NotifyBytes
from pgversus.builds.orders import as_asked, fetched_orders, orders_here
from pgversus.builds.ready_made import Choice, MissingLibrariesError, install, installed, offers, resolve
from pgversus.errors import BuildError
from pgversus.host.directories import Cache, in_use, unused
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.study.build_options import BuildManner
from pgversus.study.servers import Checkout, LocalPath, Release, RunningServer, ServerName, SourceBuild, Version

_PLATFORM = ("Linux", "x86_64")
_TODAYS: Mapping[ServerName, str] = MappingProxyType({})


class BuildProgress(Protocol):
    """Takes how far downloads and builds have come."""

    def fetching(self, name: str, size: int) -> None:
        """A download has so many bytes."""

    def building(self, name: str, done: int, total: int) -> None:
        """So many steps of a build are done, of about so many."""


def provide(
    names: Sequence[ServerName],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    notify: Notify,
    progress: BuildProgress,
    compilers: Mapping[ServerName, str] = _TODAYS,
) -> tuple[Build | None, ...]:
    """A build for each name, fetched or built where needed; None for a server that somebody else runs.

    manner: in which those are built that are built here. compilers: by which some were built before. BuildError when a
    version cannot be had, a path holds neither a server nor source, or a build fails.
    """
    asked = [as_asked(name) for name in names]
    meant = _from_one_family(asked)
    releases = [name for name in meant if isinstance(name, Release)]
    # What is quick to find out, and ends it all when it is not there, comes before what takes minutes.
    here = orders_here([name for name in meant if isinstance(name, SourceBuild)], manner, cache, user, compilers)
    own = {name: inspect_bin_directory(Path(name.path), user) for name in meant if isinstance(name, LocalPath)}
    ready_made = iter(_provide_releases(releases, cache, user, notify, progress.fetching)) if releases else iter(())
    orders = fetched_orders(here, manner, cache, user, notify, progress.fetching, compilers)
    built = {name: build(order, cache, user, notify, progress.building) for name, order in orders.items()}
    result: list[Build | None] = []
    for name in meant:
        match name:
            case Release():
                result.append(next(ready_made))
            case LocalPath():
                result.append(own[name])
            case SourceBuild():
                result.append(built[name])
            case RunningServer():
                result.append(None)
    return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsHere:
    """What would be used for some servers, without fetching or building any of it."""

    builds: Mapping[ServerName, Build | None]
    """None for one that is not in the cache yet, and for a server that somebody else runs."""
    downloads: tuple[str, ...]
    """What would be fetched, as `family version`, or `source of` a server's name."""
    to_build: tuple[str, ...]
    """What would be built, as servers are named."""
    not_asked: tuple[str, ...] = ()
    """Servers that were not looked into, as they are named."""


def builds_here(
    names: Sequence[ServerName],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    compilers: Mapping[ServerName, str] = _TODAYS,
    *,
    asks_named: bool,
) -> BuildsHere:
    """The builds of these names as far as they are on this host; BuildError when one cannot be had.

    compilers: as of provide(). asks_named: whether programs in directories, git repositories and compilers that the
    names lead to are run; without that they are not looked into.
    """
    meant = dict(zip(names, _from_one_family([as_asked(name) for name in names]), strict=True))
    builds: dict[ServerName, Build | None] = dict.fromkeys(names)
    downloads: dict[str, None] = {}
    to_build: dict[str, None] = {}
    releases = {name: release for name, release in meant.items() if isinstance(release, Release)}
    if releases:
        wanted = list(releases.values())
        _check_platform(wanted[0])
        for name, choice in zip(releases, resolve(wanted, _offers_for(wanted, cache)), strict=True):
            builds[name] = installed(cache, choice)
            if builds[name] is None:
                downloads[f"{choice.family} {choice.version}"] = None
    not_asked = [] if asks_named else _not_asked(meant.values(), user)
    asked = {name: one for name, one in meant.items() if one not in not_asked}
    from_source = [one for one in asked.values() if isinstance(one, SourceBuild)]
    orders = orders_here(from_source, manner, cache, user, compilers)
    for name, one in asked.items():
        match one:
            case LocalPath(path=path):
                builds[name] = inspect_bin_directory(Path(path), user)
            case Release() | RunningServer():
                pass
            case SourceBuild():
                order = orders[one]
                builds[name] = None if order is None else built(cache, order.name)
                if order is None:
                    downloads[f"source of {one.source}"] = None
                if builds[name] is None:
                    to_build[str(one)] = None
    return BuildsHere(
        builds=builds, downloads=tuple(downloads), to_build=tuple(to_build), not_asked=tuple(map(str, not_asked))
    )


def _not_asked(names: Iterable[ServerName], user: ServerUser) -> list[ServerName]:
    """Those that are not looked into; BuildError for a directory without a server's programs."""
    found = [name for name in names if _leads_elsewhere(name)]
    for name in found:
        if isinstance(name, LocalPath):
            check_bin_directory(Path(name.path).absolute(), user)
    return found


def _leads_elsewhere(name: ServerName) -> bool:
    """Whether to know more of a server takes running what is not pgversus' own: its programs, git, or its compiler."""
    match name:
        case LocalPath() | SourceBuild(source=LocalPath() | Checkout()):
            return True
        case SourceBuild(options=options):
            return options.compiler is not None
        case Release() | RunningServer():
            return False


def _from_one_family(names: Sequence[ServerName]) -> list[ServerName]:
    """The same names, where one is built here all releases of which the user has not said otherwise.

    The family alone changes speed by up to 1.5 times, so that a build of ours is held against builds of ours.
    """
    if not any(isinstance(name, SourceBuild) for name in names):
        return list(names)
    return [SourceBuild(source=name) if isinstance(name, Release) and name.family is None else name for name in names]


def _provide_releases(
    releases: Sequence[Release], cache: Cache, user: ServerUser, notify: Notify, progress: NotifyBytes
) -> list[Build]:
    _check_platform(releases[0])
    lists = _offers_for(releases, cache)
    for offer in lists:
        if offer.problem and offer.versions:
            notify(f"the list of {offer.family} builds is {offer.age_s / 3600:.0f} h old: {offer.problem}")
    while True:
        choices = resolve(releases, lists)
        for release, choice in zip(releases, choices, strict=True):
            _say_newer(release, choice, lists, notify)
        try:
            return [install(cache, choice, user, progress) for choice in choices]
        except MissingLibrariesError as error:
            family = error.choice.family
            if any(release.family == family for release in releases) or len(lists) == 1:
                raise _libraries_missing(error) from error
            notify(f"{family} builds need {', '.join(error.libraries)}, which this host lacks: another family is used")
            lists = tuple(offer for offer in lists if offer.family != family)


def _offers_for(releases: Sequence[Release], cache: Cache) -> tuple[FamilyOffer, ...]:
    """The lists; asked for again when a version is missing that may have been released since they were fetched."""
    lists = offers(cache.index)
    if not any(offer.versions for offer in lists):
        return _offers_of_cache(lists, cache)
    if all(any(release.admits(version) for offer in lists for version in offer.versions) for release in releases):
        return lists
    return offers(cache.index, must_be_fresh=True)


def _offers_of_cache(lists: Sequence[FamilyOffer], cache: Cache) -> tuple[FamilyOffer, ...]:
    """What is installed already, for a host without network whose lists are gone."""
    result = []
    for offer in lists:
        names = [path.name.removeprefix(f"{offer.family}-") for path in cache.builds.glob(f"{offer.family}-*")]
        versions = [
            Version(major=int(major), minor=int(minor)) for major, _, minor in (n.partition(".") for n in names)
        ]
        whole = [v for v in versions if installed(cache, Choice(family=offer.family, version=v)) is not None]
        result.append(FamilyOffer(family=offer.family, versions=tuple(sorted(whole)), problem=offer.problem))
    return tuple(result)


def _say_newer(release: Release, choice: Choice, lists: Sequence[FamilyOffer], notify: Notify) -> None:
    if release.minor is not None or release.family is not None:
        return
    newest = max(version for offer in lists for version in offer.versions if release.admits(version))
    if newest > choice.version:
        notify(f"{release} is {choice.version} here: {newest} exists, but not in one family with the other arms")


def _check_platform(release: Release) -> None:
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        raise BuildError(
            "there are no ready-made builds for this platform",
            slug="build-platform",
            where=f"server {release}",
            found=" ".join(here),
            expected=" ".join(_PLATFORM),
            to_do="give the bin directory of a PostgreSQL that is on this host",
        )


def _libraries_missing(error: MissingLibrariesError) -> BuildError:
    return BuildError(
        f"PostgreSQL {error.choice.version} of the {error.choice.family} family needs libraries that this host lacks",
        slug="build-missing-libraries",
        where=f"{error.choice.family} {error.choice.version}",
        found=f"not found: {', '.join(error.libraries)}",
        expected="every shared library of postgres",
        to_do="install them with this system's package manager (ldd names the files), or use another family",
    )


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
