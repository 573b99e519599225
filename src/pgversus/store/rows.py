"""Rows of a results file, validated against the form in which pgversus writes them."""

import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

Row = TypeVar("Row", bound=tuple[Any, ...])

Number = Annotated[int, Field(ge=1, le=2**31)]
"""Number of a context, a block or a statement, from 1."""
Place = Annotated[int, Field(ge=0, le=2**31)]
"""Index of an arm or a counter, from 0."""
Count = Annotated[int, Field(ge=0, le=2**53)]
"""A count that is exact as a double."""
Seconds = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]

_LONGEST_SHOWN = 20
_SHORT_TEXT = 100_000
"""Texts of up to this many characters hold so few values that these need not be counted."""
MOST_VALUES = 50_000
"""Each invalid value of a JSON document takes several kB."""


def read_chunks(
    database: sqlite3.Connection,
    sql: str,
    form: TypeAdapter[list[Row]],
    *,
    at_once: int,
    key: int,
    parameter: int | None = None,
) -> Iterator[list[Row]]:
    """Yield the rows of a query in chunks; ValueError if a row is of the wrong form or out of order.

    key: number of leading columns by which rows are ordered and unique.
    """
    cursor = database.execute(sql, () if parameter is None else (parameter,))
    before: tuple[Any, ...] = ()
    while found := cursor.fetchmany(at_once):
        try:
            rows = form.validate_python(found, strict=True)
        except ValidationError as error:
            raise ValueError(_error_text(cursor, found, error)) from error
        for row in rows:
            # The pages of a damaged file may lead to the same rows repeatedly.
            if row[:key] <= before:
                raise ValueError(f"rows out of order: {row[:key]} after {before}")
            before = row[:key]
        yield rows


def read_rows(
    database: sqlite3.Connection,
    sql: str,
    form: TypeAdapter[list[Row]],
    *,
    key: int,
    parameter: int | None = None,
    most_values: int = MOST_VALUES,
) -> Iterator[Row]:
    """Yield the rows of a query like read_chunks(), but fetch them one by one, since they may be large.

    ValueError also for a JSON document with more than `most_values` values.
    """
    for row in chain.from_iterable(read_chunks(database, sql, form, at_once=1, key=key, parameter=parameter)):
        for value in row:
            if isinstance(value, str) and len(value) > _SHORT_TEXT and values_in(value) > most_values:
                raise ValueError(f"a document of more than {most_values} values")
        yield row


def values_in(document: str) -> int:
    """Return the approximate number of values in a JSON document, without parsing it."""
    outside_strings = document.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    return sum(part.count(sign) for part in outside_strings for sign in ",[{")


def _error_text(cursor: sqlite3.Cursor, rows: list[Any], error: ValidationError) -> str:
    """Return a message that names the row and column of an invalid value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    row, column, *_ = (*first["loc"], 0)
    names = [name for name, *_ in cursor.description]
    beginning = zip(names, rows[int(row)][:3], strict=False)
    place = ", ".join(f"{name} {_beginning_of(value)}" for name, value in beginning)
    return f"{names[int(column)]} in the row of {place}: {first['msg']}"


def _beginning_of(value: Any) -> str:
    """Return a value as text, converting only the part of a long one that is shown."""
    return str(value[:_LONGEST_SHOWN] if isinstance(value, str | bytes) else value)[:_LONGEST_SHOWN]
