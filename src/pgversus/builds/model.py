"""Builds of PostgreSQL, and orders for builds from source."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Protocol

from pgversus.builds.build_commands import FORM
from pgversus.host.identity import ServerUser
from pgversus.study.build_options import BuildManner, BuildOptions, BuildSystem
from pgversus.study.servers import BuildFamily, Release, Version

FROM_SOURCE = "source"
"""The origin of a build that pgversus made itself."""
MANIFEST = "build.json"
"""Beside what is in a build, written last: without it there is no build. Its mtime is the last use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What a build was made from, and how."""

    words: str
    """For people: the name of the tarball, the tree, or the commit."""
    sha256: str
    """Of the tarball, or over all files of the tree."""
    checked: str | None = None
    """Against what the checksum was held; None where none is published."""
    repository: str | None = None
    """The git repository that it is from, on this host."""
    commit: str | None = None
    """Its commit in full; of a tree with changes, the commit that they were made on."""
    is_changed: bool = False
    """Whether the tree has changes that are in no commit."""
    has_configure: bool = True
    """Whether it can be built with configure; releases can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrom:
    """Of a build from source: everything that decided what it is."""

    source: SourceFacts
    options: BuildOptions
    manner: BuildManner
    compiler: str
    """The first line of what it says its version is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """PostgreSQL binaries on this host, ready to run."""

    version: str
    """As `postgres --version` says it: 17.8, 18beta1, 16.13 (Debian ...)."""
    bin_directory: Path
    origin: str
    """zonky, wheel, source, or `bin directory`."""
    sha256: str | None = None
    """Of the artifact that it was unpacked from; of a build from source, over all that decided what it is. None for a
    directory of the user's."""
    made_from: MadeFrom | None = None
    """None where others have made it."""

    def program(self, name: str) -> Path:
        """The path of one of its programs."""
        return self.bin_directory / name


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyOffer:
    """The versions that a family has, as far as is known."""

    family: BuildFamily
    versions: tuple[Version, ...]
    age_s: float = 0.0
    """Since the list was fetched."""
    problem: str = ""
    """Why there is no fresh list; empty when there is one."""


Notify = Callable[[str], None]
"""Takes one line about what is going on."""

NotifyBytes = Callable[[str, int], None]
"""Takes the name of a download and the bytes so far."""

NotifySteps = Callable[[str, int, int], None]
"""Takes the name of a build, its steps that are done, and about how many there are."""


class SourceCode(Protocol):
    """PostgreSQL's source, wherever it is."""

    @property
    def facts(self) -> SourceFacts:
        """What it is."""

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Its files, in a directory that is not there yet; BuildError when it is not what it seemed to be.

        user: who unpacks what others have packed.
        """


_DIGITS_OF_NAME = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A source, and how it is to be built."""

    label: str
    """As the user named the server; of two that are the same build, one."""
    source: SourceCode
    made_from: MadeFrom
    release: Release | None = None
    """What its version must be; None for a tree, a commit or a tarball, which may be any."""

    @property
    def key(self) -> str:
        """SHA-256 over all that decides what comes out: source, options, manner, compiler, and our own recipe."""
        made = self.made_from
        is_usual = made.manner.system is BuildSystem.CONFIGURE
        decisive = {
            "form": FORM,
            "source": made.source.sha256,
            "options": asdict(made.options),
            # configure goes without saying.
            "manner": asdict(replace(made.manner, system=None) if is_usual else made.manner),
            "compiler": made.compiler,
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Of its directory in the cache."""
        return name_of_key(self.key)


def name_of_key(key: str) -> str:
    """Of the directory of the build with this key."""
    return f"{FROM_SOURCE}-{key[:_DIGITS_OF_NAME]}"


def order_of(
    label: str,
    source: SourceCode,
    options: BuildOptions,
    manner: BuildManner,
    compiler: str,
    release: Release | None = None,
) -> Order:
    """The order for a server. compiler: as it calls itself. release: what its source is said to be."""
    system = manner.system or (BuildSystem.CONFIGURE if source.facts.has_configure else BuildSystem.MESON)
    made_from = MadeFrom(source=source.facts, options=options, manner=replace(manner, system=system), compiler=compiler)
    return Order(label=label, source=source, made_from=made_from, release=release)
