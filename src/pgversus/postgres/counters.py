"""Cumulative counters of a server, read before and after a window and subtracted.

A counter means the same in every version; it is omitted where a version counts something different under a similar
name (see the comments in `sql/counters/`). `study/counters.py` describes each name, `stats/counters.py` takes the
differences.

A reading is itself work and shows up in the next reading. In an open session that has read once before, a reading adds
2 commits, 30 buffer hits and a row for each table of the database and its catalog (600 rows in an empty database), as
measured by CounterSession.own_growth(). A new session adds some 1,000 buffer hits and as many rows, since it fills its
caches.
"""

import math
from contextlib import ExitStack, suppress
from itertools import pairwise

import psycopg

from pgversus.errors import ServerError
from pgversus.postgres.catalog import database_bytes, reports_late, sql_text, wait_for_reports
from pgversus.postgres.session import Connection, Target, asking, connect
from pgversus.stats.counters import difference

_OLDEST, _NEWEST = 12, math.inf
# The files of sql/counters/, each with the first and last major that it is written for.
_QUESTIONS: dict[str, tuple[int, float]] = {
    "database": (_OLDEST, _NEWEST),
    "wal": (14, _NEWEST),
    "background_writer": (_OLDEST, _NEWEST),
    "checkpoints.until_16": (_OLDEST, 16),
    "checkpoints.since_17": (17, _NEWEST),
    "io.until_17": (16, 17),
    "io.since_18": (18, _NEWEST),
    "io_reads.in_16": (16, 16),
    "maintenance": (_OLDEST, _NEWEST),
    "flush.since_15": (15, _NEWEST),
}

# The counters that a reading itself increases. Others, such as those of a checkpoint, are not its work.
_MOVED_BY_READING = (
    "transactions_committed",
    "buffers_hit",
    "tuples_returned",
    "tuples_fetched",
    "client_io_hits",
    "server_io_hits",
)
_READINGS_UNTIL_SETTLED = 4
# The first reading fills the session's caches and reports late; each later difference is the work of one reading.
# The smallest difference is used, because autovacuum may have run meanwhile.


def read_counters(connection: Connection) -> dict[str, float]:
    """Return cumulative counters by name, in bytes, seconds and counts, as reported so far.

    They cover the current database if PostgreSQL counts by database, otherwise the whole cluster. Counters that this
    version lacks, or that this role may not read, are omitted. connection: not in a transaction. psycopg.Error
    if it is lost.
    """
    major = connection.info.server_version // 10000
    found: dict[str, float] = {}
    # One transaction: one counted commit, and before 15 one read of the statistics file instead of seven.
    with connection.transaction():
        for name, (first, last) in _QUESTIONS.items():
            if first <= major <= last:
                found |= _answer(connection, name)
    return found


def read_settled_counters(connection: Connection) -> dict[str, float]:
    """Return read_counters() once all ended sessions have reported.

    This takes some milliseconds, before 15 a second, and up to a second more if other sessions remain.
    """
    wait_for_reports(connection)
    return read_counters(connection)


class CounterSession:
    """A session that stays open between readings, so that connecting is not counted.

    A reading then adds little to the next one, and about the same each time.
    """

    def __init__(self, target: Target) -> None:
        """Raise ServerError if the server rejects the connection."""
        self._target = target
        with ExitStack() as stack:
            self._connection = stack.enter_context(connect(target))
            # The first reading fills this session's caches, which the next one would count.
            self.read()
            self._stack = stack.pop_all()

    def read(self, *, settled: bool = False) -> dict[str, float]:
        """Return cumulative counters. settled: let ended sessions report first. ServerError if the session is lost."""
        with asking(self._target):
            return read_settled_counters(self._connection) if settled else read_counters(self._connection)

    @property
    def reports_late(self) -> bool:
        """Whether a settled reading waits for the reports of ended sessions."""
        return reports_late(self._connection)

    def own_growth(self) -> dict[str, float]:
        """Return the amount that one reading adds to the next, by counter. ServerError if the session is lost.

        Before 15 this takes 4 to 8 s, since statistics arrive up to half a second late.
        """
        _, *readings = [self.read(settled=True) for _ in range(_READINGS_UNTIL_SETTLED)]
        grown = [difference(before, after) for before, after in pairwise(readings)]
        return {
            name: min(one[name] for one in grown) for name in _MOVED_BY_READING if all(name in one for one in grown)
        }

    def database_bytes(self) -> int:
        """Return the size of the database in bytes. ServerError if the session is lost."""
        with asking(self._target):
            return database_bytes(self._connection)

    def close(self) -> None:
        """Close the session, even if it is already lost."""
        with suppress(ServerError):
            self._stack.close()


def _answer(connection: Connection, name: str) -> dict[str, float]:
    try:
        # A savepoint: a permission error must not fail the other queries.
        with connection.transaction():
            cursor = connection.execute(sql_text(f"counters/{name}"))
            row = cursor.fetchone()
    except psycopg.errors.InsufficientPrivilege:
        return {}
    names = [column.name for column in cursor.description or ()]
    return {name: float(value) for name, value in zip(names, row or (), strict=False) if value is not None}
