"""The plan of each statement on one server, in a session as the load has it; what it writes is rolled back."""

import re
from collections.abc import Callable, Sequence

import psycopg

from pgversus.errors import WorkloadError
from pgversus.postgres.explain import explain, planner_settings, rows_digest, statistics_digests
from pgversus.postgres.session import Connection, Target, connect
from pgversus.records.plans import Captured, CapturedStatement, Statement

_DECLARES = re.compile(r"\s*DECLARE\b", re.IGNORECASE)


def capture(
    label: str,
    target: Target,
    statements: Sequence[Statement],
    *,
    with_rows: bool,
    begin: Callable[[int], None] = lambda _: None,
) -> Captured:
    """The plans of these statements, in this order; WorkloadError with the server's words when one fails.

    label: of the arm. with_rows: also hash what each returns. begin: told the number of each statement, from 1.
    """

    def captured_one(number: int, one: Statement) -> CapturedStatement:
        begin(number)
        return _captured(label, connection, one, with_rows=with_rows)

    with connect(target, as_the_load=True) as connection:
        with connection.transaction(force_rollback=True):
            captured = tuple(captured_one(number, one) for number, one in enumerate(statements, 1))
        return Captured(
            statements=captured,
            statistics=statistics_digests(connection),
            settings=planner_settings(connection),
        )


def _captured(label: str, connection: Connection, statement: Statement, *, with_rows: bool) -> CapturedStatement:
    try:
        if not _has_plan(connection, statement.text):
            connection.execute(statement.text.encode())
            return CapturedStatement(statement=statement, explained=None, rows=None)
        rows = rows_digest(connection, statement.text) if with_rows else None
        explained = explain(connection, statement)
        if _DECLARES.match(statement.text):
            # EXPLAIN runs its query, and there is no cursor yet for statements behind it.
            connection.execute(statement.text.encode())
        return CapturedStatement(statement=statement, explained=explained, rows=rows)
    except psycopg.Error as error:
        raise WorkloadError(
            f"a statement of the workload fails on {label}",
            slug="workload-not-explained",
            where=f"{statement.words}, on {label}",
            found=str(error).strip(),
            expected="a statement that runs on every arm",
            to_do="these are the server's own words; mend the script, its data or its variables",
        ) from error


def _has_plan(connection: Connection, text: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(f"EXPLAIN {text}".encode())
    except psycopg.errors.SyntaxError:
        return False
    return True
