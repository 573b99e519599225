"""The counters of a trial in one field: an array in the order of a table of names.

A study has a hundred thousand trials with fifty counters each. As rows they would be most of the file, and reading them
most of a report; as text they wait until somebody asks.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from functools import lru_cache

_AT_HAND = 1024
# Decoded arrays that are kept: those of a context or two, which is what is asked for together.


def counter_names(database: sqlite3.Connection) -> tuple[str, ...]:
    """All names that the results know, in the order of the arrays."""
    return tuple(name for (name,) in database.execute("SELECT name FROM counter_name ORDER BY position"))


def counters_text(counters: Mapping[str, float], positions: Mapping[str, int]) -> str:
    """The array of one trial. positions: of every name, counted from 0."""
    values: list[float | None] = [None] * len(positions)
    for name, value in counters.items():
        values[positions[name]] = int(value) if value.is_integer() else value
    return json.dumps(values, separators=(",", ":"))


class StoredCounters(Mapping[str, float]):
    """Counters by name, decoded when they are asked for."""

    __slots__ = ("_names", "_text")

    def __init__(self, names: tuple[str, ...], text: str) -> None:
        self._names = names
        self._text = text

    def __getitem__(self, name: str) -> float:
        return _decoded(self._names, self._text)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_decoded(self._names, self._text))

    def __len__(self) -> int:
        return len(_decoded(self._names, self._text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


@lru_cache(maxsize=_AT_HAND)
def _decoded(names: tuple[str, ...], text: str) -> Mapping[str, float]:
    # An array that was written before later names were known is shorter than they are.
    values = zip(names, json.loads(text), strict=False)
    return {name: float(value) for name, value in values if value is not None}
