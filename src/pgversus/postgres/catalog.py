"""What pgversus asks a server: each question a named function; one of several lines has a commented file in sql/.

There is no general query function: what is not here is not asked.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from pgversus.postgres.session import Connection

_POLL_S, _MOST_POLLS = 0.01, 100
_ROWS_FOR_EACH_OF_TARGET = 300
"""ANALYZE samples 300 rows for each unit of the target (std_typanalyze in PostgreSQL's analyze.c)."""
_LARGEST_TARGET = 10000
_ROOM = 1.05
_FIRST_WITH_SHARED_STATISTICS = 150000

_CHEAP = {"jit": "off", "log_min_duration_statement": "-1", "log_duration": "off", "log_statement": "none"}
_PGBENCH_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

# Row text must not depend on what a role or a database has set: hashed rows are written in one fixed form.
_OUTPUT_FORM = {
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmloption": "content",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A setting as a session of the load has it."""

    value: str
    source: str
    context: str

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it: the version's own default, or computed by the server from others."""
        return self.context != "internal" and self.source in ("default", "override")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProperties:
    """What a server and its database are."""

    version: str
    """version(), with the compiler in it."""
    encoding: str
    collation: str
    """A locale of libc, or another provider and its locale."""
    has_jit: bool
    """Whether JIT compilation could be used, be it switched on or off."""
    configuration: Mapping[str, str]
    """Items of pg_config; empty where the role may not read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDigest:
    """What a table holds, whatever the order of its rows."""

    rows: int
    digest: str


def ask_cheaply(connection: Connection) -> None:
    """Switch off, for this session, what settings of an arm may add to each statement: JIT, logging."""
    calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in _CHEAP.items())
    connection.execute(f"SELECT {calls}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOfLoad:
    """What a session of a load is doing at one moment."""

    process: int
    is_active: bool
    """Whether it has something to do."""
    waits: bool
    """Whether it waits for its client, or for a lock of another session."""
    began: float
    """The epoch at which its transaction began."""
    changed: float
    """The epoch at which it last became active or idle."""


def sessions_of_load(connection: Connection, processes: list[int]) -> list[SessionOfLoad]:
    """Sessions by their server processes; those that have ended are absent."""
    rows = connection.execute(_text("load_sessions"), (processes,)).fetchall()
    return [
        SessionOfLoad(process=process, is_active=is_active, waits=waits, began=began, changed=changed)
        for process, is_active, waits, began, changed in rows
    ]


def processes_of_load(connection: Connection, since: float, at_work_since: float) -> list[int]:
    """Process ids of sessions of others than pgversus that began after `since`, the oldest first.

    at_work_since: only those that have executed something after this moment. Both are epochs.
    """
    return [pid for (pid,) in connection.execute(_text("load_processes"), (since, at_work_since)).fetchall()]


def waits_to_send(connection: Connection) -> bool:
    """Whether a session of others than pgversus waits for its client to read what was sent to it."""
    return connection.execute(_text("waiting_to_send")).fetchone() is not None


def terminate(connection: Connection, processes: list[int]) -> None:
    """End the sessions of these server processes."""
    connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (processes,))


def session_settings(connection: Connection) -> dict[str, SettingValue]:
    """Every setting by name, as a session of the load has it."""
    return {
        name: SettingValue(value=value, source=source, context=context)
        for name, value, source, context in connection.execute(_text("session_settings"))
        if value is not None
    }


def current_setting(connection: Connection, name: str) -> str:
    """A setting as this session has it."""
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return str(row[0])


def server_properties(connection: Connection) -> ServerProperties:
    """What the server is and how it was built."""
    with connection.transaction():
        # pg_jit_available() says no where JIT is merely switched off, which is a setting's business.
        connection.execute("SELECT set_config('jit', 'on', true)")
        version, encoding, collation, has_jit = _one(connection, "server_properties")
    return ServerProperties(
        version=version,
        encoding=encoding,
        collation=collation,
        has_jit=has_jit,
        configuration=_configuration(connection),
    )


def table_digests(connection: Connection) -> dict[str, TableDigest]:
    """Rows and hash of each of the user's tables, by qualified name."""
    tables = connection.execute(_text("user_tables")).fetchall()
    with connection.transaction():
        for name, value in _OUTPUT_FORM.items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        return {f"{schema}.{table}": _digest(connection, schema, table) for schema, table in tables}


def index_definitions(connection: Connection) -> dict[str, str]:
    """The definition of each index on the user's tables, by qualified name."""
    return {f"{schema}.{name}": text for schema, name, text in connection.execute(_text("user_indexes"))}


def relation_sizes(connection: Connection) -> dict[str, int]:
    """Bytes of each of the user's tables and indexes, by qualified name."""
    found = connection.execute(_text("relation_sizes"))
    # Of one that was dropped meanwhile there is none.
    return {name: int(size) for name, size in found if size is not None}


def pgbench_tables(connection: Connection) -> list[str]:
    """What `pgbench -i` would drop here: relations of these names, in any schema of the search path."""
    found = connection.execute(
        "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL", [list(_PGBENCH_TABLES)]
    )
    return [name for (name,) in found]


def rows_written(connection: Connection) -> int:
    """Rows inserted, updated and deleted in this database so far."""
    return int(_one(connection, "rows_written")[0])


def database_bytes(connection: Connection) -> int:
    """Size of this database's files."""
    return int(_one(connection, "database_bytes")[0])


def wait_for_reports(connection: Connection) -> None:
    """Wait until sessions that have just ended have reported what they did.

    A backend reports when it exits, a moment after its client has gone. Before 15 the report goes to another process,
    which hands it on at most every half second.
    """
    # One transaction, so that however often it asks it adds one to those that are counted.
    with connection.transaction():
        for _ in range(_MOST_POLLS):
            if _one(connection, "other_sessions")[0] == 0:
                break
            time.sleep(_POLL_S)
            connection.execute("SELECT pg_stat_clear_snapshot()")
    if connection.info.server_version < _FIRST_WITH_SHARED_STATISTICS:
        time.sleep(1.0)


def has_prewarm(connection: Connection) -> bool:
    """Whether pg_prewarm is installed in this database and can be called."""
    return connection.execute("SELECT to_regproc('pg_prewarm')").fetchone() != (None,)


def can_prewarm(connection: Connection) -> bool:
    """Whether this build has pg_prewarm at all."""
    found = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'").fetchone()
    return found is not None


def install_prewarm(connection: Connection) -> None:
    """Install pg_prewarm in this database, where no search_path can miss it."""
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm SCHEMA pg_catalog")


def prewarm(connection: Connection) -> bool:
    """Load the user's tables and indexes into shared buffers, or the system's cache.

    Return whether shared buffers can hold all of the database.
    """
    _, all_fits = _one(connection, "prewarm")
    return bool(all_fits)


def end_statements_after(connection: Connection, seconds: float) -> None:
    """From now on the server ends a statement of this session that takes longer, unless it has a limit already."""
    milliseconds = str(max(1, round(1000 * seconds)))
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false) WHERE current_setting('statement_timeout') = '0'",
        (milliseconds,),
    )


