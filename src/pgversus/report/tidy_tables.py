"""Tidy tables: one row per verdict or per trial, in base units and full precision; None for missing numbers.

In CSV None is an empty field. Spreadsheets execute a cell that begins like a formula, and names of arms, steps and
workloads are user input. Such a text is preceded by an apostrophe, which marks it as text. Numbers, and texts that are
numbers, are unchanged.

For data frames and Parquet the tables are Arrow tables. pyarrow is larger than all of pgversus, so it is an extra:
`pip install 'pgversus[arrow]'`.
"""

import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.errors import HostError
from pgversus.records.trials import Block, Trial
from pgversus.report.verdicts import verdict_on
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.counters import CounterTable, comparable_counters
from pgversus.study.metrics import Metric, transactions_for_quantile

Cell = type[str] | type[int] | type[float]
"""Type of a column, whether or not any row has a value."""

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
    """Column types, and rows with cells in the same order."""

    types: Mapping[str, Cell]
    """By column name, in order, independent of the measured values, so that tables of studies can be combined."""
    rows: Iterator[Sequence[Any]]
    """Single-use iterator that creates rows on demand, since there may be hundreds of thousands."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.types)


def verdict_table(answer: StudyAnswer) -> TidyTable:
    """Return one row per verdict, beginning with the levels of its context."""
    factors = _factors(answer)
    rows = (
        [*_levels(one, result.contender, factors), *_verdict(one, result)]
        for one in answer.answers
        for result in one.analysis.results
    )
    return TidyTable(types={**_factor_columns(factors, _VERDICT_COLUMNS), **_VERDICT_COLUMNS}, rows=rows)


def trial_table(answer: StudyAnswer) -> TidyTable:
    """Return one row per trial, including failed ones: levels of its context, metrics, step times, counters.

    A study without operations has no columns for step times.
    """
    factors, counters, steps = _factors(answer), _counters(answer), _steps(answer)
    rows = (
        [*places[arm], *trial]
        for one in answer.answers
        for places in [[_levels(one, arm.index, factors) for arm in one.comparison.arms]]
        for block in one.blocks
        for arm, trial in _trials(one, block, counters, steps)
    )
    own: dict[str, Cell] = {
        **_TRIAL_COLUMNS,
        **{f"step: {step}": float for step in steps},
        **_FAILED_COLUMNS,
        **dict.fromkeys(counters, float),
    }
    return TidyTable(types={**_factor_columns(factors, own), **own}, rows=rows)


def _factor_columns(factors: Sequence[str], own: Collection[str]) -> dict[str, Cell]:
    """Return the columns of the factors: a variable may have the name of another column, such as `blocks`."""
    return {f"factor: {name}" if name in own else name: str for name in factors}


def _factors(answer: StudyAnswer) -> list[str]:
    return list(
        dict.fromkeys(factor for one in answer.answers for factor, _ in one.context.levels if factor != "workload")
    )


def _counters(answer: StudyAnswer) -> tuple[str, ...]:
    """Return the names of all counters that any trial has."""
    contexts = ((one, [trial for block in one.blocks for trial in block.trials.values()]) for one in answer.answers)
    return tuple(sorted(set[str]().union(*(_comparable(one, trials).reported() for one, trials in contexts if trials))))


def _comparable(one: Answer, trials: Sequence[Trial]) -> CounterTable:
    return comparable_counters(trials, [facts.block_bytes for facts in one.arms])


def _steps(answer: StudyAnswer) -> tuple[str, ...]:
    """Return the names of all steps of operations, in the order of the study."""
    workloads = (arm.workload for one in answer.answers for arm in one.comparison.arms)
    return tuple(dict.fromkeys(step.name for workload in workloads for step in workload.steps))


def _levels(one: Answer, arm: int, factors: Sequence[str]) -> list[str | None]:
    """Return the levels of all other factors, then the workload, which is the arm's own if workloads are compared."""
    levels = {"workload": one.comparison.arms[arm].workload.name, **dict(one.context.levels)}
    return [levels.get(factor) for factor in (*factors, "workload")]


