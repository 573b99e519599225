import csv
import io
import json
from collections.abc import Mapping

import pytest

from pgversus.errors import StudyError
from pgversus.statements.collection import Collection
from pgversus.statements.sources import SourceReport, read_source, read_sql
from pgversus.statements.statement import RecordedStatement


def read(text: str) -> tuple[list[RecordedStatement], SourceReport]:
    collection = Collection()
    report = read_source("source", iter(text.splitlines(keepends=True)), collection)
    return collection.statements, report


def csv_text(rows: list[list[str]]) -> str:
    page = io.StringIO()
    csv.writer(page).writerows(rows)
    return page.getvalue()


def csvlog_row(message: str, detail: str = "", session: str = "6925.1a", severity: str = "LOG") -> list[str]:
    head = ["2026-11-27 23:00:00.000 UTC", "app", "shop", "4711", "[local]", session, "1", "SELECT"]
    return [*head, "2026-11-27 22:00:00 UTC", "3/4", "0", severity, "00000", message, detail, *[""] * 11]


def jsonlog_line(message: str, detail: str = "") -> str:
    row = {"timestamp": "2026-11-27 23:00:00.000 UTC", "pid": 4711, "session_id": "6925.1a", "error_severity": "LOG"}
    return json.dumps({**row, "message": message, **({"detail": detail} if detail else {})}) + "\n"


def stderr_text(message: str, detail: str = "", prefix: str = "2026-11-27 23:00:00.000 UTC [4711] ") -> str:
    lines = f"{prefix}LOG:  {message}".replace("\n", "\n\t") + "\n"
    return lines + (f"{prefix}DETAIL:  {detail}".replace("\n", "\n\t") + "\n" if detail else "")


MESSAGES = (
    ("duration: 0.500 ms  parse <unnamed>: SELECT *\nFROM t WHERE a = $1", ""),
    ("duration: 0.300 ms  bind <unnamed>: SELECT *\nFROM t WHERE a = $1", "Parameters: $1 = 'it''s\nLOG:  two'"),
    ("duration: 2.000 ms  execute <unnamed>: SELECT *\nFROM t WHERE a = $1", "Parameters: $1 = 'it''s\nLOG:  two'"),
    ("duration: 1.000 ms  execute S_1/C_2: SELECT *\nFROM t WHERE a = $1", "parameters: $1 = '3'"),
    ("duration: 9.000 ms  execute fetch from S_1/C_2: SELECT *\nFROM t WHERE a = $1", "parameters: $1 = '3'"),
    ("duration: 4.000 ms  statement: UPDATE t SET b = 'x; y' WHERE a = 7;", ""),
    ("checkpoint starting: time", ""),
    ('duration: 7.000 ms  fastpath function call: "lo_open" (OID 952)', ""),
)


@pytest.mark.parametrize("form", ["csvlog", "jsonlog", "log in text form"])
def test_every_form_of_a_log_has_the_same_statements(form: str) -> None:
    text = {
        "csvlog": csv_text([csvlog_row(*message) for message in MESSAGES]),
        "jsonlog": "".join(jsonlog_line(*message) for message in MESSAGES),
        "log in text form": "".join(stderr_text(*message) for message in MESSAGES),
    }[form]
    (update, select), report = read(text)
    assert (report.form, report.found, dict(report.skipped)) == (form, 3, {})
    # S_1, but not <unnamed>.
    assert report.prepared == 1
    assert (select.calls, select.text) == (2, "SELECT *\nFROM t WHERE a = $1")
    assert select.seconds == pytest.approx(0.003)
    assert [sample.values for sample in select.samples] == [("3",), ("it's\nLOG:  two",)]
    assert (update.calls, update.samples[0].text) == (1, "UPDATE t SET b = 'x; y' WHERE a = 7;")
    assert update.seconds == pytest.approx(0.004)


@pytest.mark.parametrize("prefix", ["", "app@shop ", "2026-11-27 23:00:00 UTC:10.0.0.7(4711):app@shop:[4711]:"])
def test_a_log_with_any_line_prefix_is_read(prefix: str) -> None:
    (statement,), _ = read(stderr_text("duration: 1.5 ms  execute q: SELECT $1", "Parameters: $1 = '5'", prefix))
    assert statement.seconds == pytest.approx(0.0015)
    assert statement.samples[0].values == ("5",)


