"""The results file: opened for reading so that nothing in it is executed, and so that reading it always ends.

A results file may be untrusted. pgversus reads only tables of the form of schema.sql, without triggers. Views,
including those of schema.sql, are for SQL queries by users and are never read.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from pgversus.store.folder import FILE_NAME, SCHEMA_VERSION, unreadable
from pgversus.text.validation import first_problem

_KEYS: Mapping[str, tuple[str, ...]] = {
    "schema": (),
    "fact": (),
    "context": ("context",),
    "arm": ("context", "arm"),
    "preparation": ("context",),
    "block": ("context", "block"),
    "trial": ("context", "block", "arm"),
    "latency_histogram": ("context", "block", "arm"),
    "window": ("context", "block", "arm", "round"),
    "discarded_window": ("context", "block", "arm", "round", "attempt"),
    "counter_name": ("position",),
    "explained_arm": ("context", "arm"),
    "plan": ("context", "arm", "statement"),
    "lease": ("context", "block", "attempt"),
    "lease_end": ("context", "block", "attempt"),
    "unused_trial": ("context", "block", "attempt", "arm"),
}
"""The primary key of every table: rows are read in its order without sorting."""
_LATER = frozenset({"discarded_window", "explained_arm", "plan", "lease", "lease_end", "unused_trial"})
"""Tables that older results lack."""
_MOST_OBJECTS = 1000
"""Tables, indexes and views; schema.sql and later.sql create 33."""
_LEAST_S, _BYTES_PER_S = 20.0, 1e6
"""The time limit of reading: a minimum, plus a second for this many bytes. 100,000 trials take two seconds."""
_STEPS = 1000
"""Instructions of SQLite's virtual machine between two checks of the clock."""
_SOME_BYTES = 2**20
_LONGEST_VALUE = 10**9
"""The default limit of SQLite."""
_LONGEST_WORDS = 300
_BESIDE = ("-wal", "-shm", "-journal")
_LEAST_INDEX_BYTES = 2**15
"""The size of the smallest index of a WAL (-shm): SQLite does not write without a complete index."""


class ResultsFile(sqlite3.Connection):
    """An open results file."""

    size: int = 0
    """Size in bytes, including its WAL."""


@contextmanager
def opened(folder: Path) -> Iterator[ResultsFile]:
    """Open the results in a folder for reading, in one transaction.

    StoreError if the results are missing, damaged or of an unknown format; it also replaces sqlite3.Error, ValueError
    and RecursionError raised in the body.
    """
    try:
        size, uri = _checked_size(folder), read_only_uri(folder)
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None, factory=ResultsFile)) as database:
            database.size = size
            _bound(database)
            # One snapshot of the database: a run may be adding blocks meanwhile.
            database.execute("BEGIN")
            check_schema(database)
            yield database
    except OSError as error:
        raise unreadable(folder, error.strerror or error) from error
    except (sqlite3.Error, ValueError) as error:
        raise unreadable(folder, _error_text(error)) from error
    except RecursionError as error:
        raise unreadable(folder, "a document is nested too deeply") from error


def check_to_write(folder: Path) -> None:
    """Raise ValueError or OSError if opening these results for writing would affect another file.

    SQLite writes its WAL next to the file, whatever exists under that name. A rollback journal names files that are
    removed when it is played back; results never have one.
    """
    _checked_size(folder)
    if (folder / FILE_NAME).is_symlink():
        raise ValueError(f"{FILE_NAME} is a symbolic link")
    if os.path.lexists(folder / f"{FILE_NAME}-journal"):
        raise ValueError(f"there is a {FILE_NAME}-journal, which pgversus does not create")


