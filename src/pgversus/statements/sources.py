"""Reads statements from a source of any known form: pg_stat_statements, a log, SQL, or an earlier list."""

import csv
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from pgversus.errors import StudyError
from pgversus.statements.client_scripts import is_of_pgbench, typical_values, with_parameters, with_typical_values
from pgversus.statements.collection import Collection
from pgversus.statements.counters import (
    Counted,
    counters_from_csv,
    counters_from_json,
    counters_from_rows,
    is_counters_header,
)
from pgversus.statements.document import DOCUMENT_HEAD, SCHEMA, statements_of_document
from pgversus.statements.literals import logged_values, parameters_in
from pgversus.statements.logs import (
    CSV_COLUMNS,
    SEVERITIES,
    STDERR_LINE,
    LogEntry,
    csv_entries,
    executions,
    json_entries,
    stderr_entries,
)
from pgversus.statements.parsing import parsed, separated

_NAME = re.compile(r"^-- name: *(.+?)[ \r]*$", re.MULTILINE)
_VALUES = re.compile(r"^-- values: *(.*?)[ \r]*$", re.MULTILINE)
_END = re.compile(r";\s*(?:--[^\n]*(?:\n\s*|\Z))*\Z")
"""The end of a statement, and comments after it, which belong to the next one."""
_ELSEWHERE = "executed in another database of the server"
_WITHOUT_DURATIONS = "no duration of an execution in English (see log_min_duration_statement, lc_messages)"
_FIRST_LINES = 50
"""Number of lines at the beginning of a log in text form that must contain a message."""


