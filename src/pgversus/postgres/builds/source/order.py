"""What is to be built, and the name under which it is known: equal orders are one build."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from pgversus.postgres.builds.model import FROM_SOURCE, MadeFrom
from pgversus.postgres.builds.source.recipe import FORM
from pgversus.postgres.builds.source.source import Source
from pgversus.study.build_options import BuildManner, BuildOptions, BuildSystem
from pgversus.study.servers import Release

_DIGITS_OF_NAME = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A source, and how it is to be built."""

    label: str
    """As the user named the server; of two that are the same build, one."""
    source: Source
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
    source: Source,
    options: BuildOptions,
    manner: BuildManner,
    compiler: str,
    release: Release | None = None,
) -> Order:
    """The order for a server. compiler: as it calls itself. release: what its source is said to be."""
    system = manner.system or (BuildSystem.CONFIGURE if source.facts.has_configure else BuildSystem.MESON)
    made_from = MadeFrom(source=source.facts, options=options, manner=replace(manner, system=system), compiler=compiler)
    return Order(label=label, source=source, made_from=made_from, release=release)