def check_schema(database: sqlite3.Connection) -> None:
    """Raise ValueError if a table of pgversus is not of the expected form, or there is a trigger."""
    _harden(database)
    objects = database.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(_MOST_OBJECTS + 1)
    if len(objects) > _MOST_OBJECTS:
        raise ValueError(f"more than {_MOST_OBJECTS} tables and views")
    tables = set()
    for kind, name, sql in objects:
        if kind == "trigger":
            raise ValueError("there is a trigger, which pgversus does not create")
        if str(name).lower() in _KEYS:
            # SQLite stores the statement in this form, however it was typed.
            if kind != "table" or not str(sql).startswith("CREATE TABLE "):
                raise ValueError(f"{name} is not a table")
            tables.add(str(name).lower())
    for name in tables:
        _check_columns(database, name)
    if "schema" in tables:
        version = database.execute("SELECT version FROM schema").fetchone()
        if version != (SCHEMA_VERSION,):
            raise ValueError(f"schema version {version[0] if version else 'missing'}")
    if missing := _KEYS.keys() - _LATER - tables:
        raise ValueError(f"no table {min(missing)}")


def _harden(database: sqlite3.Connection) -> None:
    # Expressions in the schema may call only harmless functions, and the positions of cells in pages are verified.
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")


def _check_columns(database: sqlite3.Connection, table: str) -> None:
    columns = database.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    keys = sorted((place, name) for _, name, _, _, _, place, _ in columns if place)
    if any(hidden for *_, hidden in columns) or tuple(name for _, name in keys) != _KEYS[table]:
        raise ValueError(f"{table} is not a table of pgversus")


def _bound(database: ResultsFile) -> None:
    """Limit time and memory in proportion to the file: all values together cannot be longer than the file."""
    database.execute("PRAGMA query_only = ON")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(database.size + _SOME_BYTES, _LONGEST_VALUE))
    deadline = time.monotonic() + _LEAST_S + database.size / _BYTES_PER_S
    database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    database.text_factory = _Texts(2 * database.size + _SOME_BYTES)


class _Texts:
    """Decodes texts up to a total length: in a damaged file many rows may share the same bytes."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, text: bytes) -> str:
        self._left -= len(text)
        if self._left < 0:
            raise ValueError("more text than the file can hold")
        return text.decode()


def _checked_size(folder: Path) -> int:
    """Return the size of the file and its WAL in bytes; OSError or ValueError if it is not a readable regular file."""
    file = folder / FILE_NAME
    try:
        status = file.stat()
    except FileNotFoundError:
        raise ValueError(f"no {FILE_NAME}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{FILE_NAME} is not a regular file")
    size = status.st_size
    for path in (folder / f"{FILE_NAME}{end}" for end in _BESIDE):
        # A run removes these files when it ends.
        with suppress(FileNotFoundError):
            beside = path.lstat()
            if not stat.S_ISREG(beside.st_mode):
                raise ValueError(f"{path.name} is not a regular file")
            size += beside.st_size
    return size


def read_only_uri(folder: Path) -> str:
    """Return a URI for SQLite that can read results of another user, or on a full disk, and creates no files."""
    # SQLite would create files, or enlarge them, even to read.
    return f"{(folder / FILE_NAME).absolute().as_uri()}?{'mode=ro' if _may_be_written(folder) else 'immutable=1'}"


def _may_be_written(folder: Path) -> bool:
    """Return whether the WAL has content, or a run may be about to write to it."""
    wal, index = (folder / f"{FILE_NAME}{end}" for end in ("-wal", "-shm"))
    # A disk that was full when a run opened its results leaves an empty WAL and the beginning of an index.
    return wal.exists() and (_size(wal) > 0 or _size(index) >= _LEAST_INDEX_BYTES)


def _size(file: Path) -> int:
    """Return the size in bytes; 0 for a missing file: a run removes these files when it ends."""
    with suppress(FileNotFoundError):
        return file.stat().st_size
    return 0


def _error_text(error: Exception) -> str:
    """Return the message of an error; of several problems, the first."""
    if isinstance(error, sqlite3.OperationalError) and str(error) == "interrupted":
        return "reading takes too long for results of this size"
    if isinstance(error, ValidationError):
        return first_problem(error)
    return str(error)[:_LONGEST_WORDS]
