"""EXPLAIN: the plan of a statement, what it returns, and the statistics that it was planned with."""

import json
from dataclasses import dataclass
from importlib import resources

import psycopg

from pgversus.postgres.session import Connection
from pgversus.study.planner_switches import PlannerSetting

_PLANNED = "EXPLAIN (VERBOSE, SETTINGS, FORMAT JSON) "
_RUN = "EXPLAIN (ANALYZE, BUFFERS, VERBOSE, SETTINGS, WAL, FORMAT JSON) "
"""The same options on all majors: of those that newer ones have SERIALIZE and MEMORY change what is timed."""
_HASH = "hashtextextended(pgversus_row::text, 0)::numeric"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One statement, as EXPLAIN's JSON tells it."""

    planned: str
    """Without running it."""
    run: str
    """With ANALYZE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDigest:
    """What a statement returned, whatever the order of its rows."""

    rows: int
    digest: str


def explain(connection: Connection, statement: str, *, is_run: bool = True) -> Explained:
    """The plan, first by itself, then run; psycopg.Error when the server does not explain or not run it.

    It runs for good: whoever asks has begun a transaction to be rolled back. is_run: False asks for the plan alone.
    """
    planned = _explained(connection, _PLANNED, statement)
    return Explained(planned=planned, run=_explained(connection, _RUN, statement) if is_run else planned)


def rows_digest(connection: Connection, statement: str) -> RowsDigest | None:
    """How many rows a statement returns and a hash over them; None for one that is no query.

    In a transaction, since it may write on its way.
    """
    # On a line of its own: a comment may end the statement.
    query = f"SELECT count(*), coalesce(sum({_HASH}), 0) FROM ({statement}\n) AS pgversus_row"  # noqa: S608 - the user's own
    try:
        with connection.transaction():
            row = connection.execute(query.encode()).fetchone()
    except (psycopg.errors.SyntaxError, psycopg.errors.FeatureNotSupported):
        # What changes data stands in no FROM.
        return None
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY has one row
    return RowsDigest(rows=row[0], digest=str(row[1]))


def planner_settings(connection: Connection) -> dict[str, PlannerSetting]:
    """What decides how this session's statements are planned, and how much memory they get, by name."""
    text = resources.files(__package__).joinpath("sql", "planner_settings.sql").read_bytes()
    return {
        name: PlannerSetting(value=value, default=default, is_switch=kind == "bool")
        for name, value, default, kind in connection.execute(text)
    }


def statistics_digests(connection: Connection) -> dict[str, str]:
    """For each of the user's tables, by qualified name, a hash over what ANALYZE has found of it."""
    text = resources.files(__package__).joinpath("sql", "statistics_digest.sql").read_bytes()
    return {f"{schema}.{table}": digest for schema, table, digest in connection.execute(text)}


def _explained(connection: Connection, options: str, statement: str) -> str:
    row = connection.execute(f"{options}{statement}".encode()).fetchone()
    assert row is not None  # noqa: S101 - EXPLAIN has one row
    # psycopg has read the JSON; it is kept as text.
    return json.dumps(row[0])
