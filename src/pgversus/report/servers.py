"""The servers that are on this host, as a table and as a JSON document."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pgversus.report.aligned import aligned
from pgversus.text.redaction import visible
from pgversus.text.units import size

SCHEMA = "pgversus.servers/1"
_HEADS = ("name", "version", "origin", "block", "options", "flags", "size", "from")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHere:
    """A server that can be compared without fetching or building anything."""

    name: str
    """In the cache; the bin directory of one that others installed."""
    version: str
    origin: str
    """zonky, wheel, source, or installed."""
    block_size_bytes: int | None
    """None where the program does not tell."""
    flags: str
    """Of the compiler, without warnings and what every build has; empty where nobody tells."""
    options: str
    """Of a build from source, as they stand behind a server's name; empty for none."""
    size_bytes: int | None
    """On disk; None of one that others installed, whose files are not told apart."""
    directory: str
    made_from: str
    """Of a build from source its source and its compiler, in words; `full` or `meson` where it was built so."""


def servers_table(servers: Sequence[ServerHere]) -> str:
    """A line for each, in their order."""
    if not servers:
        return "no server is here yet; compare, run and pgversus servers install fetch what they need\n"
    rows = [tuple(map(visible, _cells(server))) for server in servers]
    return "\n".join(aligned([_HEADS, *rows])) + "\n"


def servers_document(servers: Sequence[ServerHere], root: str) -> dict[str, Any]:
    """The same for programs; sizes in bytes, null where there is none."""
    return {"schema": SCHEMA, "cache": root, "servers": [asdict(server) for server in servers]}


def _cells(server: ServerHere) -> tuple[str, ...]:
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
