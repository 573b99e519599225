"""SHA-256 of artifacts that are known, beside what a registry itself says of them."""

import json
from functools import cache
from importlib import resources

from pgversus.study.servers import Family, Version


@cache
def _known() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("checksums.json").read_text(encoding="utf-8")
    known: dict[str, dict[str, str]] = json.loads(text)
    return known


def known_checksum(family: Family, version: Version) -> str | None:
    """The checksum that this version of pgversus was published with; None when it knows none."""
    return _known().get(family, {}).get(str(version))
