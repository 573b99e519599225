"""The queries that pgversus sends to a server, each a named function. Long queries are commented files in sql/.

There is no general query function: every query is listed here.
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

from pgversus.postgres.session import APPLICATION_ROLE, Connection

_POLL_S, _MOST_POLLS = 0.01, 100
_ROWS_FOR_EACH_OF_TARGET = 300
"""ANALYZE samples 300 rows for each unit of the target (std_typanalyze in PostgreSQL's analyze.c)."""
_LARGEST_TARGET = 10000
_ROOM = 1.05
_FIRST_WITH_SHARED_STATISTICS = 150000
LATE_REPORT_S = 1.0
"""Time after which a server before 15 has reported the statistics of ended sessions."""
_FIRST_WITH_UNKNOWN_ROWS = 140000
"""From 14 on, pg_class.reltuples is -1 instead of 0 for a table that was never analyzed."""
_FIRST_OID_OF_USERS = 16384
"""FirstNormalObjectId in PostgreSQL's transam.h."""

_CHEAP = {"jit": "off", "log_min_duration_statement": "-1", "log_duration": "off", "log_statement": "none"}
_PGBENCH_TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")

# Rows are hashed as text, which must not depend on settings of the role or the database.
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
    """The value of a setting in a session of the load."""

    value: str
    source: str
    context: str

    @property
    def is_default(self) -> bool:
        """Whether the value is the version's default or computed by the server from other settings."""
        return self.context != "internal" and self.source in ("default", "override")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProperties:
    """Properties of a server and its database."""

    version: str
    """Output of version(), which includes the compiler."""
    encoding: str
    collation: str
    """A libc locale, or another provider and its locale."""
    has_jit: bool
    """Whether JIT compilation is available, enabled or not."""
    configuration: Mapping[str, str]
    """Items of pg_config; empty if the role may not read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDigest:
    """Row count and hash of a table, independent of the order of its rows."""

    rows: int
    digest: str


def disable_jit_and_logging(connection: Connection) -> None:
    """Disable JIT and statement logging in this session, which an arm's settings may enable.

    Only superusers may change the logging.
    """
    is_superuser = connection.info.parameter_status("is_superuser") == "on"
    settings = _CHEAP.items() if is_superuser else [("jit", "off")]
    calls = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings)
    connection.execute(f"SELECT {calls}".encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOfLoad:
    """The state of a session of a load at one moment."""

    process: int
    is_active: bool
    """Whether it is executing something."""
    waits: bool
    """Whether it waits for its client or for a lock of another session."""
    began: float
    """Start of its transaction (epoch)."""
    changed: float
    """Last change between active and idle (epoch)."""


def sessions_of_load(connection: Connection, processes: list[int]) -> list[SessionOfLoad]:
    """Return the sessions of these server processes; sessions that have ended are omitted."""
    rows = connection.execute(sql_text("load_sessions"), (processes,)).fetchall()
    return [
        SessionOfLoad(process=process, is_active=is_active, waits=waits, began=began, changed=changed)
        for process, is_active, waits, began, changed in rows
    ]


def processes_of_load(connection: Connection, since: float, at_work_since: float) -> list[int]:
    """Return the process ids of sessions other than pgversus' own that began after `since`, oldest first.

    at_work_since: only sessions that have executed something after this time. Both are epochs.
    """
    return [pid for (pid,) in connection.execute(sql_text("load_processes"), (since, at_work_since)).fetchall()]


def waits_to_send(connection: Connection) -> bool:
    """Return whether a session other than pgversus' own waits for its client to read its output."""
    return connection.execute(sql_text("waiting_to_send")).fetchone() is not None


def terminate(connection: Connection, processes: list[int]) -> None:
    """Terminate the sessions of these server processes."""
    connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", (processes,))


def session_settings(connection: Connection) -> dict[str, SettingValue]:
    """Return all settings by name, with their values in a session of the load."""
    return {
        name: SettingValue(value=value, source=source, context=context)
        for name, value, source, context in connection.execute(sql_text("session_settings"))
        if value is not None
    }


def current_setting(connection: Connection, name: str) -> str:
    """Return the value of a setting in this session."""
    row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM has one row
    return str(row[0])


def server_properties(connection: Connection) -> ServerProperties:
    """Return the properties of the server and its build."""
    with connection.transaction():
        # pg_jit_available() is also false if the setting jit is off, which is reported as a setting.
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
    """Return the row count and hash of each user table, by qualified name."""
    tables = connection.execute(sql_text("user_tables")).fetchall()
    with connection.transaction():
        for name, value in _OUTPUT_FORM.items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        return {f"{schema}.{table}": _digest(connection, schema, table) for schema, table in tables}


def index_definitions(connection: Connection) -> dict[str, str]:
    """Return the definition of each index on user tables, by qualified name."""
    return {f"{schema}.{name}": text for schema, name, text in connection.execute(sql_text("user_indexes"))}


def relation_sizes(connection: Connection) -> dict[str, int]:
    """Return the size of each user table and index in bytes, by qualified name."""
    found = connection.execute(sql_text("relation_sizes"))
    # The size of a relation that was dropped meanwhile is null.
    return {name: int(size) for name, size in found if size is not None}


def pgbench_tables(connection: Connection) -> list[str]:
    """Return the names that `pgbench -i` would drop: its tables in any schema of the search path."""
    found = connection.execute(
        "SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NOT NULL", [list(_PGBENCH_TABLES)]
    )
    return [name for (name,) in found]


def rows_written(connection: Connection) -> int:
    """Return the number of rows inserted, updated and deleted in this database so far."""
    return int(_one(connection, "rows_written")[0])


def database_bytes(connection: Connection) -> int:
    """Return the size of this database in bytes."""
    return int(_one(connection, "database_bytes")[0])


def tables_are_empty(connection: Connection) -> bool:
    """Return whether there are user tables, and all of them were empty when they were last analyzed."""
    return bool(_one(connection, "tables_are_empty")[0])


def forget_empty_tables(connection: Connection) -> None:
    """Let the planner assume some rows in tables that are empty, as before their first VACUUM."""
    if connection.info.server_version >= _FIRST_WITH_UNKNOWN_ROWS:
        connection.execute(
            "UPDATE pg_class SET reltuples = -1 WHERE oid >= %s AND reltuples = 0 AND relkind IN ('r', 'm', 'p')",
            (_FIRST_OID_OF_USERS,),
        )


def databases(connection: Connection) -> list[str]:
    """Return the names of the databases that are not templates and accept connections, sorted."""
    rows = connection.execute(
        "SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname"
    )
    return [name for (name,) in rows]


def wait_for_reports(connection: Connection) -> None:
    """Wait until sessions that have just ended have reported their statistics.

    A backend reports when it exits, shortly after its client has disconnected. Before 15 the report goes to the
    statistics collector, which passes it on at most every half second.
    """
    # One transaction, so that polling adds only one to the counted transactions.
    with connection.transaction():
        for _ in range(_MOST_POLLS):
            if _one(connection, "other_sessions")[0] == 0:
                break
            time.sleep(_POLL_S)
            connection.execute("SELECT pg_stat_clear_snapshot()")
    if reports_late(connection):
        time.sleep(LATE_REPORT_S)


def reports_late(connection: Connection) -> bool:
    """Return whether the server reports statistics with a delay, as all do before 15."""
    return connection.info.server_version < _FIRST_WITH_SHARED_STATISTICS


def has_prewarm(connection: Connection) -> bool:
    """Return whether pg_prewarm is installed in this database and can be called."""
    return connection.execute("SELECT to_regproc('pg_prewarm')").fetchone() != (None,)


def can_prewarm(connection: Connection) -> bool:
    """Return whether this build includes pg_prewarm."""
    found = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_prewarm'").fetchone()
    return found is not None


def create_role(connection: Connection, name: str) -> None:
    """Create a role that cannot log in, unless it exists."""
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
        connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))


