"""Builds for all servers of a study together, so that ready-made ones come from one family."""

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from filelock import Timeout

from pgversus.builds.compile import build, built
from pgversus.builds.inspect import check_bin_directory, inspect_bin_directory
from pgversus.builds.model import FROM_SOURCE, MANIFEST, Build, FamilyOffer, Notify
from pgversus.builds.orders import fetched_orders, local_orders, normalized_name
from pgversus.builds.ready_made import (
    Choice,
    MissingLibrariesError,
    install,
    installed,
    missing_between,
    offers,
    resolve,
)
from pgversus.errors import BuildError
from pgversus.host.directories import Cache, in_use, unused
from pgversus.host.files import tree_bytes
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.study.build_options import BuildManner
from pgversus.study.servers import Checkout, LocalPath, Release, RunningServer, ServerName, SourceBuild, Version

_PLATFORM = ("Linux", "x86_64")
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})")
_TODAYS: Mapping[ServerName, str] = MappingProxyType({})


class BuildProgress(Protocol):
    """Receives the progress of downloads and builds."""

    def say(self, line: str) -> None:
        """Report a line of text."""

    def fetching(self, name: str, size: int) -> None:
        """Report the bytes downloaded so far."""

    def building(self, name: str, done: int, total: int) -> None:
        """Report the steps of a build that are done, and their estimated number."""


def provide(
    names: Sequence[ServerName],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    progress: BuildProgress,
    compilers: Mapping[ServerName, str] = _TODAYS,
) -> tuple[Build | None, ...]:
    """Return a build for each name, fetching or building it if needed; None for an external server.

    manner: how to build from source. compilers: the compilers of earlier builds.
    BuildError if a version is unavailable, a path contains neither a server nor source, or a build fails.
    """
    meant = _from_one_family([normalized_name(name) for name in names])
    releases = [name for name in meant if isinstance(name, Release)]
    # Quick checks that may fail come before steps that take minutes.
    here = local_orders([name for name in meant if isinstance(name, SourceBuild)], manner, cache, user, compilers)
    found: dict[ServerName, Build] = {
        name: inspect_bin_directory(Path(name.path), user) for name in meant if isinstance(name, LocalPath)
    }
    if releases:
        found |= zip(releases, _provide_releases(releases, cache, user, progress), strict=True)
    orders = fetched_orders(here, manner, cache, user, progress.say, progress.fetching, compilers)
    found |= {name: build(order, cache, user, progress.say, progress.building) for name, order in orders.items()}
    return tuple(None if isinstance(name, RunningServer) else found[name] for name in meant)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailableBuilds:
    """The builds that servers would use, determined without fetching or building."""

    builds: Mapping[ServerName, Build | None]
    """None for a build not in the cache yet, and for an external server."""
    downloads: tuple[str, ...]
    """Required downloads: `family version`, or `source of` and the name of a source."""
    to_build: tuple[str, ...]
    """Names of servers that would be built."""
    not_inspected: tuple[str, ...] = ()
    """Names of servers that were not inspected."""


def available_builds(
    names: Sequence[ServerName],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    compilers: Mapping[ServerName, str],
    *,
    asks_named: bool,
) -> AvailableBuilds:
    """Return the builds of these names that are on this host; BuildError if a version is unavailable.

    compilers: as for provide().
    asks_named: run the programs, git repositories and compilers that the names refer to; otherwise such servers are not
    inspected.
    """
    meant = dict(zip(names, _from_one_family([normalized_name(name) for name in names]), strict=True))
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
    not_inspected = [] if asks_named else _not_inspected(meant.values(), user)
    inspected = {name: one for name, one in meant.items() if one not in not_inspected}
    from_source = [one for one in inspected.values() if isinstance(one, SourceBuild)]
    orders = local_orders(from_source, manner, cache, user, compilers)
    for name, one in inspected.items():
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
    return AvailableBuilds(
        builds=builds,
        downloads=tuple(downloads),
        to_build=tuple(to_build),
        not_inspected=tuple(map(str, not_inspected)),
    )


def _not_inspected(names: Iterable[ServerName], user: ServerUser) -> list[ServerName]:
    """Return the servers that are not inspected; BuildError for a directory without server programs."""
    found = [name for name in names if _runs_named_programs(name)]
    for name in found:
        if isinstance(name, LocalPath):
            check_bin_directory(Path(name.path).absolute(), user)
    return found


def _runs_named_programs(name: ServerName) -> bool:
    """Return whether inspecting a server would run programs that its name refers to: its own, git, or a compiler."""
    match name:
        case LocalPath() | SourceBuild(source=LocalPath() | Checkout()):
            return True
        case SourceBuild(options=options):
            return options.compiler is not None
        case Release() | RunningServer():
            return False


def _from_one_family(names: Sequence[ServerName]) -> list[ServerName]:
    """If any server is built from source, also build all releases without an explicit family from source.

    The family alone changes speed by a factor of up to 1.5, so builds from source are compared only with each other.
    """
    if not any(isinstance(name, SourceBuild) for name in names):
        return list(names)
    return [SourceBuild(source=name) if isinstance(name, Release) and name.family is None else name for name in names]