def rows_of(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """What a query of the user's returns; of several statements, what all of them return."""
    cursor = connection.execute(query.encode())
    rows = cursor.fetchall()
    while cursor.nextset():
        rows += cursor.fetchall()
    return rows


def vacuum_analyze(connection: Connection) -> None:
    """VACUUM ANALYZE of the whole database."""
    connection.execute("VACUUM (ANALYZE)")


def analyze_fully(connection: Connection) -> None:
    """ANALYZE with the least target by which every row is looked at, of tables up to three million, and none by chance.

    Not with the largest one: what ANALYZE then keeps of a small table is read each time a statement is planned. The
    tables have been vacuumed, so that their rows are known.
    """
    (rows,) = _one(connection, "rows_of_a_sample")
    needed = math.ceil(_ROOM * rows / _ROWS_FOR_EACH_OF_TARGET)
    connection.execute(
        "SELECT set_config('default_statistics_target', greatest(setting::int, %s)::text, false) "
        "FROM pg_settings WHERE name = 'default_statistics_target'",
        (min(needed, _LARGEST_TARGET),),
    )
    connection.execute("ANALYZE")


def checkpoint(connection: Connection) -> None:
    """CHECKPOINT, so that none happens by itself in the next minutes."""
    connection.execute("CHECKPOINT")


def _configuration(connection: Connection) -> dict[str, str]:
    try:
        return dict(connection.execute(_text("build_configuration")).fetchall())
    except psycopg.errors.InsufficientPrivilege:
        return {}


def _digest(connection: Connection, schema: str, table: str) -> TableDigest:
    query = sql.SQL(_text("table_digest")).format(table=sql.Identifier(schema, table))
    row = connection.execute(query).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY has one row
    return TableDigest(rows=row[0], digest=row[1])


def _one(connection: Connection, name: str) -> tuple[Any, ...]:
    row = connection.execute(_text(name)).fetchone()
    assert row is not None  # noqa: S101 - these queries have exactly one row
    return row


@cache
def _text(name: str) -> Any:
    # Read from our own files: psycopg asks for a literal, which this is in every way but the type.
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