def set_for_database(connection: Connection, setting: str) -> None:
    """Set a setting for new sessions of this database. setting: as in SQL, `work_mem TO '4MB'`."""
    database = sql.Identifier(connection.info.dbname).as_string(connection)
    connection.execute(f"ALTER DATABASE {database} SET {setting}".encode())


def create_application_role(connection: Connection) -> None:
    """Create the role that executes the statements of an application, which is not a superuser."""
    connection.execute(sql_text("application_role").replace("{role}", APPLICATION_ROLE))


def install_prewarm(connection: Connection) -> None:
    """Install pg_prewarm in pg_catalog, which is in every search_path."""
    with connection.transaction():
        # Event triggers of the application do not concern it.
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm SCHEMA pg_catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prewarmed:
    """What the shared buffers of a server can hold."""

    tables_fit: bool
    """Whether they can hold all user tables and indexes."""
    database_fits: bool
    """Whether they can also hold everything else."""


def prewarm(connection: Connection, *, into_buffers: bool) -> Prewarmed:
    """Load user tables and indexes into shared buffers, if allowed and if they fit, or the operating system's cache."""
    row = connection.execute(sql_text("prewarm"), (into_buffers,)).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY has one row
    _, tables_fit, database_fits = row
    return Prewarmed(tables_fit=bool(tables_fit), database_fits=bool(database_fits))