def _provide_releases(
    releases: Sequence[Release], cache: Cache, user: ServerUser, progress: BuildProgress
) -> list[Build]:
    _check_platform(releases[0])
    lists = _offers_for(releases, cache)
    for offer in lists:
        if offer.problem and offer.versions:
            progress.say(
                f"using the list of {offer.family} builds from {offer.age_s / 3600:.0f} h ago, because it could not be "
                f"updated: {offer.problem}"
            )
    while True:
        choices = resolve(releases, lists)
        for release, choice in zip(releases, choices, strict=True):
            _say_newer(release, choice, lists, progress.say)
        try:
            return [install(cache, choice, user, progress.fetching) for choice in choices]
        except MissingLibrariesError as error:
            family = error.choice.family
            if any(release.family == family for release in releases) or len(lists) == 1:
                raise _libraries_missing(error) from error
            libraries = ", ".join(error.libraries)
            progress.say(f"using another family: {family} builds need {libraries}, missing on this host")
            lists = tuple(offer for offer in lists if offer.family != family)


def not_offered(releases: Sequence[Release], cache: Cache) -> list[Release]:
    """Return the releases of a range that the family with its ends does not offer; empty without a list of builds."""
    if not any(offer.versions for offer in offers(cache.index)):
        return []
    return missing_between(releases, _offers_for(releases, cache))


def _offers_for(releases: Sequence[Release], cache: Cache) -> tuple[FamilyOffer, ...]:
    """Return the lists, fetched again if a requested version is missing, since it may be newer than the lists."""
    lists = offers(cache.index)
    if not any(offer.versions for offer in lists):
        return _offers_of_cache(lists, cache)
    if all(any(release.admits(version) for offer in lists for version in offer.versions) for release in releases):
        return lists
    return offers(cache.index, must_be_fresh=True)


def _offers_of_cache(lists: Sequence[FamilyOffer], cache: Cache) -> tuple[FamilyOffer, ...]:
    """Return the installed versions, for a host without network and lists."""
    result = []
    for offer in lists:
        names = [path.name.removeprefix(f"{offer.family}-") for path in cache.builds.glob(f"{offer.family}-*")]
        matches = map(_VERSION.fullmatch, names)
        versions = [Version(major=int(match[1]), minor=int(match[2])) for match in matches if match]
        whole = [v for v in versions if installed(cache, Choice(family=offer.family, version=v)) is not None]
        result.append(FamilyOffer(family=offer.family, versions=tuple(sorted(whole)), problem=offer.problem))
    return tuple(result)


def _say_newer(release: Release, choice: Choice, lists: Sequence[FamilyOffer], notify: Notify) -> None:
    if release.minor is not None or release.family is not None:
        return
    newest = max(version for offer in lists for version in offer.versions if release.admits(version))
    if newest > choice.version:
        notify(f"using {choice.version} for {release}: {newest} exists, but not in the same family as the other arms")


def _check_platform(release: Release) -> None:
    here = (platform.system(), platform.machine())
    if here != _PLATFORM:
        raise BuildError(
            "no ready-made builds are available for this platform",
            slug="build-platform",
            where=f"server {release}",
            found=" ".join(here),
            expected=" ".join(_PLATFORM),
            to_do="use the bin directory of a PostgreSQL installation on this host",
        )


def _libraries_missing(error: MissingLibrariesError) -> BuildError:
    return BuildError(
        f"PostgreSQL {error.choice.version} of the {error.choice.family} family needs libraries that this host lacks",
        slug="build-missing-libraries",
        where=f"{error.choice.family} {error.choice.version}",
        found=f"not found: {', '.join(error.libraries)}",
        expected="all shared libraries that postgres is linked with",
        to_do="install them with this system's package manager (ldd names the files), or use another family",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedBuild:
    """A cached build."""

    directory: Path
    size_bytes: int
    last_used: float
    """Seconds since 1970."""

    built: Build | None = None
    """Set for a build from source; None if its manifest cannot be read."""

    @property
    def name(self) -> str:
        """Family and version, e.g. `zonky-17.8`; for builds from source, `source-` and hexadecimal digits."""
        return self.directory.name

    @property
    def is_from_source(self) -> bool:
        """Whether it was built from source here."""
        return self.name.startswith(f"{FROM_SOURCE}-")


@contextmanager
def using_builds(builds: Iterable[Build | None], cache: Cache) -> Iterator[None]:
    """Protect builds from removal from the cache; OSError if one has just been removed."""
    # A bin directory of the user is elsewhere.
    paths = [one.bin_directory for one in builds if one is not None and one.bin_directory.is_relative_to(cache.builds)]
    directories = {cache.builds / path.relative_to(cache.builds).parts[0] for path in paths}
    with in_use(sorted(directories)):
        for directory in directories:
            os.utime(directory / MANIFEST)
        yield


def cached_builds(cache: Cache) -> list[CachedBuild]:
    """Return all cached builds, sorted by name, except those that are removed meanwhile."""
    found = []
    for directory in sorted(path for path in cache.builds.iterdir() if path.is_dir()):
        with suppress(FileNotFoundError):
            found.append(
                CachedBuild(
                    directory=directory,
                    size_bytes=tree_bytes(directory),
                    last_used=_last_used(directory),
                    built=built(cache, directory.name),
                )
            )
    return found


def remove_build(build: CachedBuild, cache: Cache) -> bool:
    """Remove a build unless a run uses or fetches it; return whether it was removed. OSError on failure."""
    try:
        with private_lock(cache.staging / f"{build.name}.lock", blocking=False), unused(build.directory) as is_free:
            if is_free:
                # The manifest first, so that nobody finds an incomplete build.
                (build.directory / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(build.directory)
            return is_free
    except Timeout:
        return False


def _last_used(directory: Path) -> float:
    try:
        return (directory / MANIFEST).stat().st_mtime
    except FileNotFoundError:
        return directory.stat().st_mtime
