"""What is to be built, and the name under which it is known: equal orders are one build."""

import hashlib
import json
from dataclasses import asdict, dataclass

from pgversus.postgres.builds.model import FROM_SOURCE, MadeFrom
from pgversus.postgres.builds.source.recipe import FORM
from pgversus.postgres.builds.source.source import Source
from pgversus.study.build_options import BuildManner, BuildOptions

_DIGITS_OF_NAME = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A source, and how it is to be built."""

    label: str
    """As the user named the server; of two that are the same build, one."""
    source: Source
    made_from: MadeFrom

    @property
    def key(self) -> str:
        """SHA-256 over all that decides what comes out: source, options, manner, compiler, and our own recipe."""
        made = self.made_from
        decisive = {
            "form": FORM,
            "source": made.source.sha256,
            "options": asdict(made.options),
            "manner": asdict(made.manner),
            "compiler": made.compiler,
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def name(self) -> str:
        """Of its directory in the cache."""
        return f"{FROM_SOURCE}-{self.key[:_DIGITS_OF_NAME]}"


def order_of(label: str, source: Source, options: BuildOptions, manner: BuildManner, compiler: str) -> Order:
    """The order for a server. compiler: as it calls itself."""
    made_from = MadeFrom(source=source.facts, options=options, manner=manner, compiler=compiler)
    return Order(label=label, source=source, made_from=made_from)
