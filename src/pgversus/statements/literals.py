"""Parameters $1, $2 and so on: their values in log messages, and literals in their place."""

import re
from collections.abc import Iterator, Sequence

from pgversus.text.sql import QUOTE, Quotes

_VALUE = re.compile(r"\$(\d{1,5}) = (?:(NULL)|'((?:[^']|'')*)')(?:, |\s*$)")
_PARAMETER = re.compile(rf"{QUOTE}|(?<![\w$])\$(\d{{1,5}})\b")
_TYPE = re.compile(
    r"\b(interval|date|(?:time|timestamp)(?:\(\d\))?(?: with(?:out)? time zone)?|timestamptz|jsonb?|uuid|inet|cidr"
    r"|numeric|bytea)\s+\Z",
    re.IGNORECASE,
)
_EXTRACT, _SOURCE = re.compile(r"\bextract\s*\(\s*\Z", re.IGNORECASE), re.compile(r"\s+from\s+", re.IGNORECASE)
_LIST_OPENINGS = ("(", "[")
LIST_MARK = " /*, ... */"
"""What pg_stat_statements prints since 18 in place of all values of a list but the first: `IN ($1 /*, ... */)`."""
LISTED = 10
"""Number of values in a list whose length is unknown."""
_CUT = "..."
"""End of a value that log_parameter_max_length has shortened."""


def logged_values(text: str) -> tuple[str | None, ...] | None:
    """Return the values in a list `$1 = '5', $2 = NULL`, as PostgreSQL writes it to its log.

    None if the list cannot be read, has gaps, or contains a shortened value.
    """
    found: list[str | None] = []
    position = 0
    while position < len(text):
        match = _VALUE.match(text, position)
        if match is None or int(match[1]) != len(found) + 1:
            return None
        value = None if match[2] else match[3].replace("''", "'")
        if value is not None and value.endswith(_CUT):
            return None
        found.append(value)
        position = match.end()
    return tuple(found)


def parameters_in(text: str) -> int:
    """Return the highest number of a parameter in an SQL text, outside of quotes; 0 if it has none."""
    return max((number for _, _, number in _parameters(text)), default=0)


def with_literals(text: str, values: Sequence[str | None]) -> str:
    """Return the SQL text with a literal for each parameter. values: at least as many as parameters_in(text)."""
    pieces, done = [], 0
    for begin, end, number in _parameters(text):
        pieces += [text[done:begin], literal(values[number - 1])]
        done = end
    return "".join([*pieces, text[done:]])


def with_casts(text: str) -> str:
    """Return an SQL text with a cast where only a literal may follow the name of a type: `interval $1`.

    pg_stat_statements has such texts, which no server accepts. EXTRACT($1 FROM day) becomes date_part($1, day).
    """
    pieces, done = [], 0
    for begin, end, number in _parameters(text):
        before = text[done:begin]
        if typed := _TYPE.search(before):
            pieces.append(f"{before[: typed.start()]}${number}::{typed[1]}")
            done = end
        elif (extract := _EXTRACT.search(before)) and (source := _SOURCE.match(text, end)):
            pieces.append(f"{before[: extract.start()]}date_part(${number}, ")
            done = source.end()
    return "".join([*pieces, text[done:]])


def with_lists(text: str) -> str:
    """Return an SQL text with LISTED parameters in each list of unknown length, in front of its mark."""
    pieces, done, last = [], 0, parameters_in(text)
    for begin, end, _ in _parameters(text):
        if text[begin - 1 : begin] in _LIST_OPENINGS and text.startswith(LIST_MARK, end):
            added = range(last + 1, last + LISTED)
            pieces += [text[done:end], *(f", ${number}" for number in added)]
            done, last = end, added[-1]
    return "".join([*pieces, text[done:]])


def literal(value: str | None) -> str:
    """Return an SQL literal of unknown type, like the value of a parameter whose type is not stated."""
    if value is None:
        return "NULL"
    doubled = value.replace("'", "''")
    # A plain string is read differently if standard_conforming_strings is off.
    return f"'{doubled}'" if "\\" not in value else " E'" + doubled.replace("\\", "\\\\") + "'"


def _parameters(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and number of each parameter outside of quotes and comments."""
    quotes, position = Quotes(text), 0
    while (found := _PARAMETER.search(text, position)) is not None:
        position = found.end()
        if found[1] is not None:
            if int(found[1]) > 0:
                yield found.start(), found.end(), int(found[1])
        elif (end := quotes.end(found[0], found.end())) is not None:
            position = end
