"""Which family of builds serves all arms of a comparison. Pure.

The family alone changes speed by up to 1.5 times, so that 16 from one against 17 from another says nothing about
16 and 17. All versions of a comparison come from the first family that has every one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.errors import BuildError
from pgversus.postgres.builds.model import FamilyOffer
from pgversus.study.servers import Family, Release, Version

_NEAREST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The release that stands for a name."""

    family: Family
    version: Version


def resolve(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> tuple[Choice, ...]:
    """One choice for each release: all from one family, unless the user named families himself.

    offers: in the order of preference; families that the user named come before the others. BuildError that names the
    nearest versions when no family has them all.
    """
    free = [release for release in releases if release.family is None]
    named = {release.family for release in releases}
    # Where it has them too, the family that some were asked from serves all: nothing is mixed that need not be.
    family = _family_for(free, sorted(offers, key=lambda offer: offer.family not in named)) if free else None
    return tuple(_newest(release, _offer_of(release.family or family, offers)) for release in releases)


def _family_for(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> Family:
    for offer in offers:
        if all(_candidates(release, offer) for release in releases):
            return offer.family
    for release in releases:
        if not any(_candidates(release, offer) for offer in offers):
            raise _no_such_version(release, offers)
    raise _no_common_family(releases, offers)


def _newest(release: Release, offer: FamilyOffer) -> Choice:
    candidates = _candidates(release, offer)
    if not candidates:
        raise _no_such_version(release, [offer])
    return Choice(family=offer.family, version=max(candidates))


def _candidates(release: Release, offer: FamilyOffer) -> list[Version]:
    return [version for version in offer.versions if release.admits(version)]


def _offer_of(family: Family | None, offers: Sequence[FamilyOffer]) -> FamilyOffer:
    return next(offer for offer in offers if offer.family == family)


def _no_such_version(release: Release, offers: Sequence[FamilyOffer]) -> BuildError:
    if not any(offer.versions for offer in offers):
        return _no_lists(release, offers)
    return BuildError(
        f"PostgreSQL {release} cannot be had",
        slug="build-unknown-version",
        where=f"server {release}",
        found="; ".join(_looked_at(release, offer) for offer in offers),
        expected="a released version that one of these has",
        to_do=_suggestion(release, offers),
    )


def _no_lists(release: Release, offers: Sequence[FamilyOffer]) -> BuildError:
    problems = "; ".join(f"{offer.family}: {offer.problem}" for offer in offers)
    is_certificate = "certificate" in problems
    return BuildError(
        f"PostgreSQL {release} is not in the cache, and no package registry could be asked for it",
        slug="build-certificate" if is_certificate else "build-offline",
        where=f"server {release}",
        found=problems,
        expected="network access for the first use of a version",
        to_do="add your proxy's certificate authority to the system's certificate store"
        if is_certificate
        else "try again with network access, or give the bin directory of a PostgreSQL that is on this host: "
        "/usr/lib/postgresql/17/bin",
    )


def _no_common_family(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> BuildError:
    names = ", ".join(str(release) for release in releases)
    missing = []
    for offer in offers:
        lacking = [release for release in releases if not _candidates(release, offer)]
        missing.append("; ".join(_looked_at(release, offer) for release in lacking))
    return BuildError(
        f"no family of builds has all of {names}",
        slug="build-no-common-family",
        where=f"servers {names}",
        found="; ".join(missing),
        expected="all arms from one family, because the family alone changes speed by up to 1.5 times",
        to_do="choose a near version that one family has, or name families yourself (zonky:16.6 wheel:17.11), "
        "which is said beside every verdict",
    )


def _looked_at(release: Release, offer: FamilyOffer) -> str:
    if not offer.versions:
        return f"{offer.family} could not be asked: {offer.problem}"
    near = _nearest(release, offer)
    age = f" (list {offer.age_s / 3600:.0f} h old, {offer.problem})" if offer.problem else ""
    if not near:
        majors = sorted({version.major for version in offer.versions})
        return f"{offer.family}{age} has majors {majors[0]} to {majors[-1]}"
    return f"{offer.family}{age} has {' and '.join(str(version) for version in near)}"


def _nearest(release: Release, offer: FamilyOffer) -> list[Version]:
    """The next lower and the next higher minor of the same major."""
    same = sorted(version for version in offer.versions if version.major == release.major)
    if release.minor is None:
        return same[-_NEAREST:]
    lower = [version for version in same if version.minor < release.minor]
    higher = [version for version in same if version.minor > release.minor]
    return lower[-_NEAREST:] + higher[:_NEAREST]


def _suggestion(release: Release, offers: Sequence[FamilyOffer]) -> str:
    near = {version for offer in offers for version in _nearest(release, offer)}
    if near and release.minor is not None:
        wanted = release.minor
        best = min(near, key=lambda version: (abs(version.minor - wanted), version))
        return f"use {best}, or give the bin directory of your own build of {release}"
    newest = max((version for offer in offers for version in offer.versions), default=None)
    return f"the newest is {newest}; for anything else give a bin directory" if newest else "give a bin directory"
