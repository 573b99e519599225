"""Digests of the rows that statements return or write, by which two servers are compared."""

from collections.abc import Sequence

import psycopg

from pgversus.plans.plan_keys import Raw
from pgversus.plans.statement_rows import StatementRows, writes
from pgversus.postgres.catalog import sql_text
from pgversus.postgres.explain import index_keys, planned_root, volatile_functions
from pgversus.postgres.session import Connection
from pgversus.records.plans import RowsDigest
from pgversus.text.sql import quoted_name

_FLOATS = ("float4", "float8")


def rows_digest(connection: Connection, statement: str) -> RowsDigest | None:
    """Return the number of rows that a statement returns or writes and a hash over them; None if it does neither.

    What it writes is undone. The values that it writes are hashed only if its plan shows that they depend on the data
    alone.
    """
    columns = _columns(connection, statement)
    root = planned_root(connection, statement)
    if root is None:
        return None
    if columns is None:
        return _digest_of_written(connection, statement, root)
    floats = [connection.adapters.types[name].oid for name in _FLOATS]
    returned = _rows(
        connection,
        statement,
        root,
        columns=[column.name for column in columns],
        with_floats=any(column.type_code in floats for column in columns),
    )
    with connection.transaction(force_rollback=True):
        row = connection.execute(_digest_query(statement, in_order=returned.is_ordered).encode()).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY has one row
    rows, digest, in_order = row
    return RowsDigest(
        rows=rows,
        digest=str(digest),
        in_order=None if in_order is None else str(in_order),
        uncertainties=returned.uncertainties(volatile_functions(connection, returned.functions), rows),
    )


def _columns(connection: Connection, statement: str) -> list[psycopg.Column] | None:
    """Return the columns that a statement returns, without running it; None if it is not a query."""
    # The statement may end with a comment, so the parenthesis is on a new line.
    nothing = f"SELECT * FROM ({statement}\n) AS pgversus_row LIMIT 0"  # noqa: S608 - the user's own
    try:
        with connection.transaction():
            return list(connection.execute(nothing.encode()).description or ())
    except (psycopg.errors.SyntaxError, psycopg.errors.FeatureNotSupported):
        # A statement that changes data is not allowed in FROM.
        return None


def _rows(
    connection: Connection, statement: str, root: Raw, *, columns: Sequence[str], with_floats: bool
) -> StatementRows:
    return StatementRows(
        statement=statement,
        columns=columns,
        has_floats=with_floats,
        root=root,
        unique_keys=_unique_keys(connection),
        index_keys=index_keys(connection),
    )


def _digest_query(statement: str, *, in_order: bool) -> str:
    """Return the query for the number of rows, a hash in any order, and a hash in order, seeded with the position."""
    ordered = "coalesce(sum(hashtextextended(numbered.text, numbered.place)::numeric), 0)" if in_order else "NULL"
    place = "row_number() OVER ()" if in_order else "NULL"
    return (
        f"SELECT count(*), coalesce(sum(hashtextextended(numbered.text, 0)::numeric), 0), {ordered} "  # noqa: S608 - the same
        f"FROM (SELECT pgversus_row::text AS text, {place} AS place FROM ({statement}\n) AS pgversus_row) AS numbered"
    )


def _digest_of_written(connection: Connection, statement: str, root: Raw) -> RowsDigest | None:
    """Return the number of rows that a statement writes, or returns while it writes, and possibly a hash over them."""
    if not writes(root):
        return None
    found = _hashed(connection, statement if root.get("Output") else f"{statement}\n{_returning(root)}")
    if found is not None:
        return found
    number = _number_of_rows(connection, statement)
    if number < 0:
        # libpq does not know the statement.
        return None
    rows = _rows(connection, statement, root, columns=(), with_floats=False)
    volatile = volatile_functions(connection, rows.functions)
    return RowsDigest(rows=number, digest=None, uncertainties=rows.uncertainties(volatile, number))


def _returning(root: Raw) -> str:
    """Return the clause that returns all columns of the written table, and none of other tables."""
    return f"RETURNING {quoted_name(str(root.get('Alias', '')))}.*"


def _hashed(connection: Connection, writing: str) -> RowsDigest | None:
    """Return the number of rows that a statement with RETURNING writes, and a hash over them in any order.

    None unless its plan shows that the values depend on the data alone, and if the statement cannot be planned or run
    like this: RETURNING may need more rights, and not every statement may be in a WITH clause.
    """
    query = (
        f"WITH pgversus_row AS ({writing}\n) "  # noqa: S608 - the same
        "SELECT count(*), coalesce(sum(hashtextextended(pgversus_row::text, 0)::numeric), 0) FROM pgversus_row"
    )
    try:
        with connection.transaction(force_rollback=True):
            root = planned_root(connection, writing)
            if root is None or _has_triggers(connection, root):
                return None
            # The types of the written columns are unknown.
            rows = _rows(connection, writing, root, columns=(), with_floats=True)
            volatile = volatile_functions(connection, rows.functions)
            if not rows.has_one_source_row or rows.uncertainties(volatile, 0):
                return None
            ((number, digest),) = connection.execute(query.encode()).fetchall()
    except psycopg.Error:
        if connection.closed:
            raise
        return None
    return RowsDigest(rows=number, digest=str(digest))


def _has_triggers(connection: Connection, root: Raw) -> bool:
    """Return whether a trigger may change the rows before they are written."""
    tables = [one for one in (root, *root.get("Target Tables", ())) if "Relation Name" in one]
    names = [[str(one.get(key, "")) for one in tables] for key in ("Schema", "Relation Name")]
    ((found,),) = connection.execute(sql_text("has_row_triggers"), names).fetchall()
    return bool(found)


def _number_of_rows(connection: Connection, statement: str) -> int:
    with connection.transaction(force_rollback=True):
        return connection.execute(statement.encode()).rowcount


def _unique_keys(connection: Connection) -> dict[tuple[str, str], list[tuple[str, ...]]]:
    """Return the sets of columns that identify a row, by schema and table."""
    found: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for schema, table, columns in connection.execute(sql_text("unique_keys")):
        found.setdefault((schema, table), []).append(tuple(columns))
    return found
