"""The counters of a trial in one field: an array in the order of a table of names.

A study has a hundred thousand trials with sixty counters each. As rows they would be most of the file; as text, reading
them would be most of a report. So they are the doubles themselves, in the byte order in which the sqlite3 shell can
read them too (the view `counter` of schema.sql).
"""

import sqlite3
from collections.abc import Mapping, Sequence
from math import nan

import numpy as np
import numpy.typing as npt

from pgversus.stats.counter_table import Columns, CounterRow

_DOUBLE = np.dtype(">f8")


def counter_names(database: sqlite3.Connection) -> tuple[str, ...]:
    """All names that the results know, in the order of the arrays."""
    return tuple(name for (name,) in database.execute("SELECT name FROM counter_name ORDER BY position"))


def counters_blob(counters: Mapping[str, float], positions: Mapping[str, int]) -> bytes:
    """The array of one trial. positions: of every name, counted from 0."""
    values = np.full(len(positions), nan, dtype=_DOUBLE)
    for name, value in counters.items():
        values[positions[name]] = value
    return values.tobytes()


def counter_rows(columns: Columns, blobs: Sequence[bytes]) -> list[CounterRow]:
    """The counters of many trials, from their arrays. columns: of counter_names(). ValueError for what is none."""
    table = _table(blobs, len(columns.names))
    return [CounterRow(columns, table, index) for index in range(len(blobs))]


def _table(blobs: Sequence[bytes], width: int) -> npt.NDArray[np.float64]:
    size = width * _DOUBLE.itemsize
    if all(len(blob) == size for blob in blobs):
        return np.frombuffer(b"".join(blobs), dtype=_DOUBLE).reshape(len(blobs), width).astype(np.float64)
    table = np.full((len(blobs), width), nan)
    for row, blob in zip(table, blobs, strict=True):
        # An array that was written before later names were known is shorter than they are.
        told = np.frombuffer(blob, dtype=_DOUBLE)
        row[: len(told)] = told
    return table