def test_a_duration_belongs_to_the_statement_logged_before_it_in_its_session() -> None:
    rows = [
        csvlog_row("statement: SELECT 1", session="a"),
        csvlog_row("execute <unnamed>: SELECT $1 FROM t", "Parameters: $1 = '8'", session="b"),
        csvlog_row("duration: 1.000 ms", session="a"),
        csvlog_row("duration: 5.000 ms", session="b"),
        csvlog_row("duration: 3.000 ms", session="b"),
    ]
    (second, first), _ = read(csv_text(rows))
    assert [first.seconds, second.seconds] == pytest.approx([0.001, 0.005])
    assert second.samples[0].values == ("8",)


@pytest.mark.parametrize("prefix", ["{stamp} [7] ", "{stamp} {session} ", "{stamp}:10.0.0.5(4711):app@shop:[7]:"])
def test_sessions_in_text_form_are_processes_not_times_or_addresses(prefix: str) -> None:
    def line(stamp: str, session: str, message: str) -> str:
        process = prefix.replace("[7]", f"[{int(session, 16)}]")
        return stderr_text(message, prefix=process.format(stamp=stamp, session=f"6925a1b2.{session}"))

    text = (
        line("2026-11-27 23:00:00.123 UTC", "1a", "statement: SELECT a FROM t")
        + line("2026-11-27 23:00:00.456 UTC", "1b", "statement: SELECT b FROM t")
        + line("2026-11-27 23:00:00.456 UTC", "1a", "duration: 1.000 ms")
        + line("2026-11-27 23:00:00.789 UTC", "1b", "duration: 2.000 ms")
    )
    statements, _ = read(text)
    assert {one.text: one.seconds for one in statements} == {"SELECT a FROM t": 0.001, "SELECT b FROM t": 0.002}


def test_verbose_messages_in_text_form_are_read() -> None:
    text = stderr_text("00000: duration: 1.000 ms  statement: SELECT 1")
    (statement,), report = read(
        text + "2026-11-27 23:00:00.000 UTC [4711] LOCATION:  exec_simple_query, postgres.c:1\n"
    )
    assert (statement.seconds, report.skipped) == (0.001, {})


PLAN = {"Query Text": "SELECT $1", "Query Parameters": "$1 = '5'", "Plan": {"Node Type": "Result"}}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(PLAN, indent=2),
        "Query Text: SELECT $1\nQuery Parameters: $1 = '5'\nResult  (cost=0.00..0.01 rows=1 width=32)",
    ],
)
def test_auto_explain_reports_executions_with_their_values(body: str) -> None:
    explained = stderr_text(f"duration: 2.000 ms  plan:\n{body}")
    also_logged = stderr_text("duration: 2.100 ms  execute <unnamed>: \n  SELECT $1\n", "Parameters: $1 = '5'")
    other = stderr_text("duration: 40.000 ms  statement: SELECT a FROM t")
    nested = explained + "2026-11-27 23:00:00.000 UTC [4711] CONTEXT:  PL/pgSQL function f() line 3 at RETURN\n"
    bound = explained + "2026-11-27 23:00:00.000 UTC [4711] CONTEXT:  unnamed portal with parameters: $1 = '5'\n"
    for text, calls in (
        (explained, 1),
        (explained + also_logged, 1),
        (explained * 2 + also_logged, 2),
        # Executed in steps, the statement ends before its plan is logged.
        (also_logged + explained, 1),
        (also_logged + explained + also_logged + explained, 2),
        (nested + explained, 1),
        (bound, 1),
    ):
        (*_, statement), _report = read(text + other)
        assert (statement.calls, statement.samples[0].values) == (calls, ("5",))


def test_a_log_that_begins_and_ends_in_the_middle_of_messages_is_read() -> None:
    whole = csv_text([csvlog_row("duration: 1.000 ms  statement: SELECT\n1")])
    statements, report = read('ends here",,,,,\n' + whole + whole + whole[:150])
    assert [one.calls for one in statements] == [2]
    assert sum(report.skipped.values()) == 2


