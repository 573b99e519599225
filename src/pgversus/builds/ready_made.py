"""Ready-made builds: available versions, choice of a family for all arms, installation into the cache."""

import json
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.builds.families import SOURCES, RegistryError, known_checksum
from pgversus.builds.inspect import (
    complete_build,
    file_hashes,
    missing_libraries,
    open_to_all,
    read_version,
)
from pgversus.builds.model import MANIFEST, Build, FamilyOffer, NotifyBytes
from pgversus.builds.unpacking import ArchiveError
from pgversus.errors import BuildError
from pgversus.host.directories import Cache, scratch_directory
from pgversus.host.files import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.on_disk import put_in_place
from pgversus.host.permissions import private_lock
from pgversus.study.servers import BuildFamily, Release, Version

_Number = Annotated[int, Field(ge=0, lt=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """The stored list of versions of a family."""

    fetched_at: Annotated[float, Field(allow_inf_nan=False)]
    """Seconds since 1970."""
    versions: tuple[tuple[_Number, _Number], ...]


_LIST = TypeAdapter(_List)
_FRESH_S = 24 * 3600.0


def offers(index: Path, *, must_be_fresh: bool = False) -> tuple[FamilyOffer, ...]:
    """Return the versions of each family from the lists in `index`, which are refreshed once a day.

    If a registry does not respond, the old list is returned with its age and the problem; without a list the offer has
    no versions. must_be_fresh: fetch the list even if it is recent, because it lacks a version.
    """
    return tuple(_offer(index, family, must_be_fresh=must_be_fresh) for family in SOURCES)


def _offer(index: Path, family: BuildFamily, *, must_be_fresh: bool) -> FamilyOffer:
    file = index / f"{family}.json"
    kept = _read(file, family)
    if kept is not None and kept.age_s < _FRESH_S and not must_be_fresh:
        return kept
    try:
        with private_lock(index / "fetch.lock"), scratch_directory(index, "index-") as scratch:
            versions = SOURCES[family].versions(scratch)
            _write(file, versions, scratch)
    except RegistryError as error:
        problem = "its certificate is not trusted by this system" if error.is_about_certificates else "no response"
        if kept is not None:
            return FamilyOffer(family=family, versions=kept.versions, age_s=kept.age_s, problem=problem)
        return FamilyOffer(family=family, versions=(), problem=problem)
    return FamilyOffer(family=family, versions=versions)


def _read(file: Path, family: BuildFamily) -> FamilyOffer | None:
    try:
        kept = _LIST.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        # No list yet, or one truncated by a full disk.
        return None
    versions = tuple(Version(major=major, minor=minor) for major, minor in kept.versions)
    return FamilyOffer(family=family, versions=versions, age_s=max(0.0, time.time() - kept.fetched_at))


def _write(file: Path, versions: tuple[Version, ...], scratch: Path) -> None:
    document = {"fetched_at": time.time(), "versions": [[version.major, version.minor] for version in versions]}
    whole = scratch / file.name
    whole.write_text(json.dumps(document), encoding="utf-8")
    put_in_place(whole, file)


_NEAREST = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The version chosen for a release."""

    family: BuildFamily
    version: Version


def resolve(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> tuple[Choice, ...]:
    """Choose a version for each release, all from one family unless the user specified families.

    offers: in order of preference; families specified by the user come first.
    BuildError with the nearest versions if no family has all of them.
    """
    free = [release for release in releases if release.family is None]
    named = {release.family for release in releases}
    # A family specified for some releases comes first for the others, to avoid mixing families.
    family = _family_for(free, sorted(offers, key=lambda offer: offer.family not in named)) if free else None
    return tuple(_newest(release, _offer_of(release.family or family, offers)) for release in releases)


def missing_between(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> list[Release]:
    """Return the releases between the first and the last one that their family does not offer.

    That is the family with the fewest missing ones; empty if no family has both ends.
    """
    first, *between, last = releases
    families = [offer for offer in offers if first.family in (None, offer.family)]
    missing = (
        [release for release in between if not _candidates(release, offer)]
        for offer in families
        if _candidates(first, offer) and _candidates(last, offer)
    )
    return min(missing, key=len, default=[])


def _family_for(releases: Sequence[Release], offers: Sequence[FamilyOffer]) -> BuildFamily:
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


def _offer_of(family: BuildFamily | None, offers: Sequence[FamilyOffer]) -> FamilyOffer:
    return next(offer for offer in offers if offer.family == family)


def _no_such_version(release: Release, offers: Sequence[FamilyOffer]) -> BuildError:
    if not any(offer.versions for offer in offers):
        return _no_lists(release, offers)
    return BuildError(
        f"PostgreSQL {release} is unavailable",
        slug="build-unknown-version",
        where=f"server {release}",
        found="; ".join(_looked_at(release, offer) for offer in offers),
        expected="a released version in one of these families",
        to_do=_suggestion(release, offers),
    )


def _no_lists(release: Release, offers: Sequence[FamilyOffer]) -> BuildError:
    problems = "; ".join(f"{offer.family}: {offer.problem}" for offer in offers)
    is_certificate = "certificate" in problems
    return BuildError(
        f"PostgreSQL {release} is not in the cache, and no package registry could be reached",
        slug="build-certificate" if is_certificate else "build-offline",
        where=f"server {release}",
        found=problems,
        expected="network access for the first use of a version",
        to_do="add your proxy's certificate authority to the system's certificate store"
        if is_certificate
        else "try again with network access, or use the bin directory of a PostgreSQL installation on this host: "
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
        expected="all arms from one family, because another family alone can change the speed by a factor of up to 1.5",
        to_do="choose nearby versions from one family, or specify a family for each server (zonky:16.6 wheel:17.11); "
        "the mix is then reported next to every verdict",
    )


def _looked_at(release: Release, offer: FamilyOffer) -> str:
    if not offer.versions:
        return f"{offer.family} could not be queried: {offer.problem}"
    near = _nearest(release, offer)
    age = f" (list {offer.age_s / 3600:.0f} h old, {offer.problem})" if offer.problem else ""
    if not near:
        majors = sorted({version.major for version in offer.versions})
        return f"{offer.family}{age} has majors {majors[0]} to {majors[-1]}"
    return f"{offer.family}{age} has {' and '.join(str(version) for version in near)}"


def _nearest(release: Release, offer: FamilyOffer) -> list[Version]:
    """Return the nearest lower and higher minors of the same major."""
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
        return f"use {best}, or the bin directory of your own build of {release}"
    newest = max((version for offer in offers for version in offer.versions), default=None)
    return f"use {newest}, the newest, or a bin directory" if newest else "use a bin directory"


# The address of a registry is part of the user's configuration and not shown.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(eq=False)
class MissingLibrariesError(Exception):
    """This host lacks libraries for a build; another family may work."""

    choice: Choice
    libraries: tuple[str, ...]


def installed(cache: Cache, choice: Choice) -> Build | None:
    """Return the build if it is complete in the cache, else None."""
    return complete_build(_place(cache, choice), choice.family.value)


def install(cache: Cache, choice: Choice, user: ServerUser, progress: NotifyBytes) -> Build:
    """Return the build from the cache, or fetch it; concurrent pgversus processes fetch it once.

    user: the user that unpacks it and first runs its programs.
    BuildError if it cannot be fetched or verified; then nothing is left in the cache.
    MissingLibrariesError if it is intact, but this host lacks libraries that it requires.
    """
    with private_lock(cache.staging / f"{_name(choice)}.lock"):
        build = installed(cache, choice)
        if build is None:
            with scratch_directory(cache.staging, f"{_name(choice)}-") as scratch:
                # Open to the user that runs the unpacked programs.
                scratch.chmod(0o755)
                _install(cache, choice, scratch, user, progress)
            build = installed(cache, choice)
    if build is None:
        raise _damaged(choice, "it vanished from the cache right after its installation")
    missing = missing_libraries(build.bin_directory, user)
    if missing:
        raise MissingLibrariesError(choice, missing)
    return build


def _install(cache: Cache, choice: Choice, scratch: Path, user: ServerUser, progress: NotifyBytes) -> None:
    download, unpacked = scratch / "download", scratch / "build"
    download.mkdir()
    source = SOURCES[choice.family]
    try:
        artifact = source.fetch(choice.version, download, progress)
    except RegistryError as error:
        raise _not_fetched(choice, error) from error
    sha256 = file_sha256(artifact.path)
    for expected in (artifact.sha256, known_checksum(choice.family, choice.version)):
        if expected and expected != sha256:
            raise _damaged(choice, f"SHA-256 {sha256}", expected=f"SHA-256 {expected}")
    try:
        home = source.unpack(artifact.path, unpacked, user)
    except ArchiveError as error:
        raise _damaged(choice, str(error)) from error
    open_to_all(unpacked)
    bin_directory = home / "bin"
    if not missing_libraries(bin_directory, user):
        version = read_version(bin_directory, user)
        if version != str(choice.version):
            raise _damaged(choice, f"PostgreSQL {version}", expected=f"PostgreSQL {choice.version}")
    manifest = {
        "version": str(choice.version),
        "bin": str(bin_directory.relative_to(unpacked)),
        "sha256": sha256,
        "files_sha256": file_hashes(unpacked),
    }
    (unpacked / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    place = _place(cache, choice)
    shutil.rmtree(place, ignore_errors=True)
    put_in_place(unpacked, place)


def _name(choice: Choice) -> str:
    return f"{choice.family}-{choice.version}"


def _place(cache: Cache, choice: Choice) -> Path:
    return cache.builds / _name(choice)


def _not_fetched(choice: Choice, error: RegistryError) -> BuildError:
    last_line = _ADDRESS.sub("(the registry)", str(error).splitlines()[-1]) if str(error) else "no message"
    return BuildError(
        f"PostgreSQL {choice.version} could not be fetched",
        slug="build-certificate" if error.is_about_certificates else "build-fetch-failed",
        where=f"{choice.family} {choice.version}",
        found="a certificate that this system does not trust" if error.is_about_certificates else last_line,
        expected="a download",
        to_do="add your proxy's certificate authority to the system's certificate store"
        if error.is_about_certificates
        else "try again with network access, or use the bin directory of a PostgreSQL installation on this host",
    )


def _damaged(choice: Choice, found: str, *, expected: str = "an intact build") -> BuildError:
    return BuildError(
        f"the download of PostgreSQL {choice.version} failed verification",
        slug="build-damaged",
        where=f"{choice.family} {choice.version}",
        found=found,
        expected=expected,
        to_do="run the same command again (nothing was stored); if it fails again, a mirror or proxy alters the file",
    )
