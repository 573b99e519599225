"""What is in the cache: builds and loaded data, as a table and as a JSON document."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pgversus.report.aligned import aligned
from pgversus.text.redaction import visible
from pgversus.text.units import count, duration, size

SCHEMA = "pgversus.cache/1"
_DAY_S = 24 * 3600.0


class Kind(StrEnum):
    """What a cache holds."""

    BUILD = "build"
    SOURCE = "source"
    CCACHE = "ccache"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedThing:
    """One of them."""

    kind: Kind
    name: str
    size_bytes: int
    last_used: float
    """Seconds since 1970."""
    what: str
    """What it is, in words."""


def cache_table(things: Sequence[CachedThing], root: str, now: float) -> str:
    """A line for each, with the sum of each kind. now: seconds since 1970."""
    rows = [
        (
            thing.kind.value,
            visible(thing.name),
            size(thing.size_bytes),
            _ago(now - thing.last_used),
            visible(thing.what),
        )
        for thing in things
    ]
    lines = (
        [visible(root), *aligned([("kind", "name", "size", "last used", "what"), *rows])] if rows else [visible(root)]
    )
    sums = [
        f"{count(len(of_kind), kind.value)}, {size(sum(thing.size_bytes for thing in of_kind))}"
        for kind in Kind
        for of_kind in [[thing for thing in things if thing.kind is kind]]
        # Many hosts have no ccache.
        if of_kind or kind is not Kind.CCACHE
    ]
    return "\n".join([*lines, "; ".join(sums)]) + "\n"


def cache_document(things: Sequence[CachedThing], root: str) -> dict[str, Any]:
    """The same for programs; bytes, and seconds since 1970."""
    return {
        "schema": SCHEMA,
        "directory": root,
        "things": [
            {
                "kind": thing.kind.value,
                "name": thing.name,
                "size_bytes": thing.size_bytes,
                "last_used": thing.last_used,
                "what": thing.what,
            }
            for thing in things
        ],
    }


def _ago(seconds: float) -> str:
    days = int(seconds // _DAY_S)
    return f"{count(days, 'day')} ago" if days else f"{duration(max(0.0, seconds))} ago"
