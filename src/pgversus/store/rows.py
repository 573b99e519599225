"""Rows of a results file, each of the form in which pgversus writes them."""

import sqlite3
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

Row = TypeVar("Row", bound=tuple[Any, ...])

Number = Annotated[int, Field(ge=1, le=2**31)]
"""Of a context, a block, a statement: counted from 1."""
Place = Annotated[int, Field(ge=0, le=2**31)]
"""Of an arm, a counter: counted from 0."""
Count = Annotated[int, Field(ge=0, le=2**53)]
"""Exact as a double as well."""
Seconds = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]

_LONGEST_SHOWN = 20


def read_chunks(
    database: sqlite3.Connection,
    sql: str,
    form: TypeAdapter[list[Row]],
    *,
    at_once: int,
    key: int,
    parameter: int | None = None,
) -> Iterator[list[Row]]:
    """The rows of a query, so many at once; ValueError for one of another form, or out of order.

    key: by how many of the first columns the rows are in order, no two alike.
    """
    cursor = database.execute(sql, () if parameter is None else (parameter,))
    before: tuple[Any, ...] = ()
    while found := cursor.fetchmany(at_once):
        try:
            rows = form.validate_python(found, strict=True)
        except ValidationError as error:
            raise ValueError(_words(cursor, found, error)) from error
        for row in rows:
            # Pages of a damaged file may lead to the same rows again and again.
            if row[:key] <= before:
                raise ValueError(f"rows out of order: {row[:key]} after {before}")
            before = row[:key]
        yield rows


def read_rows(
    database: sqlite3.Connection, sql: str, form: TypeAdapter[list[Row]], *, key: int, parameter: int | None = None
) -> Iterator[Row]:
    """The same one by one, for rows that may be large."""
    return chain.from_iterable(read_chunks(database, sql, form, at_once=1, key=key, parameter=parameter))


def _words(cursor: sqlite3.Cursor, rows: list[Any], error: ValidationError) -> str:
    """Which value of which row it is, by the names of the columns."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    row, column, *_ = (*first["loc"], 0)
    names = [name for name, *_ in cursor.description]
    beginning = zip(names, rows[int(row)][:3], strict=False)
    place = ", ".join(f"{name} {_beginning_of(value)}" for name, value in beginning)
    return f"{names[int(column)]} in the row of {place}: {first['msg']}"


def _beginning_of(value: Any) -> str:
    """In words; of a long one no more is made a text than is shown."""
    return str(value[:_LONGEST_SHOWN] if isinstance(value, str | bytes) else value)[:_LONGEST_SHOWN]
