"""Published figures that a study is held against.

A CSV with one row for each level: what identifies the context (workload, clients, cache, scale), the level of the
compared factor as its arm is called, and its tps, or of an operation its time_s. What a row does not have is not
compared.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from pgversus.errors import StudyError
from pgversus.study.metrics import Metric

_METRICS = (Metric.TPS, Metric.TIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was published."""

    metric: Metric
    """Tps, or the time of an operation."""
    rows: tuple[Mapping[str, str], ...]
    """What identifies the context, the level, and the figure under the metric's own name."""


def read_figures(text: str) -> Figures:
    """The figures; StudyError for a row without a level or without a number, and for a text that is no CSV."""
    reader = csv.DictReader(io.StringIO(text))
    try:
        columns, rows = reader.fieldnames or (), tuple(reader)
    except csv.Error as error:
        raise _unusable(max(1, reader.line_num), str(error)) from error
    metric = next((metric for metric in _METRICS if metric.value in columns), None)
    if "level" not in columns or metric is None:
        raise _unusable(1, ", ".join(columns))
    for number, row in enumerate(rows, 2):
        if not row["level"] or not _is_number(row[metric.value]) or None in row or None in row.values():
            raise _unusable(number, ", ".join(f"{name}={value}" for name, value in row.items()))
    return Figures(metric=metric, rows=rows)


def _unusable(line: int, found: str) -> StudyError:
    return StudyError(
        "published figures cannot be used",
        slug="study-bad-figures",
        where=f"line {line} of the published figures",
        found=f"line {line}: {found or 'nothing'}",
        expected="the columns level and tps (of operations time_s), a number above 0, and as many fields as the first "
        "line",
        to_do="workload,clients,level,tps in the first line, then one line for each figure",
    )


def _is_number(text: str | None) -> bool:
    try:
        return text is not None and 0 < float(text) < float("inf")
    except ValueError:
        return False
