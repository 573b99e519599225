"""Installed servers and the contents of the cache, as tables and JSON documents."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pgversus.records.inventory import CachedKind, CachedThing, InstalledServer
from pgversus.text.redaction import visible
from pgversus.text.units import count, duration, size


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, with aligned columns and no trailing spaces."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


CACHE_SCHEMA = "pgversus.cache/1"
_DAY_S = 24 * 3600.0


def cache_table(things: Sequence[CachedThing], root: str, now: float) -> str:
    """Return a line for each entry, and totals per kind. now: seconds since 1970."""
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
    lines = [visible(root), *(aligned([("kind", "name", "size", "last used", "what"), *rows]) if rows else [])]
    sums = [
        f"{count(len(of_kind), kind.value)}, {size(sum(thing.size_bytes for thing in of_kind))}"
        for kind in CachedKind
        for of_kind in [[thing for thing in things if thing.kind is kind]]
        # Many hosts do not have ccache.
        if of_kind or kind is not CachedKind.CCACHE
    ]
    return "\n".join([*lines, "; ".join(sums)]) + "\n"


def cache_document(things: Sequence[CachedThing], root: str) -> dict[str, Any]:
    """Return the entries as a JSON document; sizes in bytes, times in seconds since 1970."""
    return {"schema": CACHE_SCHEMA, "directory": root, "things": [asdict(thing) for thing in things]}


def _ago(seconds: float) -> str:
    seconds = max(0.0, seconds)
    days = int(seconds // _DAY_S)
    return f"{count(days, 'day')} ago" if days else f"{duration(seconds)} ago"


SERVERS_SCHEMA = "pgversus.servers/1"
_HEADS = ("name", "version", "origin", "block size", "options", "flags", "size", "from")


def servers_table(servers: Sequence[InstalledServer]) -> str:
    """Return a line for each server, in the given order."""
    if not servers:
        return "no servers found; install some with pgversus servers install, or let compare and run do it\n"
    rows = [tuple(map(visible, _cells(server))) for server in servers]
    return "\n".join(aligned([_HEADS, *rows])) + "\n"


def servers_document(servers: Sequence[InstalledServer], root: str) -> dict[str, Any]:
    """Return the servers as a JSON document; sizes in bytes, null if unknown."""
    return {"schema": SERVERS_SCHEMA, "cache": root, "servers": [asdict(server) for server in servers]}


def _cells(server: InstalledServer) -> tuple[str, ...]:
    return (
        server.name,
        server.version.partition(" ")[0],
        server.origin,
        f"{server.block_size_bytes // 1024} kB" if server.block_size_bytes else "",
        server.options,
        server.flags,
        size(server.size_bytes) if server.size_bytes is not None else "",
        server.made_from,
    )
