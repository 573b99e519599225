"""The counters of a trial in one field: an array in the order of a table of names.

A study has a hundred thousand trials with sixty counters each. As rows they would be most of the file, and reading them
most of a report.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic_core import from_json

from pgversus.stats.counter_table import Columns, CounterRow


def counter_names(database: sqlite3.Connection) -> tuple[str, ...]:
    """All names that the results know, in the order of the arrays."""
    return tuple(name for (name,) in database.execute("SELECT name FROM counter_name ORDER BY position"))


def counters_text(counters: Mapping[str, float], positions: Mapping[str, int]) -> str:
    """The array of one trial. positions: of every name, counted from 0."""
    values: list[float | None] = [None] * len(positions)
    for name, value in counters.items():
        values[positions[name]] = int(value) if value.is_integer() else value
    return json.dumps(values, separators=(",", ":"))


def counter_rows(columns: Columns, texts: Sequence[str]) -> list[CounterRow]:
    """The counters of many trials, from their arrays. columns: of counter_names()."""
    # Several times as fast as json.loads, to the same floats.
    rows, width = from_json(f"[{','.join(texts)}]"), len(columns.names)
    # An array that was written before later names were known is shorter than they are.
    filled = [row if len(row) == width else [*row, *[None] * (width - len(row))] for row in rows]
    return [CounterRow(columns, row) for row in np.array(filled, dtype=np.float64).reshape(len(filled), width)]
