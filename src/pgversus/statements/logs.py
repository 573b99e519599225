"""Statements with their durations in PostgreSQL's logs: csvlog, jsonlog and stderr, with or without auto_explain.

Settings that write them: log_min_duration_statement, log_duration with log_statement, auto_explain.log_min_duration.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pgversus.statements.literals import logged_values, parameters_in
from pgversus.statements.statement import Sample

CSV_COLUMNS = range(22, 30)
"""Number of columns of csvlog: 22 in version 9.0, 26 since 14."""
_CSV_DATABASE, _CSV_SESSION, _CSV_SEVERITY, _CSV_MESSAGE, _CSV_DETAIL, _CSV_CONTEXT = 2, 5, 11, 13, 14, 18
SEVERITIES = frozenset(
    {"DEBUG5", "DEBUG4", "DEBUG3", "DEBUG2", "DEBUG1", "INFO", "NOTICE", "WARNING", "ERROR", "LOG", "FATAL", "PANIC"}
)
STDERR_LINE = re.compile(
    r"^(?P<prefix>.*?)\b(?P<severity>DEBUG[1-5]|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC"
    r"|DETAIL|HINT|QUERY|CONTEXT|STATEMENT|LOCATION|BACKTRACE):  (?P<text>.*)$",
    re.DOTALL,
)
_PROCESS = re.compile(r"\[(\d+)(?:-\d+)?\]")
"""%p in brackets, anywhere in log_line_prefix."""
_SESSION = re.compile(r"(?<![0-9a-f.:])([0-9a-f]{8}\.[0-9a-f]+)(?![0-9a-f.])")
"""%c: the time of the start and the number of the process. Times and addresses have other forms."""
_SQLSTATE = re.compile(r"^[0-9A-Z]{5}: ")
"""Written before a message if log_error_verbosity is verbose."""
_NESTED = re.compile(r"^(?:PL/\w+|SQL) function |^SQL statement ", re.MULTILINE)
"""The context of a statement inside a function."""
_DURATION = re.compile(r"duration: (\d+(?:\.\d+)?) ms(?:  (.*))?", re.DOTALL)
_SENT = re.compile(r"(?:statement|execute (?!fetch from )(?P<name>.+?)): (?P<text>.*)", re.DOTALL)
_UNNAMED = "<unnamed>"
"""A statement that is prepared again for each execution."""
_PLAN, _PLAN_LINE = "plan:\n", re.compile(r"^\S.*\(cost=\d", re.MULTILINE)
_PARAMETERS = re.compile(r"(?:Query )?[Pp]arameters: ")
_MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One message of a server, with its detail."""

    session: str
    """Identity of the session; empty if the log does not contain it."""
    message: str
    detail: str
    context: str
    database: str = ""
    """Name of the session's database; empty if the log does not contain it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of a statement, and whether the values of all its parameters are known."""

    sample: Sample
    has_values: bool
    database: str = ""
    """Empty if unknown."""
    is_prepared: bool = False
    """Whether the application had prepared the statement by name; False if unknown."""


def csv_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield the messages of a csvlog, and None for each row that is not one: the log may begin or end inside of one."""
    csv.field_size_limit(sys.maxsize)
    for row in csv.reader(lines):
        if len(row) in CSV_COLUMNS and row[_CSV_SEVERITY] in SEVERITIES:
            yield LogEntry(
                session=row[_CSV_SESSION],
                message=row[_CSV_MESSAGE],
                detail=row[_CSV_DETAIL],
                context=row[_CSV_CONTEXT],
                database=row[_CSV_DATABASE],
            )
        elif row:
            yield None


def json_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield the messages of a jsonlog, and None for each line that is not one."""
    for line in lines:
        if not line.strip():
            continue
        row = _json(line)
        if isinstance(row, dict) and isinstance(row.get("message"), str):
            yield LogEntry(
                session=str(row.get("session_id", "")),
                message=row["message"],
                detail=str(row.get("detail", "")),
                context=str(row.get("context", "")),
                database=str(row.get("dbname", "")),
            )
        else:
            yield None


