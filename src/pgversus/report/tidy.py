"""Tidy tables: a row for each verdict or for each trial, in base units and full precision; None for no number."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

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
