"""Tidy tables as CSV; an empty field for no number.

Spreadsheets run a cell that begins as a formula does, and names of arms, steps and workloads come from anybody. Such a
text gets an apostrophe before it, by which spreadsheets know a text. Numbers stay as they are, and texts that are one.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import to_json

from pgversus.report.tidy import TidyTable

_ENDING = "\r\n"
_BEGINS_FORMULA = tuple("=+-@\t\r\n")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def csv_lines(table: TidyTable) -> Iterator[str]:
    """The table row by row, under a row of column names."""
    # csv quotes a carriage return only where its own lines end in one, and readers end a line there in any case.
    writer = csv.writer(_Passing(), lineterminator=_ENDING)
    yield writer.writerow([_plain(name) for name in table.columns])
    for row in table.rows:
        yield writer.writerow(_cells(row))


class _Passing:
    """A file for csv.writer that hands each row on: what `write` returns, `writerow` returns."""

    def write(self, row: str) -> str:
        return f"{row.removesuffix(_ENDING)}\n"


def _cells(row: Sequence[Any]) -> list[Any]:
    """The same values, floats as text: csv would spell them itself, one by one and several times as slowly."""
    floats = [value for value in row if type(value) is float]
    spelled = iter(to_json(floats).decode().strip("[]").split(","))
    return [
        next(spelled) if type(value) is float else _plain(value) if isinstance(value, str) else value for value in row
    ]


def _plain(text: str) -> str:
    """The text as no spreadsheet takes it for a formula."""
    return f"'{text}" if text.startswith(_BEGINS_FORMULA) and not _NUMBER.fullmatch(text) else text