def end_statements_after(connection: Connection, seconds: float) -> None:
    """Set statement_timeout in this session, unless it already has one."""
    milliseconds = str(max(1, round(1000 * seconds)))
    connection.execute(
        "SELECT set_config('statement_timeout', %s, false) WHERE current_setting('statement_timeout') = '0'",
        (milliseconds,),
    )


def rows_of(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a user's query; those of all its statements if it has several."""
    cursor = connection.execute(query.encode())
    rows = cursor.fetchall()
    while cursor.nextset():
        rows += cursor.fetchall()
    return rows


def statement_counters(connection: Connection) -> list[dict[str, Any]] | None:
    """Return the rows of pg_stat_statements for this database, by name of column; None without the extension.

    The columns differ between versions. ServerError inside `asking` if its library is not preloaded.
    """
    place = connection.execute(sql_text("statement_counters_schema")).fetchone()
    if place is None:
        return None
    query = sql.SQL(sql_text("statement_counters")).format(view=sql.Identifier(place[0], "pg_stat_statements"))
    cursor = connection.execute(query)
    names = [column.name for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def vacuum_analyze(connection: Connection, *, freezes: bool) -> None:
    """Run VACUUM and ANALYZE on the whole database. freezes: also freeze all rows."""
    connection.execute("VACUUM (FREEZE)" if freezes else "VACUUM")
    _analyze(connection)


def _analyze(connection: Connection) -> None:
    """Run ANALYZE on the whole database, apart from tables for which it would connect to another server."""
    names = connection.execute(sql_text("tables_to_analyze")).fetchall()
    connection.execute(f"ANALYZE {', '.join(name for (name,) in names)}".encode())


def analyze_fully(connection: Connection) -> None:
    """Run ANALYZE with the smallest target that reads every row of tables of up to three million rows.

    The result is then not random. The largest target is not used: the planner reads the larger statistics of small
    tables each time it plans a statement. The tables must have been vacuumed, so that their row counts are known.
    """
    (rows,) = _one(connection, "rows_of_a_sample")
    needed = math.ceil(_ROOM * rows / _ROWS_FOR_EACH_OF_TARGET)
    connection.execute(
        "SELECT set_config('default_statistics_target', greatest(setting::int, %s)::text, false) "
        "FROM pg_settings WHERE name = 'default_statistics_target'",
        (min(needed, _LARGEST_TARGET),),
    )
    _analyze(connection)


def remove_statistics(connection: Connection, *, only_extended: bool) -> None:
    """Remove the planner's statistics on tables of users, as if they had never been analyzed.

    only_extended: remove only extended statistics (CREATE STATISTICS).
    """
    connection.execute("DELETE FROM pg_statistic_ext_data")
    if not only_extended:
        unknown = -1 if connection.info.server_version >= _FIRST_WITH_UNKNOWN_ROWS else 0
        connection.execute("DELETE FROM pg_statistic WHERE starelid >= %s", (_FIRST_OID_OF_USERS,))
        connection.execute(
            "UPDATE pg_class SET relpages = 0, reltuples = %s, relallvisible = 0 "
            "WHERE oid >= %s AND relkind IN ('r', 'm', 'p', 'i', 't')",
            (unknown, _FIRST_OID_OF_USERS),
        )


def checkpoint(connection: Connection) -> None:
    """Run CHECKPOINT, so that no timed one starts in the next minutes."""
    connection.execute("CHECKPOINT")


def _configuration(connection: Connection) -> dict[str, str]:
    try:
        return dict(connection.execute(sql_text("build_configuration")).fetchall())
    except psycopg.errors.InsufficientPrivilege:
        return {}


def _digest(connection: Connection, schema: str, table: str) -> TableDigest:
    query = sql.SQL(sql_text("table_digest")).format(table=sql.Identifier(schema, table))
    row = connection.execute(query).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without GROUP BY has one row
    return TableDigest(rows=row[0], digest=row[1])


def _one(connection: Connection, name: str) -> tuple[Any, ...]:
    row = connection.execute(sql_text(name)).fetchone()
    assert row is not None  # noqa: S101 - these queries have exactly one row
    return row


@cache
def sql_text(name: str) -> Any:
    """Return the text of a file in sql/, such as `user_tables` or `counters/wal`."""
    # Typed Any: psycopg wants a literal string, and this text comes from the package's own files.
    return resources.files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
