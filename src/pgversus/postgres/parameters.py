"""Parameters of a statement as a server sees them: their types, their columns, and the values of these columns."""

from collections.abc import Callable
from itertools import chain
from typing import TypeVar

import psycopg
from psycopg import sql

from pgversus.errors import ServerError
from pgversus.postgres.catalog import sql_text
from pgversus.postgres.session import Connection
from pgversus.statements.statement import Sample, Suggestion
from pgversus.statements.value_choice import Column, ColumnValues, assigned, chosen_samples, uses_in_plan
from pgversus.text.redaction import code_without_secrets

T = TypeVar("T")
_NAME = "pgversus_parameters"
_TRIAL_MS = 1000
_EXPLAIN = "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) "
_TYPES = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = %s"


def suggestion(connection: Connection, text: str) -> Suggestion:
    """Return samples of a statement with common and with rare values of the columns that use its parameters.

    None are suggested if the server rejects the statement, or if the column of a parameter or its statistics are
    unknown. Values with which it fails are left out. Each sample is executed for a short time, and undone. text: one
    statement, according to the parser. ServerError if the server is lost.
    """

    def ask() -> Suggestion:
        connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        # The conditions of partitions that are pruned for NULL would be missing.
        connection.execute("SET LOCAL enable_partition_pruning = off")
        _prepare(connection, text)
        accepted.append(True)
        return Suggestion(samples=tuple(_suggested(connection, text)))

    accepted: list[bool] = []
    # What fails later concerns the search for values, not the statement.
    return _asked(connection, text, ask, lambda message: Suggestion(rejection="" if accepted else message))


def can_be_prepared(connection: Connection, text: str) -> bool:
    """Return whether the server accepts a statement with parameters of unspecified types.

    text: one statement, according to the parser. ServerError if the server is lost.
    """

    def ask() -> bool:
        _prepare(connection, text)
        return True

    return _asked(connection, text, ask, lambda _message: False)


def _prepare(connection: Connection, text: str) -> None:
    connection.execute(f"PREPARE {_NAME} AS {text}".encode())


def _asked(connection: Connection, text: str, ask: Callable[[], T], reject: Callable[[str], T]) -> T:
    """Return the answer of `ask` in a transaction that is rolled back, or of `reject` to the server's message."""
    try:
        # A prepared statement outlives the transaction in which it has failed.
        connection.execute("DEALLOCATE ALL")
        with connection.transaction(force_rollback=True):
            return ask()
    except psycopg.Error as error:
        if connection.closed:
            raise ServerError(
                "the connection to the server was lost while it planned a statement",
                slug="server-connection",
                where=" ".join(code_without_secrets(text).split()),
                found=str(error).strip(),
                expected="a server that plans the statement or rejects it",
                to_do="read the server's log, and remove this statement from the sources",
            ) from error
        return reject(code_without_secrets(error.diag.message_primary or str(error).strip().partition("\n")[0]))


def _suggested(connection: Connection, text: str) -> list[Sample]:
    row = connection.execute(_TYPES, (_NAME,)).fetchone()
    assert row is not None  # noqa: S101 - it has just been prepared
    types: list[str] = row[0]
    nulls = sql.SQL(", ").join([sql.SQL("NULL")] * len(types))
    explain = sql.SQL(_EXPLAIN + "EXECUTE {}({})").format(sql.Identifier(_NAME), nulls)
    ((explained,),) = connection.execute(explain).fetchall()
    # A rule may replace the statement by nothing, by several statements, or by one without a plan (NOTIFY).
    plans = [one["Plan"] for one in explained if isinstance(one, dict) and "Plan" in one]
    uses = [*chain.from_iterable(map(uses_in_plan, plans)), *assigned(text)]
    known = {column: _values(connection, column) for column in {use.column for use in uses}}
    return [sample for sample in chosen_samples(text, types, uses, known) if _works(connection, sample)]


def _works(connection: Connection, sample: Sample) -> bool:
    """Return whether the prepared statement accepts these values; true if it takes too long to tell."""
    values = sql.SQL(", ").join(map(sql.Literal, sample.values))
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET LOCAL plan_cache_mode = auto")
            connection.execute(f"SET LOCAL statement_timeout = {_TRIAL_MS}")
            connection.execute(sql.SQL("EXECUTE {}({})").format(sql.Identifier(_NAME), values))
    except (psycopg.errors.QueryCanceled, psycopg.errors.InsufficientPrivilege):
        # A lack of rights says nothing about values; the measurement reports it.
        return True
    except psycopg.Error:
        if connection.closed:
            raise
        return False
    return True


def _values(connection: Connection, column: Column) -> ColumnValues:
    row = connection.execute(sql_text("column_values"), (column.table, column.name)).fetchone()
    most_common, histogram, is_unique = row or (None, None, False)
    return ColumnValues(
        most_common=tuple(most_common or ()), histogram=tuple(histogram or ()), is_unique=bool(is_unique)
    )
