"""Published figures to compare a study with.

The CSV has one row per level: columns that identify the context (workload, clients, cache, scale), the level of the
compared factor by its arm's label, and tps, or time_s for an operation. Missing values are not compared.
"""

import csv
import io
from collections.abc import Mapping

from pgversus.errors import StudyError

_QUANTITIES = ("tps", "time_s")
_LEAST, _MOST = 1e-9, 1e15
# A ratio of values farther apart would not be finite.

Figures = tuple[Mapping[str, str], ...]


def read_figures(text: str) -> Figures:
    """Return the rows. StudyError for invalid CSV, and for a row without a level or a numeric tps or time."""
    reader = csv.DictReader(io.StringIO(text))
    try:
        columns, rows = reader.fieldnames or (), tuple(reader)
    except csv.Error as error:
        raise _unusable(max(1, reader.line_num), str(error)) from error
    quantities = [name for name in _QUANTITIES if name in columns]
    if "level" not in columns or not quantities:
        raise _unusable(1, ", ".join(columns))
    for number, row in enumerate(rows, 2):
        is_whole = None not in row and None not in row.values()
        if not row["level"] or not is_whole or not all(_is_number(row[name]) for name in quantities):
            raise _unusable(number, ", ".join(f"{name}={value}" for name, value in row.items()))
    return rows


def _unusable(line: int, found: str) -> StudyError:
    return StudyError(
        "published figures cannot be used",
        slug="study-bad-figures",
        where=f"line {line} of the published figures",
        found=f"line {line}: {found or 'nothing'}",
        expected="the columns level and tps or time_s, positive numbers, and as many fields as in the first line",
        to_do="workload,clients,level,tps in the first line, then one line per figure",
    )


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and _LEAST <= float(text) <= _MOST
    except ValueError:
        return False
