r"""Scripts as one transaction, and their statements from the --debug output of pgbench 18.6."""

import pytest

from pgversus.errors import WorkloadError
from pgversus.host.commands import Finished
from pgversus.workload.sent_statements import (
    _check_recordable,
    _why,
    in_one_transaction,
    parameters_of,
    sent_statements,
    shown_script,
    told_settings,
    with_questions,
)
from tests.bounded import processor_time

SCRIPT = r"""-- first
\set aid random(1, 100)
BEGIN;
CREATE TABLE IF NOT EXISTS t (a int,
  b text); -- why ; not
INSERT INTO t VALUES (:aid, 'x;y'), (2, $$ a; COMMIT; $$);
\if :aid > 0
SELECT a AS got
  FROM t WHERE a = :aid LIMIT 1 \gset
\endif
\sleep 1 ms
SELECT :got + 1;
END;
SELECT count(*) FROM t
"""
TOLD = r"""pgbench: setting random seed to 1
pgbench: client 0 executing script "s.sql"
pgbench: client 0 executing \set aid
pgbench: client 0 sending BEGIN;
pgbench: client 0 receiving
pgbench: client 0 receiving
pgbench: client 0 sending INSERT INTO t VALUES (82, 'x;y'), (2, $$ a; COMMIT; $$);
pgbench: client 0 receiving
pgbench: client 0 executing \if
pgbench: client 0 sending SELECT a AS got
  FROM t WHERE a = 82
  AND b <> ':no' LIMIT 1 
pgbench: client 0 receiving
pgbench: client 0 sending SELECT count(*) FROM t
pgbench: client 0 receiving
pgbench: client 0 sending ROLLBACK;
pgbench: client 0 receiving
"""  # noqa: W291 - pgbench prints trailing white space


def test_a_script_becomes_one_transaction_that_is_rolled_back() -> None:
    text = in_one_transaction(SCRIPT)
    assert text.startswith("BEGIN;\n-- first\n\\set aid random(1, 100)\n")
    assert text.endswith("SELECT :got + 1;\nSELECT count(*) FROM t\n\n;ROLLBACK;\n")
    assert text.count("BEGIN") == 1
    assert "\nEND;" not in text
    assert "\\sleep" not in text
    for kept in ("b text); -- why ; not", "$$ a; COMMIT; $$", "\\gset\n\\endif", "\\if :aid > 0\n"):
        assert kept in text


@pytest.mark.parametrize(
    ("script", "whole"),
    [
        ("SELECT 1;", "BEGIN;\nSELECT 1;\nROLLBACK;\n"),
        ("SELECT 1", "BEGIN;\nSELECT 1\n;ROLLBACK;\n"),
        ("SELECT 1; -- done", "BEGIN;\nSELECT 1; -- done\nROLLBACK;\n"),
        ("/* a; */ start  transaction read only; SELECT 1; commit;", "BEGIN;\n SELECT 1;\nROLLBACK;\n"),
        ("SAVEPOINT s; ROLLBACK TO SAVEPOINT s;", "BEGIN;\nSAVEPOINT s; ROLLBACK TO SAVEPOINT s;\nROLLBACK;\n"),
        ("ROLLBACK; SELECT CASE WHEN a THEN 1 END;", "BEGIN;\n SELECT CASE WHEN a THEN 1 END;\nROLLBACK;\n"),
        ("\\startpipeline\nSELECT 1;\n\\endpipeline\n", "BEGIN;\n\nSELECT 1;\n\n\nROLLBACK;\n"),
        ('SELECT 1 AS "a;b";', 'BEGIN;\nSELECT 1 AS "a;b";\nROLLBACK;\n'),
        ("\\set a 1 + \\\n  2\nSELECT :a;", "BEGIN;\n\\set a 1 + \\\n  2\nSELECT :a;\nROLLBACK;\n"),
        # pgbench also accepts its commands after a semicolon.
        ("SELECT 1; \\sleep 1 ms\nSELECT 2;", "BEGIN;\nSELECT 1;\nSELECT 2;\nROLLBACK;\n"),
        ("", "BEGIN;\n\nROLLBACK;\n"),
    ],
)
def test_statements_end_as_in_pgbench(script: str, whole: str) -> None:
    assert in_one_transaction(script) == whole