def stderr_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield the messages of a log in text form, whatever its log_line_prefix, and None for each other line.

    A message continues on lines that begin with a tab, and its detail follows immediately.
    """
    session, parts, part = "", dict[str, list[str]](), ""
    for line in lines:
        text = line.rstrip("\r\n")
        if text.startswith("\t") and part:
            parts[part].append(text[1:])
        elif (found := STDERR_LINE.match(text)) is None:
            if text:
                yield None
        elif found["severity"] in SEVERITIES:
            if parts:
                yield _entry(session, parts)
            session, part = _session(found["prefix"]), "message"
            parts = {part: [_SQLSTATE.sub("", found["text"])]}
        elif parts:
            part = found["severity"]
            parts[part] = [found["text"]]
    if parts:
        yield _entry(session, parts)


def _entry(session: str, parts: Mapping[str, Sequence[str]]) -> LogEntry:
    message, detail, context = ("\n".join(parts.get(name, ())) for name in ("message", "DETAIL", "CONTEXT"))
    return LogEntry(session=session, message=message, detail=detail, context=context)


def executions(entries: Iterable[LogEntry]) -> Iterator[Execution]:
    """Yield every execution that the messages report with its duration.

    An execution that both auto_explain and the server itself report counts once. Parsing, binding and fetches after the
    first one are not executions, and a statement inside a function is a part of the one that calls it.
    """
    sent: dict[str, _Sent] = {}
    """The statement logged last, by session: its duration follows in a separate message."""
    once = _Once()
    for entry in entries:
        duration = _DURATION.fullmatch(entry.message)
        if duration is None:
            if entry.session and (statement := _sent(entry.message, entry.detail)) is not None:
                sent[entry.session] = statement
            continue
        seconds, rest = float(duration[1]) * _MS, duration[2]
        if rest is not None and rest.startswith(_PLAN):
            if not _NESTED.search(entry.context):
                yield from once.planned(entry.session, _explained(rest.removeprefix(_PLAN), seconds, entry.database))
            continue
        found = sent.pop(entry.session, None) if rest is None else _sent(rest, entry.detail)
        if found is not None and found.text:
            execution = _execution(found.text, found.detail, seconds, entry.database)
            yield from once.timed(entry.session, replace(execution, is_prepared=found.is_prepared))
    yield from once.rest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A statement that a message names."""

    text: str
    detail: str
    is_prepared: bool


def _sent(message: str, detail: str) -> _Sent | None:
    """Return the statement that a message names; None for any other message."""
    found = _SENT.fullmatch(message)
    if found is None:
        return None
    is_prepared = found["name"] is not None and not found["name"].startswith(_UNNAMED)
    return _Sent(text=found["text"], detail=detail, is_prepared=is_prepared)


class _Once:
    """Counts an execution once that both auto_explain and the server report.

    Its plan comes first; if it was executed in steps (parse, bind, execute), the plan comes last.
    """

    def __init__(self) -> None:
        self._explained: dict[str, Execution] = {}
        """The execution that auto_explain reported last, by session, until the server reports one."""
        self._timed: dict[str, Execution] = {}
        """The execution that the server reported last, by session, unless its plan came first."""

    def planned(self, session: str, execution: Execution | None) -> Iterator[Execution]:
        """Take a report of auto_explain; None for one without a statement. Yield the one before it."""
        if session in self._explained:
            yield self._explained.pop(session)
        last = self._timed.pop(session, None)
        if execution is not None and not (last is not None and _is_part(execution.sample, last.sample)):
            self._explained[session] = execution

    def timed(self, session: str, execution: Execution) -> Iterator[Execution]:
        """Take a report of the server, and yield it, after a plan of another statement."""
        before = self._explained.pop(session, None)
        if before is None:
            self._timed[session] = execution
        elif before.sample.text != execution.sample.text.strip():
            yield before
        yield execution

    def rest(self) -> Iterator[Execution]:
        """Yield the executions that only auto_explain reported."""
        yield from self._explained.values()


def _is_part(plan: Sample, whole: Sample) -> bool:
    """Return whether a plan may belong to the execution that was reported before it."""
    return plan.text == whole.text.strip() and (plan.seconds or 0.0) <= (whole.seconds or 0.0)


def _execution(text: str, detail: str, seconds: float, database: str) -> Execution:
    prefix = _PARAMETERS.match(detail)
    values = logged_values(detail[prefix.end() :]) if prefix else ()
    has_values = values is not None and parameters_in(text) <= len(values)
    sample = Sample(text=text, values=values or (), seconds=seconds)
    return Execution(sample=sample, has_values=has_values, database=database)


def _explained(body: str, seconds: float, database: str) -> Execution | None:
    """Return the execution that a message of auto_explain reports in text or JSON format; None for other messages."""
    if body.lstrip().startswith("{"):
        plan = _json(body)
        if not isinstance(plan, dict) or not isinstance(plan.get("Query Text"), str):
            return None
        values = plan.get("Query Parameters", "")
        detail = f"Query Parameters: {values}" if values else ""
        return _execution(plan["Query Text"].strip(), detail, seconds, database)
    if not body.startswith("Query Text: ") or (plan_line := _PLAN_LINE.search(body)) is None:
        return None
    head = body[: plan_line.start()].removeprefix("Query Text: ")
    text, _, values = head.partition("\nQuery Parameters: ")
    return _execution(text.strip(), f"Query Parameters: {values.strip()}" if values else "", seconds, database)


def _session(prefix: str) -> str:
    found = _PROCESS.search(prefix) or _SESSION.search(prefix)
    return "" if found is None else found[1]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
