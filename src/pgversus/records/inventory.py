"""Contents of a host: entries of the cache, and servers that need neither fetching nor building."""

from dataclasses import dataclass
from enum import StrEnum


class CachedKind(StrEnum):
    """Kind of a cache entry."""

    BUILD = "build"
    SOURCE = "source"
    CCACHE = "ccache"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedThing:
    """A cache entry."""

    kind: CachedKind
    name: str
    size_bytes: int
    last_used: float
    """Seconds since 1970."""
    what: str
    """Description for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledServer:
    """A server that is available without fetching or building."""

    name: str
    """Name in the cache; for a server installed by other means, its bin directory."""
    version: str
    origin: str
    """zonky, wheel, source, or installed."""
    block_size_bytes: int | None
    """None if the program does not report it."""
    flags: str
    """Compiler flags, without warnings and flags common to all builds; empty if not reported."""
    options: str
    """Build options of a build from source, as appended to a server's name; empty for none."""
    size_bytes: int | None
    """Size on disk; None for a server installed by other means, whose files are not known."""
    directory: str
    made_from: str
    """Source and compiler of a build from source, with `full` or `meson` in between if built that way."""