def test_a_long_statement_at_the_beginning_of_a_log_is_read() -> None:
    # The default limit, which reading changes for the whole process.
    csv.field_size_limit(131_072)
    found, report = read(csv_text([csvlog_row(f"duration: 1.000 ms  statement: SELECT '{'x' * 200_000}'")]))
    assert (len(found), report.form) == (1, "csvlog")


COUNTERS = {"query": "SELECT * FROM t WHERE a = $1", "calls": 1000, "total_exec_time": 2500.0, "rows": 900}


@pytest.mark.parametrize(
    "row",
    [
        COUNTERS,
        {"query": COUNTERS["query"], "calls": 1000, "total_time": 2500.0, "rows": 900},
        {"rows": 900, "calls": 1000, "mean_exec_time": 2.5, "query": COUNTERS["query"], "queryid": -123},
    ],
)
@pytest.mark.parametrize("form", ["csv", "array", "lines"])
def test_exports_of_all_versions_are_read(row: Mapping[str, object], form: str) -> None:
    text = {
        "csv": csv_text([list(row), [str(value) for value in row.values()]]),
        "array": "\ufeff" + json.dumps([row], indent=1),
        "lines": json.dumps(row) + "\n\n",
    }[form]
    (statement,), report = read(text)
    assert (statement.calls, statement.rows) == (1000, 900)
    assert statement.seconds == pytest.approx(2.5)
    assert report.found == 1
    assert statement.obstacle


def test_other_line_separators_do_not_end_a_row() -> None:
    row = '{"query": "SELECT 1 -- a\u2028b", "calls": 1, "total_exec_time": 1}\n'
    report = read_source("source", iter([row]), Collection())
    assert report.found == 1


def test_only_statements_of_the_database_with_the_most_time_count() -> None:
    rows = [
        {**COUNTERS, "query": query, "dbid": dbid, "total_exec_time": ms}
        for query, dbid, ms in (("SELECT a", 16384, 90.0), ("SELECT b", 5, 100.0), ("SELECT c", 16384, 20.0))
    ]
    found, report = read(json.dumps(rows))
    assert sorted(one.text for one in found) == ["SELECT a", "SELECT c"]
    assert report.skipped == {"executed in another database of the server": 1}


@pytest.mark.parametrize("form", ["csvlog", "jsonlog"])
def test_only_executions_in_the_database_with_the_most_time_count(form: str) -> None:
    lines = []
    for statement, database, ms in (("SELECT a", "shop", 90), ("SELECT b", "crm", 100), ("SELECT c", "shop", 20)):
        message = f"duration: {ms}.0 ms  statement: {statement}"
        if form == "jsonlog":
            row = {"error_severity": "LOG", "message": message, "dbname": database, "session_id": "1"}
            lines.append(json.dumps(row))
        else:
            columns = [""] * 26
            columns[2], columns[5], columns[11], columns[13] = database, "1.1", "LOG", message
            lines.append(",".join(f'"{text}"' for text in columns))
    found, report = read("\n".join(lines) + "\n")
    assert sorted(one.text for one in found) == ["SELECT a", "SELECT c"]
    assert (report.found, report.skipped) == (2, {"executed in another database of the server": 1})


def test_nested_and_hidden_statements_do_not_count() -> None:
    rows = [{**COUNTERS, "toplevel": flag} for flag in ("t", "f", True, False)]
    rows += [{**COUNTERS, "query": "<insufficient privilege>"}, {**COUNTERS, "query": None}]
    (statement,), report = read("".join(json.dumps(row) + "\n" for row in rows))
    assert statement.calls == 2000
    assert sorted(report.skipped.values()) == [1, 1, 2]
    assert report.skipped["no text"] == 1


