"""Record the bundled shop on a server of its own: the counters and the log that an application leaves behind.

python -m tests.recorded_shop writes statements.csv and postgresql.csv of the bundled study.
"""

import csv
import io
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from pgversus.host.identity import server_user
from pgversus.lab.studies import library
from pgversus.postgres.client import fixed_client
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_sql
from pgversus.statements.statement import RecordedStatement
from tests.live.conftest import own_server

SHOP = library() / "shop-15-to-18"
SERVER = "15.14"
_SETTINGS = {
    "logging_collector": "on",
    "log_destination": "csvlog",
    "log_filename": "postgresql.log",
    "shared_preload_libraries": "pg_stat_statements",
    "shared_buffers": "256MB",
}
_SECONDS_OF_EACH = 0.2
_MOST_CALLS = 400
_EXECUTED = re.compile(r"ms  (?:execute [^:]*|statement): (?!SET |SELECT pg_stat)")
_EXPORT = (
    "COPY (SELECT userid, dbid, toplevel, queryid, query, calls, total_exec_time, mean_exec_time, rows "
    "FROM pg_stat_statements WHERE query !~ 'pg_stat_statements|^SET ' "
    "ORDER BY total_exec_time DESC) TO STDOUT CSV HEADER"
)


def shop_statements() -> list[RecordedStatement]:
    """Return the statements of the shop with their sets of values, in no particular order."""
    collection = Collection()
    read_sql("statements.sql", (SHOP / "statements.sql").read_text(), "", collection)
    return collection.statements


def main() -> None:
    """Record the shop."""
    statements = shop_statements()
    client = fixed_client(server_user())
    with own_server(SERVER, _SETTINGS) as server:
        server.start()
        conninfo = server.target.conninfo
        load = [str(client.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(SHOP / "shop.sql"), conninfo]
        subprocess.run(load, check=True)
        with psycopg.connect(conninfo, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
            connection.execute("VACUUM (FREEZE, ANALYZE)")
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute("SELECT pg_stat_statements_reset()")
            for one in statements:
                _execute(connection, one)
            with connection.cursor().copy(_EXPORT) as copied:
                (SHOP / "statements.csv").write_bytes(b"".join(bytes(chunk) for chunk in copied))
        log = server.cluster.data_directory / "log" / "postgresql.csv"
        (SHOP / "postgresql.csv").write_text("".join(_of_the_shop(log)))


def _execute(connection: psycopg.Connection, statement: RecordedStatement) -> None:
    """Execute a statement with each set of values: once for the log, then some time for the counters."""
    for sample in statement.samples:
        connection.execute("SET log_min_duration_statement = 0")
        begin = _seconds(connection, sample.text, sample.values)
        connection.execute("SET log_min_duration_statement = -1")
        for _ in range(min(_MOST_CALLS, round(_SECONDS_OF_EACH / begin))):
            _seconds(connection, sample.text, sample.values)


def _seconds(connection: psycopg.Connection, sql: str, values: tuple[str | None, ...]) -> float:
    begin = time.perf_counter()
    connection.execute(sql, values)
    return time.perf_counter() - begin


def _of_the_shop(log: Path) -> Iterator[str]:
    """Yield the lines of a csvlog that report the duration of a statement and its values."""
    with log.open(newline="") as lines:
        for row in csv.reader(lines):
            if _EXECUTED.search(row[13]):
                line = io.StringIO()
                csv.writer(line, lineterminator="\n").writerow(row)
                yield line.getvalue()


if __name__ == "__main__":
    main()
