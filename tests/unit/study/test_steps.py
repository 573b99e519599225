import pytest

from pgversus.errors import StudyError
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names
from pgversus.study.workload import Step
from tests.bounded import processor_time


def test_a_statement_is_named_after_its_shortened_text() -> None:
    assert statement_step("VACUUM\n  pgbench_accounts ;\n", "x") == Step(
        name="VACUUM pgbench_accounts", sql="VACUUM\n  pgbench_accounts ;\n"
    )
    long = statement_step(f"SELECT {'a' * 80}", "x").name
    assert len(long) == 60
    assert long.endswith("aaa...")
    assert statement_step("SELECT 1", "x", "one").name == "one"


def test_a_program_is_split_like_in_a_shell_and_named_after_the_program() -> None:
    step = program_step("/usr/bin/pg_dump -f '/tmp/a b' --table=\"x\"", "x")
    assert step == Step(name="pg_dump", program=("/usr/bin/pg_dump", "-f", "/tmp/a b", "--table=x"))
    assert program_step("./run", "x", "dump").name == "dump"


def test_repeated_step_names_are_numbered() -> None:
    steps = with_own_names([statement_step("CHECKPOINT", "x"), program_step("sync", "x"), program_step("sync", "x")])
    assert [step.name for step in steps] == ["CHECKPOINT", "sync", "sync (2)"]
    assert operation_name(steps) == "CHECKPOINT, sync, sync (2)"


@pytest.mark.parametrize(
    "sql",
    ["", " \n", " ; ;", "\\copy t FROM 'x'", "-- nothing", "/* no\nthing */ ;", "SELECT '\udcff'", "SELECT 1;\0"],
)
def test_text_without_sql_is_rejected(sql: str) -> None:
    for read in (statement_step, verifying_sql):
        with pytest.raises(StudyError) as caught:
            read(sql, "--operation")
        assert caught.value.slug == "study-bad-statement"
        assert all((caught.value.where, caught.value.found, caught.value.expected, caught.value.to_do))


def test_comments_next_to_a_statement_are_accepted() -> None:
    assert statement_step("/* why */ VACUUM t -- so", "x").sql == "/* why */ VACUUM t -- so"
    assert statement_step("SELECT '--'", "x").sql == "SELECT '--'"


@pytest.mark.parametrize("sql", ["COPY t TO STDOUT", "copy (SELECT 1)\n to  stdout WITH csv;", "COPY t FROM STDIN"])
def test_copy_through_the_client_is_rejected(sql: str) -> None:
    with pytest.raises(StudyError) as caught:
        statement_step(sql, "--operation")
    assert "\\copy" in caught.value.to_do
    assert statement_step("COPY t TO '/tmp/stdout.csv'", "x").sql


@pytest.mark.parametrize("command", ["", " ", "''", "pg_dump 'x", "a\\"])
def test_an_invalid_command_is_rejected(command: str) -> None:
    with pytest.raises(StudyError) as caught:
        program_step(command, "--command")
    assert caught.value.slug == "study-bad-command"
    assert all((caught.value.where, caught.value.found, caught.value.expected, caught.value.to_do))


def test_an_overlong_command_is_rejected_quickly() -> None:
    assert program_step("a" * 100_000, "x").program
    with processor_time(), pytest.raises(StudyError) as caught:
        program_step("a" * 10_000_000, "x")
    assert caught.value.slug == "study-bad-command"
    assert "10000000 characters" in caught.value.found
    assert len(caught.value.found) < 200
