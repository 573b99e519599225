"""What a session is doing just now, in one line, from the views in which PostgreSQL tells of its long operations."""

from functools import cache
from importlib import resources
from typing import Any

from pgversus.postgres.session import Connection

_OLDEST = 12
# The files of sql/progress/, each with the first and the last major that it is written for; None for no last.
_QUESTIONS: dict[str, tuple[int, int | None]] = {
    "vacuum.until_16": (_OLDEST, 16),
    "vacuum.since_17": (17, None),
    "analyze.since_13": (13, None),
    "create_index": (_OLDEST, None),
    "cluster": (_OLDEST, None),
    "copy.since_14": (14, None),
    "basebackup.since_13": (13, None),
}
_FEW = 100
# A share of fewer things than these says less than their number.


def operation_progress(connection: Connection, pid: int) -> str | None:
    """What a session is at and how far: `vacuuming heap, 45 % of 16394 pages vacuumed`, `COPY FROM, 1200 tuples`.

    None when it is at nothing that PostgreSQL tells of, or this role may not know. pid: of its process.
    One short query of views in memory. psycopg.Error when the connection is lost.
    """
    query = _query(connection.info.server_version // 10000)
    row = connection.execute(query, {"pid": pid}).fetchone()
    # Whoever may not look at the session finds its row, with nothing in it.
    return None if row is None or row[0] is None else _sentence(*row)


def _sentence(phase: str, done: int | None, total: int | None, unit: str) -> str:
    if total and done is not None:
        return f"{phase}, {_part(done, total)} {unit}"
    return f"{phase}, {done} {unit}" if done else phase


def _part(done: int, total: int) -> str:
    return f"{done} of {total}" if total < _FEW else f"{100 * done / total:.0f} % of {total}"


def _suits(name: str, major: int) -> bool:
    first, last = _QUESTIONS[name]
    return first <= major and (last is None or major <= last)


@cache
def _query(major: int) -> Any:
    """All views of this major at once: a session has one operation, and it should be disturbed but once."""
    texts = [_text(name) for name in _QUESTIONS if _suits(name, major)]
    return "UNION ALL\n".join(texts)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("sql", "progress", f"{name}.sql").read_text(encoding="utf-8")
