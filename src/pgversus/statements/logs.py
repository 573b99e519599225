"""Statements with their durations in PostgreSQL's logs: csvlog, jsonlog and stderr, with or without auto_explain.

Settings that write them: log_min_duration_statement, log_duration with log_statement, auto_explain.log_min_duration.
"""

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
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
_FAILURES = frozenset({"ERROR", "FATAL", "PANIC"})
STDERR_LINE = re.compile(
    r"^(?P<prefix>.*?)\b(?P<severity>DEBUG[1-5]|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC"
    r"|DETAIL|HINT|QUERY|CONTEXT|STATEMENT|LOCATION|BACKTRACE):  (?P<text>.*)$",
    re.DOTALL,
)
_SYSLOG = re.compile(
    r"\[(?P<process>\d+)\]: \[(?P<message>\d+)-(?P<line>\d+)\] (?P<tab>#011|\t)?(?P<text>.*)$", re.DOTALL
)
"""The numbers that syslog_sequence_numbers adds to each line; a tab begins a further line of a text."""
_PART = re.compile(r".*?\b(DETAIL|HINT|QUERY|CONTEXT|STATEMENT|LOCATION|BACKTRACE):  (.*)$", re.DOTALL)
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
    severity: str = "LOG"
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
                severity=row[_CSV_SEVERITY],
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
                severity=str(row.get("error_severity", "LOG")),
                database=str(row.get("dbname", "")),
            )
        else:
            yield None


def stderr_entries(lines: Iterable[str]) -> Iterator[LogEntry | None]:
    """Yield the messages of a log in text form, whatever its log_line_prefix, and None for each other line.

    A message continues on lines that begin with a tab, and its detail follows immediately. syslog mixes the lines of
    processes, but numbers messages and lines. Any other line may be the rest of a message, which is then left out.
    """
    log = _TextLog()
    for line in lines:
        yield from log.take(line.rstrip("\r\n"))
    yield from log.rest()


class _TextLog:
    """A log in text form that is read line by line."""

    def __init__(self) -> None:
        self._last: dict[str, _Message] = {}
        """The last message of each process in syslog; of another log, under an empty name."""

    def take(self, text: str) -> Iterator[LogEntry | None]:
        """Take the next line; yield the message that it ends, and None for what is left out."""
        numbered = _SYSLOG.search(text)
        if numbered is None or numbered["line"] == "1":
            yield from self._taken(text, numbered)
            return
        message = self._last.get(numbered["process"])
        if message is None or not message.has_continued(numbered):
            self._last.pop(numbered["process"], None)
            yield None

    def _taken(self, text: str, numbered: re.Match[str] | None) -> Iterator[LogEntry | None]:
        """Take a line that continues no message of syslog. numbered: its numbers there, if any."""
        process = "" if numbered is None else numbered["process"]
        message = self._last.get(process)
        if text.startswith("\t") and message is not None:
            message.lines.append(text[1:])
        elif (found := STDERR_LINE.match(text)) is None:
            if text:
                # Another one for the message, whose rest this may be.
                yield from [None] if self._last.pop(process, None) is None else [None, None]
        elif found["severity"] in SEVERITIES:
            if message is not None:
                yield message.entry
            self._last[process] = _Message(found, "" if numbered is None else numbered["message"])
        elif message is not None:
            message.begin(found["severity"], found["text"])

    def rest(self) -> Iterator[LogEntry]:
        """Yield the messages that no line has ended."""
        for message in self._last.values():
            yield message.entry


class _Message:
    """A message of which further lines may follow."""

    def __init__(self, first: re.Match[str], number: str) -> None:
        """number: of the message in syslog; empty for another log."""
        self._session = _session(first["prefix"])
        self._severity = first["severity"]
        self._parts = {"message": [_SQLSTATE.sub("", first["text"])]}
        self._number, self._next = number, 2
        self.lines = self._parts["message"]
        """Lines of its last part."""

    def begin(self, part: str, text: str) -> None:
        """Add another part, such as DETAIL."""
        self.lines = self._parts[part] = [text]

    def has_continued(self, line: re.Match[str]) -> bool:
        """Add a line of syslog, unless it is not the next one of this message; return whether it is."""
        if (line["message"], line["line"]) != (self._number, str(self._next)):
            return False
        self._next += 1
        if line["tab"]:
            self.lines.append(line["text"])
        elif (part := _PART.match(line["text"])) is not None:
            self.begin(part[1], part[2])
        else:
            # syslog has split a long line.
            self.lines[-1] += line["text"]
        return True

    @property
    def entry(self) -> LogEntry:
        """The message as far as it has been read."""
        message, detail, context = ("\n".join(self._parts.get(name, ())) for name in ("message", "DETAIL", "CONTEXT"))
        return LogEntry(session=self._session, severity=self._severity, message=message, detail=detail, context=context)


def executions(entries: Iterable[LogEntry]) -> Iterator[Execution]:
    """Yield every execution that the messages report with its duration.

    An execution that both auto_explain and the server itself report counts once. Parsing, binding and fetches after the
    first one are not executions, and a statement inside a function is a part of the one that calls it.
    """
    sent: dict[str, _Sent] = {}
    """The statement logged last, by session: its duration follows in a separate message."""
    once = _Once()
    for entry in entries:
        if entry.severity in _FAILURES:
            # The duration of a statement that failed does not follow.
            sent.pop(entry.session, None)
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
