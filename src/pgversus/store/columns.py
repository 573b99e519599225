"""Columns that came later than the first results with this form: added when more is written, else read as missing."""

import sqlite3

_ADDED = {"ratio_error": "REAL", "windows": "INTEGER"}
"""To the table of trials: names and types."""


def add_missing_columns(database: sqlite3.Connection) -> None:
    """Add what older results lack, so that blocks can be added to them."""
    for name in _ADDED.keys() - _columns(database):
        database.execute(f"ALTER TABLE trial ADD COLUMN {name} {_ADDED[name]}")


def selected(database: sqlite3.Connection, name: str) -> str:
    """Return a column for SELECT: by its name, or NULL where these results lack it."""
    return name if name in _columns(database) else "NULL"


def _columns(database: sqlite3.Connection) -> set[str]:
    return {row[1] for row in database.execute("PRAGMA table_info(trial)")}