@pytest.mark.parametrize(
    ("text", "slug", "found"),
    [
        ("", "statements-unknown-form", "empty"),
        ("\n \n", "statements-unknown-form", "empty"),
        ("id,name\n1,x\n", "statements-unknown-form", "id,name"),
        ("query,calls,total_exec_time\nSELECT 1,many,1\n", "statements-bad-row", "'many'"),
        ("query,calls,total_exec_time\nSELECT 1,-1,1\n", "statements-bad-row", "'-1'"),
        ("query,calls,total_exec_time\nSELECT 1,nan,1\n", "statements-bad-row", "'nan'"),
        ("query,calls,total_exec_time\nSELECT 1,1\n", "statements-bad-row", "no time"),
        ("query,calls\nSELECT 1,1\n", "statements-bad-row", "no time"),
        ('[{"query": "SELECT 1", "calls": 1', "statements-bad-row", "delimiter"),
        (f'{{"query": "SELECT 1", "calls": 1{400 * "0"}}}', "statements-bad-row", "calls is 1000"),
        ("[1]", "statements-bad-row", "a int"),
        ('{"rows": []}', "statements-bad-row", "no column query"),
    ],
)
def test_a_file_in_an_unknown_form_is_an_error(text: str, slug: str, found: str) -> None:
    with pytest.raises(StudyError) as caught:
        read(text)
    assert caught.value.slug == slug
    assert found in caught.value.found


def test_files_of_sql_have_names_and_values() -> None:
    collection = Collection()
    text = (
        "-- name: by id\n-- values: $1 = '5'\n-- values: $1 = NULL\nSELECT * FROM t WHERE a = $1;\n\n"
        "-- name: all\nSELECT *\nFROM t -- name: not one\n;\n"
    )
    report = read_sql("queries.sql", text, "queries", collection)
    by_name = {one.name: one for one in collection.statements}
    assert report.found == len(by_name) == 2
    assert [sample.values for sample in by_name["by id"].samples] == [("5",), (None,)]
    assert by_name["all"].obstacle == ""
    read_sql("other.sql", "SELECT 1;\n", "other", collection)
    assert "other" in {one.name for one in collection.statements}


def test_a_comment_after_a_statement_is_not_a_part_of_it() -> None:
    collection = Collection()
    text = "-- name: a\nSELECT a -- one\nFROM t; \n\n-- About b.\n-- More.\n-- name: b\nSELECT b FROM t;"
    read_sql("queries.sql", text, "queries", collection)
    texts = {one.name: one.text for one in collection.statements}
    assert texts == {"a": "SELECT a -- one\nFROM t", "b": "SELECT b FROM t"}


def test_a_file_without_names_has_one_statement_at_each_semicolon() -> None:
    collection = Collection()
    text = (
        "-- The é of café.\nSELECT 'é;' FROM t; -- the first\n\n-- values: $1 = '5'\nSELECT a FROM t WHERE a = $1;;\n"
        "SELECT b FROM t -- no end\n"
    )
    report = read_sql("queries.sql", text, "queries", collection)
    by_name = {one.name: one for one in collection.statements}
    assert report.found == 3
    assert set(by_name) == {"queries 1", "queries 2", "queries 3"}
    assert "SELECT 'é;' FROM t" in by_name["queries 1"].text
    assert [sample.values for sample in by_name["queries 2"].samples] == [("5",)]
    assert all(one.obstacle == "" for one in by_name.values())


def test_statements_before_the_first_name_are_named_after_the_file() -> None:
    collection = Collection()
    text = (
        "-- About this file.\nSELECT 1;\n-- name: pair\nSELECT a FROM t; SELECT b FROM t;\n"
        "-- name: bad\nSELEC 1; SELECT c FROM t;"
    )
    read_sql("queries.sql", text, "queries", collection)
    assert {one.name for one in collection.statements} == {"queries", "pair 1", "pair 2", "bad 1", "bad 2"}


def test_a_file_of_comments_has_no_statements() -> None:
    collection = Collection()
    assert read_sql("queries.sql", "-- Nothing.\n", "queries", collection).found == 0
    assert not collection.statements


def test_values_in_an_unknown_form_are_an_error() -> None:
    with pytest.raises(StudyError) as caught:
        read_sql("queries.sql", "-- values: 5\nSELECT $1", "queries", Collection())
    assert caught.value.slug == "statements-bad-values"


def test_too_few_values_are_an_error() -> None:
    with pytest.raises(StudyError) as caught:
        read_sql("q.sql", "-- values: $1 = '5'\nSELECT FROM t WHERE a = $1 AND b = $2;", "q", Collection())
    assert caught.value.slug == "statements-bad-values"


