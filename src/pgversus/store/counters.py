"""The counters of a trial in one column: an array in the order of a table of names.

A study may have a hundred thousand trials with sixty counters each. As rows they would take up most of the
file; as text, reading them would take most of the time of a report. They are therefore stored as doubles, which the
view `counter` of schema.sql reads in plain SQL.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from math import nan
from typing import Annotated

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter

from pgversus.stats.counters import Columns, CounterRow
from pgversus.store.rows import Place, read_rows

_DOUBLE = np.dtype(">f8")
_NAMES = TypeAdapter(list[tuple[Place, Annotated[str, Field(max_length=100)]]])
_MOST_NAMES = 1000
_LEAST, _MOST = 1e-100, 1e30
"""Bounds of nonzero counters: beyond them a quotient of two may not be a finite number."""


def counter_names(database: sqlite3.Connection) -> tuple[str, ...]:
    """Return all counter names in the order of the arrays; ValueError if they are invalid."""
    found = list(read_rows(database, "SELECT position, name FROM counter_name ORDER BY position", _NAMES, key=1))
    if [position for position, _ in found] != list(range(len(found))) or len(found) > _MOST_NAMES:
        raise ValueError("gaps between counter names, or too many of them")
    return tuple(name for _, name in found)


def array_size(columns: Columns) -> int:
    """Return the size in bytes of a trial's array with all names."""
    return len(columns.names) * _DOUBLE.itemsize


def counters_blob(counters: Mapping[str, float], positions: Mapping[str, int]) -> bytes:
    """Return the array of one trial. positions: index of each name, from 0."""
    values = np.full(len(positions), nan, dtype=_DOUBLE)
    for name, value in counters.items():
        values[positions[name]] = value
    return values.tobytes()


def counter_rows(columns: Columns, blobs: Sequence[bytes]) -> list[CounterRow]:
    """Return the counters of trials from their arrays. columns: from counter_names(). ValueError if invalid."""
    table = _table(blobs, len(columns.names))
    with np.errstate(invalid="ignore"):
        sizes = np.abs(table)
        if ((sizes > _MOST) | ((sizes > 0) & (sizes < _LEAST))).any():
            raise ValueError("a counter is out of range")
    # Of the many bit patterns of NaN, some raise an error in arithmetic.
    table[np.isnan(table)] = nan
    return [CounterRow(columns, table, index) for index in range(len(blobs))]


def _table(blobs: Sequence[bytes], width: int) -> npt.NDArray[np.float64]:
    size = width * _DOUBLE.itemsize
    if all(len(blob) == size for blob in blobs):
        return np.frombuffer(b"".join(blobs), dtype=_DOUBLE).reshape(len(blobs), width).astype(np.float64)
    table = np.full((len(blobs), width), nan)
    for row, blob in zip(table, blobs, strict=True):
        # An array written before later names were added is shorter.
        values = np.frombuffer(blob, dtype=_DOUBLE)
        row[: len(values)] = values
    return table
