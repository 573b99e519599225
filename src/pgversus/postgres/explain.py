"""EXPLAIN: the plan of a statement, and the settings and statistics that it was planned with."""

import json
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.types.string import TextLoader

from pgversus.plans.explain import checked_root
from pgversus.plans.plan_keys import Raw
from pgversus.plans.statement_rows import FunctionName, functions_in
from pgversus.postgres.catalog import sql_text
from pgversus.postgres.session import Connection
from pgversus.records.plans import Explained, PlannerSetting, Statement
from pgversus.statements.literals import parameters_in

_PLANNED = "EXPLAIN (VERBOSE, SETTINGS, FORMAT JSON) "
_RUN = "EXPLAIN (ANALYZE, BUFFERS, VERBOSE, SETTINGS, FORMAT JSON) "
"""The same options on all majors. SERIALIZE and MEMORY of newer majors would also change what is timed."""
_LONGEST_RERUNS_S = 5.0
_NUMBERS = count(1)
"""Numbers in the names of prepared statements: one that has failed stays until its session ends."""
_CUSTOM_PLANS = 5
"""Number of custom plans before the server chooses between a custom and a generic plan (documentation of PREPARE,
plan_cache_mode)."""


def explain(connection: Connection, statement: Statement, *, is_run: bool = True, reruns: int = 0) -> Explained:
    """Return the plan of a statement, without and with execution; psycopg.Error if the server rejects it.

    The statement is really executed: the caller must begin a transaction and roll it back. A statement that the load
    prepares is prepared, and its plan is the one used from the sixth execution on.
    is_run: False for the plan without execution. reruns: additional executions, whose effects are undone; fewer if they
    take long.
    """
    with _prepared(connection, statement) as text:
        planned = _explained(connection, _PLANNED, text)
        if not is_run:
            return Explained(planned=planned, run=planned)
        more_runs: list[str] = []
        ends = time.monotonic() + _LONGEST_RERUNS_S
        while len(more_runs) < reruns and time.monotonic() < ends:
            with connection.transaction(force_rollback=True):
                more_runs.append(_explained(connection, _RUN, text))
        return Explained(planned=planned, run=_explained(connection, _RUN, text), more_runs=tuple(more_runs))


def explain_generic(connection: Connection, text: str) -> Explained:
    """Return the generic plan of a statement with parameters, whose values are unknown; psycopg.Error if rejected."""
    name = sql.Identifier(f"pgversus_{next(_NUMBERS)}")
    with connection.transaction(force_rollback=True):
        connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        # For NULL, all partitions would be pruned.
        connection.execute("SET LOCAL enable_partition_pruning = off")
        connection.execute(sql.SQL("PREPARE {} AS ").format(name).as_bytes(connection) + text.encode())
        nulls = sql.SQL(", ").join([sql.SQL("NULL")] * parameters_in(text))
        values = sql.SQL("({})").format(nulls) if parameters_in(text) else sql.SQL("")
        execute = sql.SQL("EXECUTE {}{}").format(name, values).as_string(connection)
        planned = _explained(connection, _PLANNED, execute)
    return Explained(planned=planned, run=planned)


def planned_root(connection: Connection, statement: str) -> Raw | None:
    """Return the top node of the plan of a statement, with VERBOSE; psycopg.Error if the server rejects it.

    None if a rule replaces the statement by nothing, by several statements, or by one without a plan.
    """
    explained = json.loads(_explained(connection, _PLANNED, statement))
    has_plan = len(explained) == 1 and isinstance(explained[0], dict) and "Plan" in explained[0]
    return checked_root(explained[0], "EXPLAIN") if has_plan else None


def index_keys(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return the keys of each ordered index by its name, as in an ORDER BY; ambiguous names are omitted."""
    return {name: tuple(keys) for name, keys in connection.execute(sql_text("index_keys"))}


_HARMLESS = frozenset(
    {"clock_timestamp", "gen_random_uuid", "pg_sleep", "random", "random_normal", "timeofday", "uuidv4", "uuidv7"}
)
"""Volatile functions of PostgreSQL that change nothing."""


def functions_that_may_write(connection: Connection, query: str) -> list[str]:
    """Return the volatile functions that a query calls, except those known to be harmless; empty if it has no plan."""
    try:
        with connection.transaction(force_rollback=True):
            root = planned_root(connection, query)
    except psycopg.Error:
        if connection.closed:
            raise
        # Its first run reports the error.
        return []
    called = () if root is None else functions_in(root)
    found = volatile_functions(connection, called)
    found = [(schema, name) for schema, name in found if schema or name not in _HARMLESS]
    return [f"{schema}.{name}()" if schema else f"{name}()" for schema, name in found]


def volatile_functions(connection: Connection, functions: Collection[FunctionName]) -> list[FunctionName]:
    """Return those of the functions that are volatile."""
    names = [list(column) for column in zip(*functions, strict=True)] if functions else [[], []]
    return list(connection.execute(sql_text("volatile_functions"), names))


def planner_settings(connection: Connection) -> dict[str, PlannerSetting]:
    """Return the settings that affect plans and memory of statements in this session, by name."""
    return {
        name: PlannerSetting(value=value, default=default, is_switch=kind == "bool")
        for name, value, default, kind in connection.execute(sql_text("planner_settings"))
    }


def statistics_digests(connection: Connection) -> dict[str, str]:
    """Return a hash over the statistics of each user table, by qualified name."""
    return {f"{schema}.{table}": digest for schema, table, digest in connection.execute(sql_text("statistics_digest"))}


@contextmanager
def _prepared(connection: Connection, statement: Statement) -> Iterator[str]:
    """Yield the statement for EXPLAIN: its text, or EXECUTE of a prepared statement that exists within the block."""
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
        # Not if the statement has failed: its transaction is aborted, and the session ends soon.
        if connection.info.transaction_status != TransactionStatus.INERROR:
            connection.execute(sql.SQL("DEALLOCATE {}").format(name))


def _can_prepare(connection: Connection, name: sql.Identifier, template: str) -> bool:
    """Return whether PREPARE accepts a template: pgbench prepares through the protocol, which accepts any statement."""
    try:
        with connection.transaction():
            connection.execute(sql.SQL("PREPARE {} AS ").format(name).as_bytes(connection) + template.encode())
    except (psycopg.errors.SyntaxError, psycopg.errors.IndeterminateDatatype):
        return False
    return True


def _explained(connection: Connection, options: str, statement: str) -> str:
    with connection.cursor() as cursor:
        # The text exactly as the server wrote it.
        cursor.adapters.register_loader("json", TextLoader)
        row = cursor.execute(f"{options}{statement}".encode()).fetchone()
    assert row is not None  # noqa: S101 - EXPLAIN has one row
    return str(row[0])
