"""The counters of a trial in one field: an array in the order of a table of names.

A study has a hundred thousand trials with fifty counters each. As rows they would be most of the file, and reading them
most of a report; as text they wait until somebody asks.
"""

import json
import sqlite3
from collections.abc import ItemsView, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

_AT_HAND = 256
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
    """Counters by name, decoded when they are asked for; `items` is the quick way to many of them."""

    __slots__ = ("_positions", "_text")

    def __init__(self, positions: Mapping[str, int], text: str) -> None:
        """positions: of every name, counted from 0, in order; one object for all trials. text: the array."""
        self._positions = positions
        self._text = text

    def __getitem__(self, name: str) -> float:
        values = _decoded(self._text)
        position = self._positions[name]
        value = values[position] if position < len(values) else None
        if value is None:
            raise KeyError(name)
        return float(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._told())

    def __len__(self) -> int:
        return len(self._told())

    def items(self) -> ItemsView[str, float]:
        """Of all counters that were told; Mapping's own would look each of them up."""
        return self._told().items()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._told() == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def _told(self) -> dict[str, float]:
        # An array that was written before later names were known is shorter than they are.
        values = _decoded(self._text)
        if None not in values:
            # Nothing to leave out: a dict that is made without a step of Python for each counter.
            return dict(zip(self._positions, map(float, values), strict=False))
        told = zip(self._positions, values, strict=False)
        return {name: float(value) for name, value in told if value is not None}


@lru_cache(maxsize=_AT_HAND)
def _decoded(text: str) -> list[Any]:
    # Several times as fast as json.loads, to the same floats. Whole numbers are int, null is None.
    values: list[Any] = from_json(text)
    return values