def test_line_ends_of_windows_are_not_a_part_of_names_and_values() -> None:
    collection = Collection()
    read_sql("q.sql", "-- name: lookup\r\n-- values: $1 = '5'\r\nSELECT $1;\r\n", "q", collection)
    (found,) = collection.statements
    assert (found.name, found.text, found.samples[0].values) == ("lookup", "SELECT $1", ("5",))


def test_rows_that_do_not_count_do_not_decide_the_database() -> None:
    header = ["query", "calls", "total_exec_time", "rows", "dbid"]
    rows = [
        ["<insufficient privilege>", "1", "99", "1", "7"],
        ["SELECT a", "1", "5", "1", "8"],
        ["SELECT b", "0", "0", "0", "8"],
    ]
    statements, report = read(csv_text([header, *rows]))
    assert [one.text for one in statements] == ["SELECT a"]
    assert set(report.skipped) == {"no permission to read the text", "planned, but never executed"}


def test_a_log_without_durations_in_english_says_so() -> None:
    statements, report = read(stderr_text("Dauer: 1.000 ms  Anweisung: SELECT 1"))
    assert statements == []
    assert any("lc_messages" in reason for reason in report.skipped)


def test_the_database_of_a_log_is_the_one_of_the_counters() -> None:
    collection = Collection()
    collection.add_counters("SELECT FROM orders WHERE id = $1", calls=9, seconds=9.0, rows=9)
    logged = [("shop", "SELECT FROM orders WHERE id = 5", 1.0), ("reports", "SELECT FROM facts", 9000.0)]
    rows = [csvlog_row(f"duration: {ms} ms  statement: {text}") for _, text, ms in logged]
    for row, (database, _, _) in zip(rows, logged, strict=True):
        row[2] = database
    read_source("log", iter(csv_text(rows).splitlines(keepends=True)), collection)
    assert [one.text for one in collection.statements] == ["SELECT FROM orders WHERE id = $1"]


def test_a_statement_whose_rest_is_missing_is_not_used() -> None:
    cut = stderr_text("duration: 1.000 ms  statement: TABLE accounts") + "WHERE id = 5\n"
    statements, report = read(cut + stderr_text("duration: 2.000 ms  statement: SELECT 1"))
    assert [one.text for one in statements] == ["SELECT 1"]
    # The line, and the message before it.
    assert report.skipped.total() == 2


def syslog(process: int, place: str, text: str) -> str:
    return f"Nov 27 23:00:00 host postgres[{process}]: [{place}] {text}\n"


def test_lines_of_syslog_are_joined_by_process_and_number() -> None:
    first = "2026-11-27 23:00:00 UTC [{}] LOG:  duration: {} ms  execute <unnamed>: TABLE {}"
    text = (
        syslog(11, "5-1", first.format(11, "1.000", "a"))
        + syslog(12, "8-1", first.format(12, "2.000", "b"))
        + syslog(11, "5-2", "#011WHERE id")
        + syslog(12, "8-2", "2026-11-27 23:00:00 UTC [12] DETAIL:  Parameters: $1 = 'x'")
        + syslog(11, "5-3", " = 'LOG:  duration: 99999 ms  statement: TABLE c'")
    )
    statements, report = read(text)
    assert {one.text for one in statements} == {
        "TABLE a\nWHERE id = 'LOG:  duration: 99999 ms  statement: TABLE c'",
        "TABLE b",
    }
    assert report.skipped.total() == 0


def test_a_statement_of_which_syslog_has_lost_a_line_is_not_used() -> None:
    first = "2026-11-27 23:00:00 UTC [11] LOG:  duration: 1.000 ms  statement: TABLE a"
    statements, report = read(syslog(11, "5-1", first) + syslog(11, "5-3", "#011WHERE id = 5"))
    assert statements == []
    assert report.skipped["not a server message"] == 1


@pytest.mark.parametrize("severity", ["ERROR", "FATAL"])
def test_the_next_duration_is_not_that_of_a_statement_that_failed(severity: str) -> None:
    rows = [
        csvlog_row("statement: SELECT 1 / 0"),
        csvlog_row("division by zero", severity=severity),
        csvlog_row("duration: 0.100 ms"),
    ]
    statements, _ = read(csv_text(rows))
    assert statements == []
