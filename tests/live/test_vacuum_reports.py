"""What real servers say of VACUUM when it is over."""

import psycopg
import pytest

from pgversus.postgres.vacuum_report import notice_text, vacuum_counters
from tests.live.test_servers import somebodys_server

ROWS, DEAD = 6000, 2000
FILLED = (
    "ALTER SYSTEM SET autovacuum = off",
    "SELECT pg_reload_conf()",
    "CREATE TABLE t (id int PRIMARY KEY, filler text)",
    "INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(1, 6000) AS g",
    *["CREATE INDEX ON t (id)"] * 5,
    "DELETE FROM t WHERE id % 3 = 0",
)


@pytest.mark.parametrize("version", ["16.12", "17.8"])
def test_what_vacuum_tells_is_what_was_made_dead(version: str) -> None:
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
    # A record for each page at least, and nothing more to do for the next one.
    assert dirty["vacuum_wal_records"] >= dirty["vacuum_pages_scanned"]
    assert dirty["vacuum_buffers_hit"] >= dirty["vacuum_pages_scanned"]
    assert (clean["vacuum_tuples_removed"], clean["vacuum_index_scans"], clean["vacuum_wal_records"]) == (0, 0, 0)
