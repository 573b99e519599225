"""EXPLAIN: the plan of a statement, what it returns, and the statistics that it was planned with."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from itertools import count

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.types.string import TextLoader

from pgversus.postgres.session import Connection
from pgversus.records.plans import Explained, PlannerSetting, RowsDigest, Statement

_PLANNED = "EXPLAIN (VERBOSE, SETTINGS, FORMAT JSON) "
_RUN = "EXPLAIN (ANALYZE, BUFFERS, VERBOSE, SETTINGS, WAL, FORMAT JSON) "
"""The same options on all majors: of those that newer ones have SERIALIZE and MEMORY change what is timed."""
_NUMBERS = count(1)
# Of prepared statements: one whose statement has failed stays until its session ends.
_CUSTOM_PLANS = 5
"""As often a prepared statement is planned with its values before the server chooses between that and a plan for all
(documentation of PREPARE, plan_cache_mode)."""
_HASH = "hashtextextended(pgversus_row::text, 0)::numeric"


def explain(connection: Connection, statement: Statement, *, is_run: bool = True) -> Explained:
    """The plan, first by itself, then run; psycopg.Error when the server does not explain or not run it.

    It runs for good: whoever asks has begun a transaction to be rolled back. is_run: False asks for the plan alone.
    One that the load prepares is prepared, and its plan is the one that holds from the sixth time on.
    """
    with _prepared(connection, statement) as text:
        planned = _explained(connection, _PLANNED, text)
        return Explained(planned=planned, run=_explained(connection, _RUN, text) if is_run else planned)


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


@contextmanager
def _prepared(connection: Connection, statement: Statement) -> Iterator[str]:
    """The statement as EXPLAIN takes it: its text, or the EXECUTE of what has been prepared until the end."""
    name = sql.Identifier(f"pgversus_{next(_NUMBERS)}")
    if statement.template is None or not _can_prepare(connection, name, statement.template):
        yield statement.text
        return
    values = sql.SQL(", ").join(map(sql.Literal, statement.parameters))
    execute = sql.SQL("EXECUTE {} ({})").format(name, values).as_string(connection)
    try:
        for _ in range(_CUSTOM_PLANS):
            connection.execute(f"EXPLAIN {execute}".encode())
        yield execute
    finally:
        # Not where the statement has failed: its transaction is over, and the session will be soon.
        if connection.info.transaction_status != TransactionStatus.INERROR:
            connection.execute(sql.SQL("DEALLOCATE {}").format(name))


def _can_prepare(connection: Connection, name: sql.Identifier, template: str) -> bool:
    """Whether PREPARE takes it: what pgbench prepares through the protocol may be anything."""
    try:
        with connection.transaction():
            connection.execute(sql.SQL("PREPARE {} AS ").format(name).as_bytes(connection) + template.encode())
    except (psycopg.errors.SyntaxError, psycopg.errors.IndeterminateDatatype):
        return False
    return True


def _explained(connection: Connection, options: str, statement: str) -> str:
    with connection.cursor() as cursor:
        # As the server wrote it.
        cursor.adapters.register_loader("json", TextLoader)
        row = cursor.execute(f"{options}{statement}".encode()).fetchone()
    assert row is not None  # noqa: S101 - EXPLAIN has one row
    return str(row[0])