@dataclass(slots=True)
class SourceReport:
    """Statements and problems found in one source."""

    where: str
    form: str = ""
    """Its form, in words."""
    found: int = 0
    """Rows or executions."""
    prepared: int = 0
    """Executions of statements that the application had prepared by name."""
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of skipped rows or lines, by reason."""


def read_source(where: str, lines: Iterator[str], collection: Collection) -> SourceReport:
    """Add the statements of a file to the collection. lines: with their line ends.

    where: its path, for messages. StudyError if its form is unknown or a row of an export is invalid.
    """
    # Also for the search for its form: statements may be longer than the default limit of 128 KiB.
    csv.field_size_limit(sys.maxsize)
    head = _head(lines)
    report = SourceReport(where=where)
    if not "".join(head).strip():
        raise _unknown_form(where, "an empty file")
    all_lines = chain(head, lines)
    if (entries := _entries(head, all_lines, report)) is not None:
        _add_executions(entries, collection, report)
    elif DOCUMENT_HEAD.match("".join(head)):
        report.form = SCHEMA
        for one in statements_of_document("".join(all_lines), where):
            collection.add_listed(one)
            report.found += 1
    else:
        _add_counters(_counters(where, head, all_lines, report), collection, report)
    return report


def read_rows(where: str, rows: Iterable[Mapping[str, Any]], collection: Collection) -> SourceReport:
    """Add the rows of pg_stat_statements on a server to the collection. where: the server. StudyError for a bad row."""
    report = SourceReport(where=where, form="pg_stat_statements")
    _add_counters(counters_from_rows(rows, where), collection, report)
    return report


def read_sql(where: str, text: str, name: str, collection: Collection) -> SourceReport:
    """Add the statements of a file of SQL, which may be a script of pgbench or psql, to the collection.

    A line `-- name: NAME` names the statements up to the next such line, which are numbered if there are several. Lines
    `-- values: $1 = '5', $2 = NULL` before a statement give values for its parameters; each line is one set. StudyError
    for values that cannot be read. name: the name of statements before the first such line.
    """
    report, of_variables = SourceReport(where=where, form="SQL"), typical_values(text)
    for title, statement in _named_statements(text, name):
        query = _END.sub("", _VALUES.sub("", statement).strip()).rstrip("; \r\n")
        needed, values = parameters_in(with_parameters(query)), []
        for line in _VALUES.findall(statement):
            if (found := logged_values(line)) is None or len(found) < needed:
                raise _bad_values(f"{where}, {title}", line)
            values.append(found)
        if query:
            executed = with_typical_values(query, of_variables, in_strings=is_of_pgbench(text))
            _add_statement(collection, title, query, values, executed)
            report.found += 1
    return report


def _add_statement(
    collection: Collection,
    title: str,
    query: str,
    values: Iterable[tuple[str | None, ...]],
    executed: str,
) -> None:
    """Add a statement, which may have variables of pgbench or psql. executed: with their values, as far as known."""
    text = with_parameters(query)
    if not parsed(query).problem:
        # Only its strings may have variables.
        collection.add_file(title, executed, values)
    elif parsed(text).problem:
        collection.add_file(title, query, values)
    else:
        # It cannot be parsed if the value of a variable is unknown.
        collection.add_file(title, text, values, executed="" if parsed(executed).problem else executed)


def _named_statements(text: str, name: str) -> Iterator[tuple[str, str]]:
    first, *parts = _NAME.split(text)
    for title, part in zip([name, *parts[::2]], [first, *parts[1::2]], strict=True):
        statements = separated(part)
        for number, statement in enumerate(statements, 1):
            yield f"{title} {number}" if len(statements) > 1 else title, statement


def _head(lines: Iterator[str]) -> list[str]:
    """Return the first lines, including at least one non-empty line if there is one."""
    head = []
    for line in lines:
        head.append(line)
        if len(head) >= _FIRST_LINES and any(one.strip() for one in head):
            break
    if head:
        head[0] = head[0].removeprefix("\ufeff")
    return head


def _entries(head: list[str], lines: Iterable[str], report: SourceReport) -> Iterator[LogEntry | None] | None:
    """Return the messages of a log; None for another form."""
    first = next(line for line in head if line.strip())
    if _is_json_message(first):
        report.form = "jsonlog"
        return json_entries(lines)
    if _is_csv_message(head):
        report.form = "csvlog"
        return csv_entries(lines)
    if any((found := STDERR_LINE.match(line.rstrip())) and found["severity"] in SEVERITIES for line in head):
        report.form = "log in text form"
        return stderr_entries(lines)
    return None


def _is_json_message(line: str) -> bool:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and "message" in found and "error_severity" in found


def _is_csv_message(head: list[str]) -> bool:
    # A log may begin inside of a message.
    return any(len(row) in CSV_COLUMNS and SEVERITIES & set(row) for row in csv.reader(head))


def _add_executions(entries: Iterable[LogEntry | None], collection: Collection, report: SourceReport) -> None:
    number = 0

    def messages() -> Iterator[LogEntry]:
        nonlocal number
        for entry in entries:
            if entry is None:
                report.skipped["not a server message"] += 1
            else:
                number += 1
                yield entry

    by_database: dict[str, Collection] = defaultdict(Collection)
    seconds, found, prepared = dict[str, float](), Counter[str](), Counter[str]()
    for execution in executions(messages()):
        name = execution.database
        by_database[name].add_execution(
            execution.sample, has_values=execution.has_values, is_prepared=execution.is_prepared
        )
        seconds[name] = seconds.get(name, 0.0) + (execution.sample.seconds or 0.0)
        found[name] += 1
        prepared[name] += execution.is_prepared
    if by_database:
        # As for counters: the application's database takes most of the time. Further logs are of the same application.
        if collection.database not in by_database:
            # Counters know their database only by a number.
            collection.database = max(
                seconds, key=lambda one: (len(collection.fingerprints & by_database[one].fingerprints), seconds[one])
            )
        by_database[collection.database].hand_over(collection)
        report.found += found[collection.database]
        report.prepared += prepared[collection.database]
        if others := found.total() - found[collection.database]:
            report.skipped[_ELSEWHERE] += others
    elif number:
        report.skipped[_WITHOUT_DURATIONS] = number


def _counters(where: str, head: list[str], lines: Iterable[str], report: SourceReport) -> Iterator[Counted]:
    first = next(line for line in head if line.strip())
    if first.lstrip().startswith(("[", "{")):
        report.form = "pg_stat_statements in JSON"
        return counters_from_json("".join(lines), where)
    if is_counters_header(next(csv.reader([first]), [])):
        report.form = "pg_stat_statements in CSV"
        return counters_from_csv(lines, where)
    raise _unknown_form(where, f'"{first.strip()[:60]}"')


def _add_counters(rows: Iterable[Counted], collection: Collection, report: SourceReport) -> None:
    """Add the statements of one database. The view has those of all, and the application's takes most of the time."""
    all_rows = list(rows)
    seconds: dict[str, float] = defaultdict(float)
    for row in all_rows:
        if not row.skipped:
            seconds[row.database] += row.seconds
    largest = max(seconds, key=seconds.__getitem__, default="")
    for row in all_rows:
        if reason := row.skipped or (_ELSEWHERE if row.database != largest else ""):
            report.skipped[reason] += 1
        else:
            collection.add_counters(row.text, calls=row.calls, seconds=row.seconds, rows=row.rows)
            report.found += 1


def _unknown_form(where: str, found: str) -> StudyError:
    return StudyError(
        "this file is not in a supported format",
        slug="statements-unknown-form",
        where=where,
        found=found,
        expected="an export of pg_stat_statements (CSV with a header, or JSON), a log with durations (csvlog, jsonlog "
        "or text), the output of pgversus statements --json, a .sql file, or a directory of .sql files",
        to_do=r"psql -c '\copy (SELECT * FROM pg_stat_statements) TO statements.csv CSV HEADER'",
    )


def _bad_values(where: str, found: str) -> StudyError:
    return StudyError(
        "the parameter values of a statement are missing or cannot be read",
        slug="statements-bad-values",
        where=where,
        found=found,
        expected="values for all parameters in order, as PostgreSQL logs them",
        to_do="-- values: $1 = '5', $2 = NULL",
    )
