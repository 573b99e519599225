"""Opening a results file that may come from anybody: nothing in it is run, and reading it ends.

What pgversus reads and writes are tables of the form of schema.sql, and no trigger hangs on them. The view of that file
is for people who ask in SQL, as are those that they have added: none is read here.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from pgversus.store.files import FILE_NAME, SCHEMA_VERSION, unreadable

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
    "counter_name": ("position",),
    "explained_arm": ("context", "arm"),
    "plan": ("context", "arm", "statement"),
}
"""Every table with the columns of its primary key, by which rows are read in order without sorting them."""
_LATER = frozenset({"explained_arm", "plan"})
"""Those that results from before there were plans lack."""
_MOST_OBJECTS = 1000
"""Tables, indexes and views; schema.sql makes 25."""
_LEAST_S, _BYTES_PER_S = 20.0, 1e6
"""Reading is given up after so long, and a second more for so many bytes. A hundred thousand trials take two."""
_STEPS = 1000
"""Of SQLite's machine, between two looks at the clock."""
_SOME_BYTES = 2**20
_LONGEST_VALUE = 10**9
"""SQLite's own limit, unless it was built with another."""
_LONGEST_WORDS = 300
_BESIDE = ("-wal", "-shm", "-journal")


class ResultsFile(sqlite3.Connection):
    """A results file that is open."""

    size: int = 0
    """Bytes, with its log."""


@contextmanager
def opened(folder: Path) -> Iterator[ResultsFile]:
    """Open the results in a folder to read them as of one moment.

    StoreError when there are none, when they are of another form, and when what is read of them is damaged: also for
    sqlite3.Error, ValueError and RecursionError that are raised inside.
    """
    try:
        size = _checked_size(folder)
        with closing(sqlite3.connect(_uri(folder), uri=True, isolation_level=None, factory=ResultsFile)) as database:
            database.size = size
            _bound(database)
            # One moment of it all: a run may be adding blocks meanwhile.
            database.execute("BEGIN")
            check_schema(database)
            yield database
    except OSError as error:
        raise unreadable(folder, error.strerror or error) from error
    except (sqlite3.Error, ValueError) as error:
        raise unreadable(folder, _words(error)) from error
    except RecursionError as error:
        raise unreadable(folder, "a document that is nested too deep") from error


def check_to_write(folder: Path) -> None:
    """ValueError or OSError where opening these results to write would touch another file.

    SQLite puts its log beside the file, whatever is there under that name. A rollback journal names files that are
    removed when it is played back; results never have one.
    """
    _checked_size(folder)
    if (folder / FILE_NAME).is_symlink():
        raise ValueError(f"{FILE_NAME} is a symbolic link")
    if os.path.lexists(folder / f"{FILE_NAME}-journal"):
        raise ValueError(f"{FILE_NAME}-journal lies beside it, which pgversus does not make")


def check_schema(database: sqlite3.Connection) -> None:
    """ValueError where what pgversus reads or writes is not a table of its form, or something hangs on it."""
    _harden(database)
    objects = database.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(_MOST_OBJECTS + 1)
    if len(objects) > _MOST_OBJECTS:
        raise ValueError(f"more than {_MOST_OBJECTS} tables and views")
    tables = set()
    for kind, name, sql in objects:
        if kind == "trigger":
            raise ValueError("a trigger, which pgversus does not make")
        if str(name).lower() in _KEYS:
            # As SQLite keeps it, whatever was typed.
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
    # What a schema says is not run with more than the functions that do nothing, and cells are where their pages say.
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")


def _check_columns(database: sqlite3.Connection, table: str) -> None:
    columns = database.execute(f'PRAGMA table_xinfo("{table}")').fetchall()
    keys = sorted((place, name) for _, name, _, _, _, place, _ in columns if place)
    if any(hidden for *_, hidden in columns) or tuple(name for _, name in keys) != _KEYS[table]:
        raise ValueError(f"{table} is not a table of pgversus")


def _bound(database: ResultsFile) -> None:
    """Bounds of time and memory, in proportion to the file: all values together are no longer than what holds them."""
    database.execute("PRAGMA query_only = ON")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(database.size + _SOME_BYTES, _LONGEST_VALUE))
    deadline = time.monotonic() + _LEAST_S + database.size / _BYTES_PER_S
    database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    database.text_factory = _Texts(2 * database.size + _SOME_BYTES)


class _Texts:
    """Makes texts of what was read, up to a length of all together: parts of a damaged file may be in many rows."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, text: bytes) -> str:
        self._left -= len(text)
        if self._left < 0:
            raise ValueError("more text than the file has room for")
        return text.decode()


def _checked_size(folder: Path) -> int:
    """Bytes of the file and its log; OSError where there is none, ValueError for what is not a file."""
    file = folder / FILE_NAME
    try:
        status = file.stat()
    except FileNotFoundError:
        raise ValueError(f"no {FILE_NAME}") from None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{FILE_NAME} is not a regular file")
    size = status.st_size
    for path in (folder / f"{FILE_NAME}{end}" for end in _BESIDE):
        # A run that ends takes them away.
        with suppress(FileNotFoundError):
            beside = path.lstat()
            if not stat.S_ISREG(beside.st_mode):
                raise ValueError(f"{path.name} is not a regular file")
            size += beside.st_size
    return size


def _uri(folder: Path) -> str:
    """Read only: looking at results of another user, or on a full disk, must work and leave nothing behind."""
    file = (folder / FILE_NAME).absolute()
    # Without a log beside it nobody is writing; SQLite would make files of its own even to read.
    is_closed = not file.with_name(f"{FILE_NAME}-wal").exists()
    return f"{file.as_uri()}?{'immutable=1' if is_closed else 'mode=ro'}"


def _words(error: Exception) -> str:
    """What is wrong, of many things the first."""
    if isinstance(error, sqlite3.OperationalError) and str(error) == "interrupted":
        return "reading it takes longer than results of its size do"
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)[:_LONGEST_WORDS]
