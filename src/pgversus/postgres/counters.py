"""What a server has done so far, in numbers that only grow: read before and after a window, and differenced.

Counters of one name mean the same in every version; where a version counts something else under a like name, the
counter is left out (`sql/counters/` says what and why). `study/counters.py` describes each name, `stats/counters.py`
takes the differences.

Reading is itself work and shows up in the next reading. From a session that is kept open and has read once before,
it is 2 commits, 30 pages found in buffers and a row for each table of the database and its catalog (600 in an empty
one), which CounterSession.own_growth() measures; each new session adds some 1,000 pages and as many rows, since it
fills its caches.
"""

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any

import psycopg

from pgversus.errors import ServerError
from pgversus.postgres.catalog import database_bytes, wait_for_reports
from pgversus.postgres.session import Connection, Target, connect, question_failed
from pgversus.stats.counters import difference

_OLDEST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One file of `sql/counters/` and the major versions for which it is written."""

    name: str
    first: int = _OLDEST
    last: int | None = None
    """None while there is no version that needs another file."""

    def suits(self, major: int) -> bool:
        return self.first <= major and (self.last is None or major <= self.last)


_QUESTIONS = (
    _Question(name="database"),
    _Question(name="wal", first=14),
    _Question(name="background_writer"),
    _Question(name="checkpoints.until_16", last=16),
    _Question(name="checkpoints.since_17", first=17),
    _Question(name="io.until_17", first=16, last=17),
    _Question(name="io.since_18", first=18),
    _Question(name="io_reads.in_16", first=16, last=16),
    _Question(name="maintenance"),
    _Question(name="flush.since_15", first=15),
)

# What a reading itself moves. Whatever else moves meanwhile, such as a checkpoint, is no work of the reading.
_MOVED_BY_READING = (
    "transactions_committed",
    "buffers_hit",
    "tuples_returned",
    "tuples_fetched",
    "client_io_hits",
    "server_io_hits",
)
_READINGS_UNTIL_SETTLED = 4
# The first fills the session's caches and reports late; from each of the others to the next is one reading's own work.
# The least of it counts: autovacuum may have worked meanwhile.


def read_counters(connection: Connection) -> dict[str, float]:
    """Cumulative counters by name, in bytes, seconds and counts, as far as they are reported by now.

    Of the current database where PostgreSQL counts by database, else of the whole cluster. A counter that this version
    lacks, or that this role may not read, is absent. connection: in no transaction. psycopg.Error when it is lost.
    """
    major = connection.info.server_version // 10000
    found: dict[str, float] = {}
    # One transaction: one commit to be counted, and before 15 one reading of the statistics file instead of seven.
    with connection.transaction():
        for question in _QUESTIONS:
            if question.suits(major):
                found |= _answer(connection, question.name)
    return found


def read_settled_counters(connection: Connection) -> dict[str, float]:
    """Cumulative counters, as read_counters() gives them, once the sessions that have ended have reported.

    That takes some milliseconds, before 15 a second; at most a second more where sessions of others stay.
    """
    wait_for_reports(connection)
    return read_counters(connection)


class CounterSession:
    """A session that stays open between readings, so that connecting is not among what is counted.

    What one reading adds to the next is then little, and about the same each time.
    """

    def __init__(self, target: Target) -> None:
        """ServerError when the server does not let us in."""
        self._target = target
        self._stack = ExitStack()
        self._connection = self._stack.enter_context(connect(target))
        # The first reading fills this session's caches, which the next one would count.
        self.read()

    def read(self, *, settled: bool = False) -> dict[str, float]:
        """Cumulative counters; settled waits for what ended sessions report. ServerError when the session is lost."""
        try:
            return read_settled_counters(self._connection) if settled else read_counters(self._connection)
        except psycopg.Error as error:
            raise question_failed(self._target, error) from error

    def own_growth(self) -> dict[str, float]:
        """What one reading adds to the next, by counter. ServerError when the session is lost.

        Before 15 it takes 4 s, and as much again may be added: statistics are read there up to half a second late.
        """
        _, *readings = [self.read(settled=True) for _ in range(_READINGS_UNTIL_SETTLED)]
        grown = [difference(before, after) for before, after in pairwise(readings)]
        return {
            name: min(one[name] for one in grown) for name in _MOVED_BY_READING if all(name in one for one in grown)
        }

    def database_bytes(self) -> int:
        """Size of the database. ServerError when the session is lost."""
        try:
            return database_bytes(self._connection)
        except psycopg.Error as error:
            raise question_failed(self._target, error) from error

    def close(self) -> None:
        """End the session; one that is lost already is no error."""
        with suppress(ServerError):
            self._stack.close()


def _answer(connection: Connection, name: str) -> dict[str, float]:
    try:
        # A savepoint: a refusal must not take the other questions with it.
        with connection.transaction():
            cursor = connection.execute(_text(name))
            row = cursor.fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return {}
    names = [column.name for column in cursor.description or ()]
    return {name: float(value) for name, value in zip(names, row or (), strict=False) if value is not None}


@cache
def _text(name: str) -> Any:
    # Read from our own files: psycopg asks for a literal, which this is in every way but the type.
    return resources.files(__package__).joinpath("sql", "counters", f"{name}.sql").read_text(encoding="utf-8")
