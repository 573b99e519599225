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
"""The origin of a build that pgversus compiled from source."""
MANIFEST = "build.json"
"""The manifest in a build's directory, written last: without it, the build is incomplete. Its mtime is the last use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The source of a build."""

    words: str
    """Description for users: the name of the tarball, tree or commit."""
    sha256: str
    """Hash of the tarball, or over all files of the tree."""
    checked: str | None = None
    """The reference that the checksum was verified against; None if no checksum is published."""
    repository: str | None = None
    """Path of the git repository on this host."""
    commit: str | None = None
    """The full commit hash; for a tree with changes, the commit that they are based on."""
    is_changed: bool = False
    """Whether the tree has uncommitted changes."""
    has_configure: bool = True
    """Whether it can be built with configure, as all releases can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInputs:
    """All inputs of a build from source."""

    source: SourceFacts
    options: BuildOptions
    manner: BuildManner
    compiler: str
    """The first line of its --version output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """PostgreSQL binaries on this host, ready to run."""

    version: str
    """The version that `postgres --version` reports: 17.8, 18beta1, 16.13 (Debian ...)."""
    bin_directory: Path
    origin: str
    """zonky, wheel, source, or `bin directory`."""
    sha256: str | None = None
    """Hash of the unpacked artifact, or over all inputs of a build from source; None for a directory of the user."""
    made_from: BuildInputs | None = None
    """None unless it was built from source here."""

    def program(self, name: str) -> Path:
        """Return the path of one of its programs."""
        return self.bin_directory / name


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyOffer:
    """The known versions of a family."""

    family: BuildFamily
    versions: tuple[Version, ...]
    age_s: float = 0.0
    """Age of the list in seconds."""
    problem: str = ""
    """Why no fresh list is available; empty if one is."""


Notify = Callable[[str], None]
"""Callback for one line of progress information."""

NotifyBytes = Callable[[str, int], None]
"""Callback for downloads: name, bytes received so far."""

NotifySteps = Callable[[str, int, int], None]
"""Callback for builds: name, steps done, estimated number of steps."""


class SourceCode(Protocol):
    """PostgreSQL's source in any form."""

    @property
    def facts(self) -> SourceFacts:
        """The description of the source."""

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Write the source files to a new directory; BuildError if the source differs from its description.

        user: the user that unpacks archives.
        """


_DIGITS_OF_NAME = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A source, and how to build it."""

    label: str
    """The server's name as given by the user; one of them if several servers share the build."""
    source: SourceCode
    made_from: BuildInputs
    release: Release | None = None
    """The required version; None for a tree, commit or tarball, which may have any."""

    @property
    def key(self) -> str:
        """SHA-256 over all inputs of the build: source, options, manner, compiler, and the version of our recipe."""
        made = self.made_from
        is_usual = made.manner.system is BuildSystem.CONFIGURE
        decisive = {
            "form": FORM,
            "source": made.source.sha256,
            "options": asdict(made.options),
            # configure, the default, does not change the key.
            "manner": asdict(replace(made.manner, system=None) if is_usual else made.manner),
            "compiler": made.compiler,
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """The name of its directory in the cache."""
        return name_of_key(self.key)


def name_of_key(key: str) -> str:
    """Return the directory name of the build with this key."""
    return f"{FROM_SOURCE}-{key[:_DIGITS_OF_NAME]}"


def order_of(
    label: str,
    source: SourceCode,
    options: BuildOptions,
    manner: BuildManner,
    compiler: str,
    release: Release | None = None,
) -> Order:
    """Return the order for a server. compiler: first line of its --version output. release: the required version."""
    system = manner.system or (BuildSystem.CONFIGURE if source.facts.has_configure else BuildSystem.MESON)
    made_from = BuildInputs(
        source=source.facts, options=options, manner=replace(manner, system=system), compiler=compiler
    )
    return Order(label=label, source=source, made_from=made_from, release=release)