@pytest.mark.parametrize(
    "statement",
    ["prepare transaction 'a'", "-- now\nCOMMIT PREPARED 'a'", "ROLLBACK PREPARED 'a'", "SELECT 1 \\; SELECT 2"],
)
def test_statements_that_cannot_be_recorded_one_by_one_are_refused(statement: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        _check_recordable(f"BEGIN;\nUPDATE t SET a = 1;\n{statement};\n", "2pc.sql")
    assert caught.value.slug == "workload-statements-unknown"
    _check_recordable("\\setshell n find . -exec echo 1 \\;\nPREPARE p AS SELECT '\\;';", "prepared.sql")


@pytest.mark.parametrize("prefix", ["pgbench:", "pgbench: debug:", "pgbench16:"])
def test_sent_statements_have_their_variables_filled_in(prefix: str) -> None:
    assert sent_statements(TOLD.replace("pgbench:", prefix)) == [
        "INSERT INTO t VALUES (82, 'x;y'), (2, $$ a; COMMIT; $$)",
        "SELECT a AS got\n  FROM t WHERE a = 82\n  AND b <> ':no' LIMIT 1",
        "SELECT count(*) FROM t",
    ]
    assert sent_statements("") == []


@pytest.mark.parametrize(
    ("timed_out", "words"),
    [
        (True, "pgbench did not finish within 600 s and was terminated"),
        (False, "pgbench: client 0 sending SELECT 1;"),
    ],
)
def test_a_script_that_does_not_finish_is_reported_as_such(*, timed_out: bool, words: str) -> None:
    debug = "pgbench: client 0 sending SELECT 1;"
    finished = Finished(exit_code=-9, stdout="", stderr=debug, cpu_s=0.0, cpu_user_s=0.0, timed_out=timed_out)
    assert _why(finished) == words


def test_the_heading_of_a_built_in_script_is_removed() -> None:
    assert (
        shown_script("-- select-only: <builtin: select only>\n\\set aid 1\nSELECT 1;\n") == "\\set aid 1\nSELECT 1;\n"
    )


@pytest.mark.parametrize(
    ("template", "text", "parameters"),
    [
        ("SELECT 1", "SELECT 1", ()),
        ("UPDATE t SET a = a + $1\nWHERE b = $2", "UPDATE t SET a = a + -12\nWHERE b = 3.5", ("-12", "3.5")),
        ("SELECT '.*', $1", "SELECT '.*', 'x'", ("'x'",)),
        ("SELECT $1", "INSERT 1", None),
        ("SELECT 'costs $5', $1", "SELECT 'costs $5', 7", None),
    ],
)
def test_parameters_are_the_values_in_their_places(
    template: str, text: str, parameters: tuple[str, ...] | None
) -> None:
    assert parameters_of(template, text) == parameters


@pytest.mark.parametrize(
    ("template", "text", "parameters"),
    [
        ("$1,$2", "a,b,c", ("a", "b,c")),
        ("$1 $2 $3x", "1 2 3 4x", ("1", "2", "3 4")),
        ("a$1a", "a", None),
        ("a$1b$2b", "ab", None),
        ("f($1)$2", "f(1)", ("1", "")),
        (f"SELECT ${'9' * 5000}", "SELECT 1", None),
    ],
)
def test_each_parameter_is_as_short_as_possible(template: str, text: str, parameters: tuple[str, ...] | None) -> None:
    assert parameters_of(template, text) == parameters


def test_parameters_that_do_not_match_are_rejected_quickly() -> None:
    template = "SELECT " + ",".join(f"${number}" for number in range(1, 500))
    with processor_time():
        assert parameters_of(template, "SELECT " + "1," * 20_000) is not None
        assert parameters_of(f"{template} FROM t", "SELECT " + "1," * 20_000) is None


@pytest.mark.parametrize(
    ("shown", "value"),
    [
        ('"4MB"', "4MB"),
        ('""', ""),
        (r'"test ! -f \"/a b/%f\" &&\n  cp %p \"/a b/%f\"\n"', 'test ! -f "/a b/%f" &&\n  cp %p "/a b/%f"\n'),
        (r'"a\\nb\r\t\u0001é"', "a\\nb\r\t\x01é"),
        (r'"1\nWARNING:  pgversus setting work_mem = \"1MB\""', '1\nWARNING:  pgversus setting work_mem = "1MB"'),
    ],
)
@pytest.mark.parametrize("warning", ["WARNING", "WARNUNG"])
def test_a_setting_after_a_script_has_its_whole_value(warning: str, shown: str, value: str) -> None:
    lines = [
        f"{warning}:  pgversus setting archive_command = {shown}",
        "pgbench: client 0 sending DO $pgversus$ BEGIN RAISE WARNING 'pgversus setting % = %', 'work_mem', '1';",
        f'{warning}:  pgversus setting work_mem = "8MB"',
        "pgbench: client 0 receiving",
    ]
    assert told_settings("\n".join(lines)) == {"archive_command": [value], "work_mem": ["8MB"]}


@pytest.mark.parametrize(
    ("script", "asking"),
    [
        ("SELECT 1;", "SELECT 1;\n?\n"),
        ("SET a = ';'; -- why ; not\nSELECT 2", "SET a = ';';\n?\n -- why ; not\nSELECT 2\n;\n?\n"),
        ("\\set a 1\nSELECT :a AS b \\gset\n", "\\set a 1\nSELECT :a AS b \\gset\n?\n\n"),
        ("-- nothing\n", "-- nothing\n"),
    ],
)
def test_every_statement_is_followed_by_the_questions(script: str, asking: str) -> None:
    assert with_questions(script, "?\n") == asking


@pytest.mark.parametrize(
    "piece", ["/*", "$a", "$a$", "'", '"', "--", "\\x\n", "SELECT\n\\x\n", ";", "-- \n;", "a\n  \\x\\"]
)
def test_a_long_script_is_split_quickly(piece: str) -> None:
    with processor_time():
        assert in_one_transaction(piece * (100_000 // len(piece))).startswith("BEGIN;\n")
