"""Names in, builds out: all arms of a comparison at once, so that they come from one family."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.inspect import inspect_bin_directory
from pgversus.postgres.builds.model import Build, FamilyOffer, Notify, NotifyBytes
from pgversus.postgres.builds.ready_made.index import offers
from pgversus.postgres.builds.ready_made.install import MissingLibrariesError, install, installed
from pgversus.postgres.builds.ready_made.resolve import Choice, resolve
from pgversus.study.servers import BinDirectory, Release, RunningServer, ServerName, Version

_PLATFORM = ("Linux", "x86_64")


def provide(
    names: Sequence[ServerName], cache: Cache, user: ServerUser, notify: Notify, progress: NotifyBytes
) -> tuple[Build | None, ...]:
    """A build for each name, fetched where needed; None for a server that somebody else runs.

    BuildError when a version cannot be had, or a bin directory holds no server.
    """
    releases = [name for name in names if isinstance(name, Release)]
    builds = iter(_provide_releases(releases, cache, notify, progress)) if releases else iter(())
    result: list[Build | None] = []
    for name in names:
        match name:
            case Release():
                result.append(next(builds))
            case BinDirectory(path=path):
                result.append(inspect_bin_directory(Path(path), user))
            case RunningServer():
                result.append(None)
    return tuple(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsHere:
    """What would be used for some servers, without fetching any of it."""

    builds: Mapping[ServerName, Build | None]
    """None for one that is not in the cache yet, and for a server that somebody else runs."""
    downloads: tuple[str, ...]
    """What would be fetched, as `family version`."""


def builds_here(names: Sequence[ServerName], cache: Cache, user: ServerUser) -> BuildsHere:
    """The builds of these names as far as they are on this host; BuildError when one cannot be had."""
    builds: dict[ServerName, Build | None] = dict.fromkeys(names)
    downloads: dict[str, None] = {}
    releases = [name for name in names if isinstance(name, Release)]
    if releases:
        _check_platform(releases[0])
        for release, choice in zip(releases, resolve(releases, _offers_for(releases, cache)), strict=True):
            builds[release] = installed(cache, choice)
            if builds[release] is None:
                downloads[f"{choice.family} {choice.version}"] = None
    for name in names:
        if isinstance(name, BinDirectory):
            builds[name] = inspect_bin_directory(Path(name.path), user)
    return BuildsHere(builds=builds, downloads=tuple(downloads))


def _provide_releases(releases: Sequence[Release], cache: Cache, notify: Notify, progress: NotifyBytes) -> list[Build]:
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
            return [install(cache, choice, progress) for choice in choices]
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
