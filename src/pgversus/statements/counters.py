"""Rows of pg_stat_statements: from a server, or exported as CSV with a header, or as JSON."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgversus.errors import StudyError

_TOTALS = ("total_exec_time", "total_time")
"""Columns with the total time in milliseconds: since 13, and until 12."""
_MEANS = ("mean_exec_time", "mean_time")
_HIDDEN = "<insufficient privilege>"
_FALSE = frozenset({"f", "false"})
_MS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One row of pg_stat_statements."""

    text: str
    calls: int
    seconds: float
    rows: int | None
    skipped: str = ""
    """Why the row does not count: the statement is nested in another one or never ran, or its text is hidden."""
    database: str = ""
    """Identity of the database in which it was executed; empty if unknown."""


def is_counters_header(names: Iterable[str]) -> bool:
    """Return whether these are names of columns of pg_stat_statements."""
    return {"query", "calls"} <= set(names)


def counters_from_csv(lines: Iterable[str], where: str) -> Iterator[Counted]:
    """Yield the rows of a CSV export; StudyError for a row without text, calls or times. where: for messages."""
    csv.field_size_limit(sys.maxsize)
    rows = csv.DictReader(lines)
    for row in rows:
        yield _counted(row, f"{where}, line {rows.line_num}")


def counters_from_json(text: str, where: str) -> Iterator[Counted]:
    """Yield the rows of a JSON export: one array of objects, or one object per line. StudyError as for CSV."""
    yield from counters_from_rows(_json_rows(text, where), where)


def counters_from_rows(rows: Iterable[Any], where: str) -> Iterator[Counted]:
    """Yield the counters of rows that map names of columns to values; StudyError as for CSV."""
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise _bad_row(f"{where}, row {number}", f"a {type(row).__name__}", "an object with query, calls and times")
        yield _counted(row, f"{where}, row {number}")


def _json_rows(text: str, where: str) -> Iterable[Any]:
    try:
        if text.lstrip().startswith("["):
            found = json.loads(text)
            return found if isinstance(found, list) else [found]
        # Not splitlines(): strings in JSON may contain other line separators, such as U+2028.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise _bad_row(where, str(error), "JSON: an array of objects, or an object on each line") from error


def _counted(row: Mapping[str, Any], where: str) -> Counted:
    if "query" not in row:
        raise _bad_row(where, "no column query", "the text of a statement")
    # The server has lost the texts if it could not write its file of them.
    text = str(row["query"] or "")
    rows = row.get("rows")
    calls = round(_number(row, "calls", where))
    skipped = "no permission to read the text" if text.strip() == _HIDDEN else "" if text.strip() else "no text"
    if not calls:
        skipped = "planned, but never executed"
    if str(row.get("toplevel", "")).lower() in _FALSE:
        skipped = "executed inside a function, whose time includes it"
    return Counted(
        text=text,
        calls=calls,
        seconds=_total_ms(row, where) * _MS,
        rows=None if rows in (None, "") else round(_number(row, "rows", where)),
        skipped=skipped,
        database=str(row.get("dbid") or ""),
    )


def _total_ms(row: Mapping[str, Any], where: str) -> float:
    for name in _TOTALS:
        if row.get(name) not in (None, ""):
            return _number(row, name, where)
    for name in _MEANS:
        if row.get(name) not in (None, ""):
            return _number(row, name, where) * _number(row, "calls", where)
    raise _bad_row(where, "no time", "a column total_exec_time or mean_exec_time, in milliseconds")


def _number(row: Mapping[str, Any], name: str, where: str) -> float:
    found = row.get(name)
    try:
        value = float("" if found is None else found)
    except (TypeError, ValueError, OverflowError) as error:
        raise _bad_row(where, f"{name} is {found!r}", f"a number in the column {name}") from error
    if not 0 <= value < float("inf"):
        raise _bad_row(where, f"{name} is {found!r}", "a number that is not negative")
    return value


def _bad_row(where: str, found: str, expected: str) -> StudyError:
    return StudyError(
        "invalid row of pg_stat_statements",
        slug="statements-bad-row",
        where=where,
        found=found,
        expected=expected,
        to_do=r"export it with psql: \copy (SELECT * FROM pg_stat_statements) TO 'statements.csv' CSV HEADER",
    )
