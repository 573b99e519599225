"""Captures what VACUUM (VERBOSE) and its like print, on real servers: nothing in this folder was typed by hand.

`.venv/bin/python -m tests.data.vacuum.capture` writes MAJOR/CASE.txt: the notices, an empty line between two of them.
"""

from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgversus.postgres.operation_reports import notice_text
from tests.live.conftest import somebodys_server

HERE = Path(__file__).parent
VERSIONS = ("12.22", "13.22", "14.19", "15.14", "16.12", "17.8", "18.0")
QUIET = ("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")

TABLE = (
    "DROP TABLE IF EXISTS t, u",
    "CREATE TABLE t (id int PRIMARY KEY, pad text)",
    "INSERT INTO t SELECT g, repeat('x', 100) FROM generate_series(1, 5000) AS g",
)
DEAD = (*TABLE, "CREATE INDEX t_pad ON t (pad)", "DELETE FROM t WHERE id % 2 = 0")


@dataclass(frozen=True)
class Case:
    """What is captured of one statement, after others."""

    before: tuple[str, ...]
    statement: str
    first: int = 12
    old_snapshot: bool = False
    """Whether another session still sees what is deleted last."""


CASES = {
    "dead_rows": Case(DEAD, "VACUUM (VERBOSE) t"),
    "io_timing": Case(("SET track_io_timing = on", *DEAD), "VACUUM (VERBOSE) t"),
    "nothing_to_do": Case((*TABLE, "VACUUM t"), "VACUUM (VERBOSE) t"),
    # On less than 2 % of over 100 pages: from 14 on not worth a scan of the indexes.
    "few_dead_rows": Case(
        (*TABLE, "INSERT INTO t SELECT id + 5000, pad FROM t", "DELETE FROM t WHERE id <= 10"), "VACUUM (VERBOSE) t"
    ),
    "no_index": Case((*TABLE, "ALTER TABLE t DROP CONSTRAINT t_pkey", DEAD[-1]), "VACUUM (VERBOSE) t"),
    "truncated": Case((*TABLE, "DELETE FROM t WHERE id > 2000"), "VACUUM (VERBOSE) t"),
    "freeze": Case(TABLE, "VACUUM (VERBOSE, FREEZE) t"),
    "parallel": Case(("SET min_parallel_index_scan_size = 0", *DEAD), "VACUUM (VERBOSE, PARALLEL 1) t", first=13),
    "toast": Case(
        (
            *TABLE[:2],
            "ALTER TABLE t ALTER pad SET STORAGE EXTERNAL",
            "INSERT INTO t SELECT g, repeat('x', 7000) FROM generate_series(1, 300) AS g",
            "DELETE FROM t WHERE id % 2 = 0",
        ),
        "VACUUM (VERBOSE) t",
    ),
    "many_index_scans": Case(
        (
            *DEAD[:4],
            "INSERT INTO t SELECT g, '' FROM generate_series(5001, 450000) AS g",
            "DELETE FROM t",
            # Until 16 it holds no more than 174,762 dead item identifiers.
            "SET maintenance_work_mem = '1MB'",
        ),
        "VACUUM (VERBOSE) t",
    ),
    "two_tables": Case(
        (*DEAD[:4], "CREATE TABLE u AS TABLE t", "DELETE FROM u WHERE id < 1000", DEAD[4]), "VACUUM (VERBOSE) t, u"
    ),
    "not_yet_removable": Case(TABLE, "VACUUM (VERBOSE) t", old_snapshot=True),
    "with_analyze": Case(DEAD, "VACUUM (VERBOSE, ANALYZE) t"),
    "full": Case(DEAD, "VACUUM (VERBOSE, FULL) t"),
    "cluster": Case(DEAD, "CLUSTER VERBOSE t USING t_pkey"),
    "analyze": Case(DEAD, "ANALYZE VERBOSE t"),
    "reindex": Case(DEAD, "REINDEX (VERBOSE) TABLE t"),
}


def main() -> None:
    """Capture every case of every major."""
    for version in VERSIONS:
        folder = HERE / version.partition(".")[0]
        folder.mkdir(exist_ok=True)
        with somebodys_server(f"zonky:{version}", *QUIET) as uri:
            for name, case in CASES.items():
                if int(folder.name) >= case.first:
                    (folder / f"{name}.txt").write_text("\n\n".join(_notices(uri, case)) + "\n")


def _notices(uri: str, case: Case) -> list[str]:
    with psycopg.connect(uri, autocommit=True) as connection, psycopg.connect(uri) as other:
        for statement in case.before:
            connection.execute(statement.encode())
        if case.old_snapshot:
            other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            other.execute("SELECT 1")
            connection.execute("DELETE FROM t WHERE id <= 1000")
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice_text(notice)))
        connection.execute(case.statement.encode())
        return notices


if __name__ == "__main__":
    main()
