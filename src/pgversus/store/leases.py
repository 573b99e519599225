"""Leases of blocks in a fleet: the right of one host to measure one block, which ends when the host is lost."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter

from pgversus.store.rows import Number, read_rows

_ATTEMPTS = TypeAdapter(list[tuple[Number, Number, Number]])
_LAST_ATTEMPTS = "SELECT context, block, max(attempt) FROM lease GROUP BY context, block ORDER BY context, block"
_HAS_LEASES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lease'"


class Outcome(StrEnum):
    """How a lease ended."""

    MEASURED = "measured"
    UNMEASURED = "unmeasured"
    """The start ended before it was the block's turn."""
    LOST = "lost"
    """The host was lost; a result that arrives later is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One attempt to measure one block."""

    context: int
    """Its number."""
    block: int
    attempt: int
    """From 1."""


def read_attempts(database: sqlite3.Connection) -> Mapping[tuple[int, int], int]:
    """Return the number of the last attempt at each block, by context and block; empty without a fleet."""
    if database.execute(_HAS_LEASES).fetchone() is None:
        return {}
    return {
        (context, block): attempt for context, block, attempt in read_rows(database, _LAST_ATTEMPTS, _ATTEMPTS, key=2)
    }
