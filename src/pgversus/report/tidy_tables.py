"""Tidy tables: a row for each verdict or for each trial, in base units and full precision; None for no number.

In CSV None is an empty field. Spreadsheets run a cell that begins as a formula does, and names of arms, steps and
workloads come from anybody: such a text gets an apostrophe before it, by which spreadsheets know a text. Numbers stay
as they are, and texts that are one.

For data frames and Parquet they are Arrow tables. pyarrow weighs more than all of pgversus, so it is an extra:
`pip install 'pgversus[arrow]'`.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from pgversus.errors import HostError
from pgversus.records.trials import Block, Trial
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.verdicts import verdict_on
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.counters import counter_table
from pgversus.study.metrics import Metric
from pgversus.study.workload import Operation

Cell = type[str] | type[int] | type[float]
"""What a column holds, whether or not a row of it has a value."""

_VERDICT_COLUMNS: dict[str, Cell] = {
    "workload": str,
    "baseline": str,
    "contender": str,
    "metric": str,
    "verdict": str,
    "ratio": float,
    "low": float,
    "high": float,
    "confidence": float,
    "margin": float,
    "baseline_value": float,
    "contender_value": float,
    "unit": str,
    "blocks": int,
    "seconds_measured": float,
    "caveats": str,
}
_TRIAL_COLUMNS: dict[str, Cell] = {
    "workload": str,
    "block": int,
    "arm": str,
    "role": str,
    "status": str,
    "transactions": int,
    "seconds": float,
    "failed": int,
    **{metric.value: float for metric in Metric},
}
_FAILED_COLUMNS: dict[str, Cell] = {"failed_phase": str, "failed_words": str}


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyTable:
    """Rows whose cells are in the order of the columns."""

    types: Mapping[str, Cell]
    """Of each column, in order: the same whatever was measured, so that tables of several studies fit together."""
    rows: Iterator[Sequence[Any]]
    """To be gone through once: each is made when it is asked for, since there may be hundreds of thousands."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.types)


def verdict_table(answer: StudyAnswer) -> TidyTable:
    """One row for each verdict, after the levels of its context."""
    factors = _factors(answer)
    rows = (
        [*_levels(one, result.contender, factors), *_verdict(one, result)]
        for one in answer.answers
        for result in one.analysis.results
    )
    return TidyTable(types={**dict.fromkeys(factors, str), **_VERDICT_COLUMNS}, rows=rows)


def trial_table(answer: StudyAnswer) -> TidyTable:
    """One row for each trial, failed ones included, after the levels of its context and before its counters.

    The times of the steps of operations stand behind the metrics; a study without operations has no such columns.
    """
    factors, counters, steps = _factors(answer), _counters(answer), _steps(answer)
    rows = (
        [*places[arm], *trial]
        for one in answer.answers
        for places in [[_levels(one, arm.index, factors) for arm in one.comparison.arms]]
        for block in one.blocks
        for arm, trial in _trials(one, block, counters, steps)
    )
    types: dict[str, Cell] = {
        **dict.fromkeys(factors, str),
        **_TRIAL_COLUMNS,
        **{f"step: {step}": float for step in steps},
        **_FAILED_COLUMNS,
        **dict.fromkeys(counters, float),
    }
    return TidyTable(types=types, rows=rows)


def _factors(answer: StudyAnswer) -> list[str]:
    return list(
        dict.fromkeys(factor for one in answer.answers for factor, _ in one.context.levels if factor != "workload")
    )


def _counters(answer: StudyAnswer) -> tuple[str, ...]:
    """Names of all counters that some trial was told."""
    contexts = ([trial for block in one.blocks for trial in block.trials.values()] for one in answer.answers)
    return tuple(sorted(set[str]().union(*(counter_table(trials).told() for trials in contexts if trials))))


def _steps(answer: StudyAnswer) -> tuple[str, ...]:
    """Names of all steps of operations, in the order of the study."""
    workloads = (arm.workload for one in answer.answers for arm in one.comparison.arms)
    operations = (workload for workload in workloads if isinstance(workload, Operation))
    return tuple(dict.fromkeys(step.name for operation in operations for step in operation.steps))


def _levels(one: Answer, arm: int, factors: Sequence[str]) -> list[str | None]:
    """Of every other factor, then the workload, which is the arm's own where workloads are compared."""
    levels = {"workload": one.comparison.arms[arm].workload.name, **dict(one.context.levels)}
    return [levels.get(factor) for factor in (*factors, "workload")]


def _verdict(one: Answer, result: ContenderResult) -> list[Any]:
    """In the order of _VERDICT_COLUMNS, from the second on."""
    row, metric = verdict_on(one, result), one.analysis.metric
    return [
        row.baseline,
        row.contender,
        row.metric,
        row.verdict.value,
        row.ratio,
        row.low,
        row.high,
        row.confidence,
        row.margin,
        *result.levels.get(metric, (None, None)),
        metric.unit,
        row.blocks,
        row.seconds_measured,
        " ".join(row.caveats),
    ]


def _trials(
    one: Answer, block: Block, counters: tuple[str, ...], steps: tuple[str, ...]
) -> Iterator[tuple[int, list[Any]]]:
    """The arm of each, and its row in the order of the columns, from that of the block on."""
    trials = sorted(block.trials.items())
    table = counter_table([trial for _, trial in trials]).in_order(counters).tolist()
    for (index, trial), values in zip(trials, table, strict=True):
        told = (None if isnan(value) else value for value in values)
        yield index, [block.number, *_arm(one, index), "finished", *_numbers(trial, steps), None, None, *told]
    for failure in block.failures:
        lacking = [None] * (3 + len(Metric) + len(steps))
        words = [failure.phase.value, failure.words]
        row = [block.number, *_arm(one, failure.arm), "failed", *lacking, *words, *([None] * len(counters))]
        yield failure.arm, row


def _arm(one: Answer, index: int) -> tuple[str, str]:
    return one.comparison.arms[index].label, "contender" if index else "baseline"


def _numbers(trial: Trial, steps: tuple[str, ...]) -> list[Any]:
    metrics = (trial.value(metric) for metric in Metric)
    return [trial.transactions, trial.seconds, trial.failed, *metrics, *(trial.steps.get(step) for step in steps)]


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


if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(table: TidyTable) -> "pa.Table":
    """The table with a column of text, 64-bit integers or doubles for each name; null for no value.

    HostError without pyarrow.
    """
    arrow = _pyarrow()
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    values = list(zip(*table.rows, strict=True)) or [()] * len(table.columns)
    made: pa.Table = arrow.table(
        {
            name: arrow.array(column, type=types[cell])
            for (name, cell), column in zip(table.types.items(), values, strict=True)
        }
    )
    return made


def parquet_bytes(table: TidyTable) -> bytes:
    """The table as a Parquet file; HostError without pyarrow."""
    content = arrow_table(table)
    from pyarrow import parquet  # noqa: PLC0415 - see above

    page = io.BytesIO()
    parquet.write_table(content, page)
    return page.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - see above
    except ImportError as error:
        raise HostError(
            "Arrow tables need pyarrow, which is not installed",
            slug="host-no-pyarrow",
            where="Arrow, Parquet, pandas and polars",
            found=str(error),
            expected="the package pyarrow",
            to_do="pip install 'pgversus[arrow]'",
        ) from error
    return pa