def _verdict(one: Answer, result: ContenderResult) -> list[Any]:
    """Return the cells in the order of _VERDICT_COLUMNS, from the second column on."""
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
        *result.paired_values.get(metric, (None, None)),
        metric.unit,
        row.blocks,
        row.seconds_measured,
        " ".join(row.caveats),
    ]


def _trials(
    one: Answer, block: Block, counters: tuple[str, ...], steps: tuple[str, ...]
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the arm and the row of each trial, from the block column on."""
    trials = sorted(block.trials.items())
    table = _comparable(one, [trial for _, trial in trials]).in_order(counters).tolist()
    for (index, trial), values in zip(trials, table, strict=True):
        cells = (None if isnan(value) else value for value in values)
        yield index, [block.number, *_arm(one, index), "finished", *_numbers(trial, steps), None, None, *cells]
    for failure in block.failures:
        lacking = [None] * (3 + len(Metric) + len(steps))
        words = [failure.phase.value, failure.message]
        row = [block.number, *_arm(one, failure.arm), "failed", *lacking, *words, *([None] * len(counters))]
        yield failure.arm, row


def _arm(one: Answer, index: int) -> tuple[str, str]:
    return one.comparison.arms[index].label, "contender" if index else "baseline"


def _numbers(trial: Trial, steps: tuple[str, ...]) -> list[Any]:
    metrics = (trial.value(metric) if _has_enough(trial, metric) else None for metric in Metric)
    return [trial.transactions, trial.seconds, trial.failed, *metrics, *(trial.steps.get(step) for step in steps)]


def _has_enough(trial: Trial, metric: Metric) -> bool:
    """Return whether a trial has enough transactions for a metric that is a percentile."""
    return metric.quantile is None or trial.transactions >= transactions_for_quantile(metric.quantile)


_ENDING = "\r\n"
_BEGINS_FORMULA = tuple("=+-@\t\r\n")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def csv_lines(table: TidyTable) -> Iterator[str]:
    """Yield the table row by row, after a row of column names."""
    # csv quotes a carriage return only if its own lines end in one, but readers always end a line there.
    writer = csv.writer(_Passing(), lineterminator=_ENDING)
    yield writer.writerow([_plain(name) for name in table.columns])
    for row in table.rows:
        yield writer.writerow(_cells(row))


class _Passing:
    """A file for csv.writer that passes each row on: `writerow` returns the value that `write` returns."""

    def write(self, row: str) -> str:
        return f"{row.removesuffix(_ENDING)}\n"


def _cells(row: Sequence[Any]) -> list[Any]:
    """Return the row with floats as text, because csv formats floats several times as slowly."""
    floats = [value for value in row if type(value) is float]
    spelled = iter(to_json(floats).decode().strip("[]").split(","))
    return [
        next(spelled) if type(value) is float else _plain(value) if isinstance(value, str) else value for value in row
    ]


def _plain(text: str) -> str:
    """Return the text, protected from being interpreted as a formula by spreadsheets."""
    return f"'{text}" if text.startswith(_BEGINS_FORMULA) and not _NUMBER.fullmatch(text) else text


if TYPE_CHECKING:
    import pyarrow as pa


def arrow_table(table: TidyTable) -> "pa.Table":
    """Return the table as Arrow columns of text, 64-bit integers or doubles; null for missing values.

    HostError if pyarrow is not installed.
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
    """Return the table as a Parquet file; HostError if pyarrow is not installed."""
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
            "Arrow tables require pyarrow, which is not installed",
            slug="host-no-pyarrow",
            where="Arrow, Parquet, pandas and polars",
            found=str(error),
            expected="the package pyarrow",
            to_do="pip install 'pgversus[arrow]'",
        ) from error
    return pa
