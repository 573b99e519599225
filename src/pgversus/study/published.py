"""Published figures to compare a study with.

The CSV has one row per level. A row contains the level of the compared factor, given by its arm's label, and tps, or
time_s for an operation. Other columns are the conditions under which a figure was measured (workload, scale, clients, a
setting, a variable); an empty field is a condition that was not published. Two columns have a special meaning:
`version` is the version of PostgreSQL if the level is not a version, and `confounded` is the reason why a ratio of this
figure may have another cause.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pgversus.errors import StudyError

_QUANTITIES = ("tps", "time_s")
_LEAST, _MOST = 1e-9, 1e15
# A ratio of values farther apart would not be finite.
_VERSION = re.compile(r"([1-9][0-9])(?:\.[0-9]{1,3}|(?:beta|rc)[0-9]{1,2}|devel)")
"""A complete version, as server_version reports it, since 10."""
_LONGEST_REASON = 200
_NO_REASONS = frozenset({"no", "false", "0"})
CONFOUNDED = "yes"
"""The reason stored for a confounded figure if none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A published figure of one level, with the conditions under which it was measured."""

    level: str
    values: Mapping[str, float]
    """tps, or time_s in seconds."""
    version: str
    """The complete version of PostgreSQL; empty if it was not published."""
    conditions: Mapping[str, str]
    """Published conditions by column."""
    confounded: str
    """The reason, or CONFOUNDED if none is given; empty if the figure is not confounded."""


def read_figures(text: str) -> tuple[Figure, ...]:
    """Return the figures.

    StudyError for invalid CSV, a row without a level or a numeric tps or time, and an invalid version or reason.
    """
    reader = csv.DictReader(io.StringIO(text))
    try:
        columns = reader.fieldnames or ()
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise _unusable(max(1, reader.line_num), str(error)) from error
    quantities = [name for name in _QUANTITIES if name in columns]
    if "level" not in columns or not quantities:
        raise _unusable(1, ", ".join(columns))
    if len({*columns}) < len(columns):
        raise _unusable(1, ", ".join(columns), expected="each column once", to_do="remove or rename the second one")
    found = []
    for number, row in rows:
        is_whole = None not in row and None not in row.values()
        if not row["level"] or not is_whole or not all(_is_number(row[name]) for name in quantities):
            too_many = row.pop(None, ())
            raise _unusable(number, ", ".join([*(f"{name}={value}" for name, value in row.items()), *too_many]))
        found.append(_figure(number, row, quantities))
    return tuple(found)


def major_version(text: str) -> int | None:
    """Return the major version of a complete version, such as 17.4 or 17beta3; None for any other text."""
    match = _VERSION.fullmatch(text)
    return int(match[1]) if match else None


def _figure(line: int, row: Mapping[str, str], quantities: list[str]) -> Figure:
    conditions = {name: value for name, value in row.items() if value and name not in ("level", *quantities)}
    confounded = conditions.pop("confounded", "")
    return Figure(
        level=row["level"],
        values={name: float(row[name]) for name in quantities},
        version=_version(line, row["level"], conditions.pop("version", "")),
        conditions=conditions,
        confounded=_reason(line, confounded),
    )


def _version(line: int, level: str, text: str) -> str:
    """Return the version of the column, or of the level if that is a version."""
    known = level if major_version(level) is not None else ""
    if text and (major_version(text) is None or known not in ("", text)):
        raise _unusable(
            line,
            f"version={text} for the level {level}",
            expected="a complete version, such as 17.4 or 17beta3, that does not contradict the level, or nothing",
            to_do="write the version on which the figure was measured, or leave the field empty",
        )
    return text or known


def _reason(line: int, text: str) -> str:
    if text.lower() in _NO_REASONS or len(text) > _LONGEST_REASON or not text.isprintable():
        raise _unusable(
            line,
            f"confounded={text[:_LONGEST_REASON]!r}",
            expected=f"`{CONFOUNDED}` or a reason of at most {_LONGEST_REASON} printable characters; "
            "an empty field for a figure that is not confounded",
            to_do="write what else differed between the published arms, or leave the field empty",
        )
    return text


def _unusable(
    line: int,
    found: str,
    *,
    expected: str = "the columns level and tps or time_s, positive numbers, and as many fields as in the first line",
    to_do: str = "write the column names in the first line, such as workload,clients,level,tps, followed by one line "
    "per figure",
) -> StudyError:
    return StudyError(
        "published figures cannot be used",
        slug="study-bad-figures",
        where=f"line {line} of the published figures",
        found=f"line {line}: {found or 'nothing'}",
        expected=expected,
        to_do=to_do,
    )


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and _LEAST <= float(text) <= _MOST
    except ValueError:
        return False
