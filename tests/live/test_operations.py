"""One-off operations: every repetition starts from the same state, is timed by step, and must pass verification."""

import signal
from typing import Any

import pytest

from pgversus.engine.testbed import TrialFailedError
from pgversus.study.workload import Operation
from pgversus.workload.operation_run import verify
from tests.live.conftest import CommandLine, Ended, own_server, results_database

FILL = "CREATE TABLE t AS SELECT g AS id, 0 AS n FROM generate_series(1, 20000) AS g; CREATE INDEX ON t (id);\n"
DIRTY = "UPDATE t SET n = n + 1 WHERE id % 100 < :dead;\n"
VACUUM = "VACUUM (VERBOSE) t"


def operate(line: CommandLine, *arguments: str) -> Ended:
    line.write("fill.sql", FILL)
    line.write("dirty.sql", DIRTY)
    prepared = ("--setup", "fill.sql", "--prepare", "dirty.sql", "-D", "dead=70")
    return line.compare("17.8", "17.8", *prepared, *arguments, "--blocks", "2")


def trials(line: CommandLine, query: str) -> list[tuple[Any, ...]]:
    database = results_database(line.directory / "results")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def test_every_repetition_starts_from_the_prepared_state(command_line: CommandLine) -> None:
    ended = operate(
        command_line,
        *("--operation", VACUUM, "--operation", "ANALYZE t"),
        *("--verify", "SELECT n_dead_tup = 0 FROM pg_stat_user_tables"),
    )
    assert ended.code == 0, ended.stderr
    removed = trials(command_line, "SELECT value FROM counter WHERE name = 'vacuum_tuples_removed'")
    assert removed == [(14000.0,)] * 4, "two blocks of two arms"
    reported = {name for (name,) in trials(command_line, "SELECT DISTINCT name FROM counter")}
    assert reported >= {
        "wal_bytes",
        "server_cpu_user_s",
        "session_memory_peak_bytes",
        "data_bytes",
        "vacuum_index_scans",
    }
    steps = trials(command_line, "SELECT key, value FROM trial, json_each(trial.steps)")
    assert {name for name, _ in steps} == {VACUUM, "ANALYZE t"}
    assert all(0 < seconds < 60 for _, seconds in steps)


def test_a_failed_verify_query_fails_the_trial(command_line: CommandLine) -> None:
    ended = operate(
        command_line, "--operation", "ANALYZE t", "--verify", "SELECT n_dead_tup = 0 FROM pg_stat_user_tables"
    )
    assert ended.code == 4
    assert "verify query is not true: SELECT n_dead_tup = 0 FROM pg_stat_user_tables" in ended.stderr
    assert "(False,)" in ended.stderr


def test_a_verify_query_has_a_time_limit() -> None:
    operation = Operation(name="nothing", steps=(), verify=("SELECT pg_sleep(60) IS NOT NULL",))
    with own_server("17.8") as server:
        server.start()
        with pytest.raises(TrialFailedError, match="canceling statement due to statement timeout"):
            verify(operation, server.target, 0.2)


def test_a_failing_operation_is_reported_with_the_servers_message(command_line: CommandLine) -> None:
    ended = operate(command_line, "--operation", "VACUUM nothing")
    assert ended.code == 4
    assert 'relation "nothing" does not exist' in ended.stderr


def test_several_statements_in_a_step_and_missing_programs_fail_the_trial(command_line: CommandLine) -> None:
    several = operate(command_line, "--operation", "SELECT 1; SELECT 2")
    assert (several.code, "several statements in one step" in several.stderr) == (4, True)
    missing = operate(command_line, "--command", "pg_nothing --all")
    assert (missing.code, "program not found in" in missing.stderr) == (4, True)
    both = operate(command_line, "--operation", "ANALYZE t", "--verify", "SELECT true; SELECT false")
    assert (both.code, "(False,)" in both.stderr) == (4, True)


def test_a_program_connects_to_its_arm(command_line: CommandLine) -> None:
    ended = operate(command_line, "--command", "pg_dump -Fc -f all.dump", "--command", "psql -Xc 'DROP TABLE t'")
    assert ended.code == 0, ended.stderr
    steps = trials(command_line, "SELECT DISTINCT key FROM trial, json_each(trial.steps)")
    assert steps == [("pg_dump",), ("psql",)]


def test_a_kill_during_the_timed_statement_leaves_nothing(command_line: CommandLine) -> None:
    command_line.write("fill.sql", FILL)
    process = command_line.start(
        "compare", "17.8", "17.8", "--setup", "fill.sql", "--operation", "SELECT count(*), pg_sleep(30) FROM t"
    )
    command_line.wait_for(lambda: command_line.postmaster(0) or command_line.postmaster(1))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    command_line.wait_for(lambda: not command_line.leftovers())


def test_a_cold_operation_starts_without_cached_data(command_line: CommandLine) -> None:
    command_line.write("fill.sql", FILL)
    command_line.write(
        "s.toml",
        'title = "Cold"\ncache = "cold"\n[factors]\nserver = ["17.8", "17.8"]\n[dataset]\nsetup = ["fill.sql"]\n'
        '[workload]\noperation = "SELECT count(*) FROM t"\n[design]\nblocks = 2\n',
    )
    ended = command_line.run("run", "s.toml", "--json", "--results", "results")
    assert ended.code == 0, ended.stderr
    read = trials(command_line, "SELECT value FROM counter WHERE name = 'buffers_read'")
    assert len(read) == 4
    assert min(pages for (pages,) in read) >= 89, "the table's pages at least"
