"""Reports of real servers on long operations: VACUUM's counters afterwards, and the progress of a session meanwhile."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from pgversus.postgres.operation_reports import notice_text, operation_progress, vacuum_counters
from tests.live.conftest import somebodys_server

ROWS, DEAD = 6000, 2000
FILLED = (
    "ALTER SYSTEM SET autovacuum = off",
    "SELECT pg_reload_conf()",
    "CREATE TABLE t (id int PRIMARY KEY, filler text)",
    "INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(1, 6000) AS g",
    *["CREATE INDEX ON t (id)"] * 5,
    "DELETE FROM t WHERE id % 3 = 0",
)
SLOW = (
    "CREATE FUNCTION slow(id int) RETURNS int IMMUTABLE LANGUAGE plpgsql"
    " AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN id; END $$"
)
LONG_S = 60


@pytest.mark.parametrize("version", ["16.12", "17.8"])
def test_counters_of_vacuum_match_the_dead_rows(version: str) -> None:
    with somebodys_server(version, *FILLED) as uri, psycopg.connect(uri, autocommit=True) as connection:
        pages = connection.execute("SELECT pg_relation_size('t') / 8192").fetchone()
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice_text(notice)))
        connection.execute("VACUUM (VERBOSE) t")
        dirty = vacuum_counters(notices)
        notices.clear()
        connection.execute("VACUUM (VERBOSE) t")
        clean = vacuum_counters(notices)
    assert pages == (dirty["vacuum_pages_scanned"],)
    assert (dirty["vacuum_tuples_removed"], dirty["vacuum_dead_items_removed"]) == (DEAD, DEAD)
    assert (dirty["vacuum_index_scans"], dirty["vacuum_pages_removed"]) == (1, 0)
    assert dirty["vacuum_tuples_remain"] == ROWS - DEAD
    # At least one record per page, and nothing left to do for the next VACUUM.
    assert dirty["vacuum_wal_records"] >= dirty["vacuum_pages_scanned"]
    assert dirty["vacuum_buffers_hit"] >= dirty["vacuum_pages_scanned"]
    assert (clean["vacuum_tuples_removed"], clean["vacuum_index_scans"], clean["vacuum_wal_records"]) == (0, 0, 0)


@contextmanager
def running(uri: str, *statements: str) -> Iterator[int]:
    """Run the last of these statements in a separate session until the block ends; yield its process id."""
    with psycopg.connect(uri, autocommit=True) as session:
        for statement in statements[:-1]:
            session.execute(statement.encode())

        def run() -> None:
            with suppress(psycopg.errors.QueryCanceled):
                session.execute(statements[-1].encode())

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield session.info.backend_pid
        finally:
            while thread.is_alive():
                session.cancel_safe()
                thread.join(timeout=0.1)


def seen(uri: str, pid: int, line: str) -> bool:
    """Return whether the session is seen to report this progress."""
    deadline = time.monotonic() + LONG_S
    with psycopg.connect(uri, autocommit=True) as connection:
        while time.monotonic() < deadline:
            if re.fullmatch(line, operation_progress(connection, pid) or ""):
                return True
            time.sleep(0.01)
    return False


SLOWLY = ("SET vacuum_cost_limit = 1", "SET vacuum_cost_delay = '1ms'")


@pytest.mark.parametrize("version", ["zonky:12.22", "15.14", "16.12", "17.8", "18.0"])
def test_long_operations_report_their_progress(version: str) -> None:
    with somebodys_server(version, *FILLED, SLOW) as uri:
        with running(uri, *SLOWLY, "VACUUM t") as pid:
            assert seen(uri, pid, r"scanning heap, [1-9]\d? % of \d{3} pages scanned")
            assert seen(uri, pid, r"vacuuming indexes, (100 % of \d{3} pages scanned|[0-5] of 6 indexes)")
            assert seen(uri, pid, r"vacuuming heap, [1-9]\d? % of \d{3} pages vacuumed")
        with running(uri, "CREATE INDEX ON t (slow(id))") as pid:
            assert seen(uri, pid, r"building index: scanning table, [1-9]\d? % of \d{3} pages")
        with running(uri, "SELECT sum(slow(id)) FROM t") as pid, psycopg.connect(uri) as connection:
            assert operation_progress(connection, pid) is None


def test_analyze_copy_and_vacuum_full_report_their_progress() -> None:
    with somebodys_server("17.8", *FILLED, SLOW) as uri:
        with running(uri, *SLOWLY, "ANALYZE t") as pid:
            assert seen(uri, pid, r"acquiring sample rows, [1-9]\d? % of \d{3} pages")
        with running(uri, "COPY (SELECT slow(id) FROM t) TO PROGRAM 'cat >/dev/null'") as pid:
            assert seen(uri, pid, r"COPY TO, [1-9]\d* tuples")
        with running(uri, "CREATE INDEX ON t (slow(id)) WHERE id < 100", "VACUUM FULL t") as pid:
            assert seen(uri, pid, r"rebuilding index(, \d indexes)?")


def test_a_role_without_access_sees_no_progress() -> None:
    with (
        somebodys_server("17.8", *FILLED, SLOW, "CREATE ROLE u LOGIN") as uri,
        running(uri, "CREATE INDEX ON t (slow(id))") as pid,
        psycopg.connect(uri.replace("postgres@", "u@"), autocommit=True) as connection,
    ):
        assert seen(uri, pid, r"building index: .*")
        assert operation_progress(connection, pid) is None
