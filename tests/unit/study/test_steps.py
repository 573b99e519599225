import pytest

from pgversus.errors import StudyError
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names
from pgversus.study.workload import Step
from tests.bounded import processor_time


def test_a_statement_is_called_by_its_text_on_one_short_line() -> None:
    assert statement_step("VACUUM\n  pgbench_accounts ;\n", "x") == Step(
        name="VACUUM pgbench_accounts", sql="VACUUM\n  pgbench_accounts ;\n"
    )
    long = statement_step(f"SELECT {'a' * 80}", "x").name
    assert len(long) == 60
    assert long.endswith("aaa...")
    assert statement_step("SELECT 1", "x", "one").name == "one"


def test_a_program_is_split_as_a_shell_splits_it_and_called_by_its_name() -> None:
    step = program_step("/usr/bin/pg_dump -f '/tmp/a b' --table=\"x\"", "x")
    assert step == Step(name="pg_dump", program=("/usr/bin/pg_dump", "-f", "/tmp/a b", "--table=x"))
    assert program_step("./run", "x", "dump").name == "dump"


def test_steps_of_one_name_are_numbered() -> None:
    steps = with_own_names([statement_step("CHECKPOINT", "x"), program_step("sync", "x"), program_step("sync", "x")])
    assert [step.name for step in steps] == ["CHECKPOINT", "sync", "sync (2)"]
    assert operation_name(steps) == "CHECKPOINT, sync, sync (2)"


@pytest.mark.parametrize(
    "sql",
    ["", " \n", " ; ;", "\\copy t FROM 'x'", "-- nothing", "/* no\nthing */ ;", "SELECT '\udcff'", "SELECT 1;\0"],
)
def test_what_is_no_sql_is_no_statement(sql: str) -> None:
    for read in (statement_step, verifying_sql):
        with pytest.raises(StudyError) as caught:
            read(sql, "--operation")
        assert caught.value.slug == "study-bad-statement"
        assert all((caught.value.where, caught.value.found, caught.value.expected, caught.value.to_do))


def test_a_comment_beside_a_statement_is_no_fault() -> None:
    assert statement_step("/* why */ VACUUM t -- so", "x").sql == "/* why */ VACUUM t -- so"
    assert statement_step("SELECT '--'", "x").sql == "SELECT '--'"


@pytest.mark.parametrize("sql", ["COPY t TO STDOUT", "copy (SELECT 1)\n to  stdout WITH csv;", "COPY t FROM STDIN"])
def test_rows_that_go_through_the_client_are_no_statement_of_the_server(sql: str) -> None:
    with pytest.raises(StudyError) as caught:
        statement_step(sql, "--operation")
    assert "\\copy" in caught.value.to_do
    assert statement_step("COPY t TO '/tmp/stdout.csv'", "x").sql


@pytest.mark.parametrize("command", ["", " ", "''", "pg_dump 'x", "a\\"])
def test_what_no_shell_would_run_is_no_command(command: str) -> None:
    with pytest.raises(StudyError) as caught:
        program_step(command, "--command")
    assert caught.value.slug == "study-bad-command"
    assert all((caught.value.where, caught.value.found, caught.value.expected, caught.value.to_do))


def test_a_command_that_no_program_can_be_given_is_refused_at_once() -> None:
    assert program_step("a" * 100_000, "x").program
    with processor_time(), pytest.raises(StudyError) as caught:
        program_step("a" * 10_000_000, "x")
    assert caught.value.slug == "study-bad-command"
    assert "10000000 characters" in caught.value.found
    assert len(caught.value.found) < 200
