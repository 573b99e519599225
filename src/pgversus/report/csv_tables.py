"""Tidy tables as CSV; an empty field for no number."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import to_json

from pgversus.report.tidy import TidyTable

_ENDING = "\r\n"


def csv_lines(table: TidyTable) -> Iterator[str]:
    """The table row by row, under a row of column names."""
    # csv quotes a carriage return only where its own lines end in one, and readers end a line there in any case.
    writer = csv.writer(_Passing(), lineterminator=_ENDING)
    yield writer.writerow(table.columns)
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
    return [next(spelled) if type(value) is float else value for value in row]
