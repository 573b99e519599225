"""Tidy tables: a row for each verdict or for each trial, in base units and full precision; None for no number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import caveats_of
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.counter_table import counter_table
from pgversus.stats.trials import Block, Trial
from pgversus.study.metrics import Metric

_VERDICT_COLUMNS = (
    "workload",
    "baseline",
    "contender",
    "metric",
    "verdict",
    "ratio",
    "low",
    "high",
    "confidence",
    "margin",
    "baseline_value",
    "contender_value",
    "unit",
    "blocks",
    "seconds_measured",
    "caveats",
)
_TRIAL_COLUMNS = (
    "workload",
    "block",
    "arm",
    "role",
    "status",
    "transactions",
    "seconds",
    "failed",
    *(metric.value for metric in Metric),
    "failed_phase",
    "failed_words",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TidyTable:
    """Rows whose cells are in the order of the columns."""

    columns: tuple[str, ...]
    rows: Iterator[Sequence[Any]]
    """To be gone through once: each is made when it is asked for, since there may be hundreds of thousands."""


def verdict_table(answer: StudyAnswer) -> TidyTable:
    """One row for each verdict, after the levels of its context."""
    factors = _factors(answer)
    rows = (
        [*_levels(one, factors), *_verdict(one, result)] for one in answer.answers for result in one.analysis.results
    )
    return TidyTable(columns=(*factors, *_VERDICT_COLUMNS), rows=rows)


def trial_table(answer: StudyAnswer) -> TidyTable:
    """One row for each trial, failed ones included, after the levels of its context and before its counters."""
    factors, counters = _factors(answer), _counters(answer)
    rows = (
        [*_levels(one, factors), *trial]
        for one in answer.answers
        for block in one.blocks
        for trial in _trials(one, block, counters)
    )
    return TidyTable(columns=(*factors, *_TRIAL_COLUMNS, *counters), rows=rows)


def _factors(answer: StudyAnswer) -> list[str]:
    return list(
        dict.fromkeys(factor for one in answer.answers for factor, _ in one.context.levels if factor != "workload")
    )


def _counters(answer: StudyAnswer) -> tuple[str, ...]:
    """Names of all counters that some trial was told."""
    contexts = ([trial for block in one.blocks for trial in block.trials.values()] for one in answer.answers)
    return tuple(sorted(set[str]().union(*(counter_table(trials).told() for trials in contexts if trials))))


def _levels(one: Answer, factors: Sequence[str]) -> list[str | None]:
    """Of every other factor, then the workload."""
    levels = {"workload": one.comparison.workload.name, **dict(one.context.levels)}
    return [levels.get(factor) for factor in (*factors, "workload")]


def _verdict(one: Answer, result: ContenderResult) -> list[Any]:
    """In the order of _VERDICT_COLUMNS, from the second on."""
    comparison, metric = one.comparison, one.analysis.metric
    ratio = result.ratios.get(metric)
    levels = [one.analysis.levels[arm].get(metric) for arm in (0, result.contender)]
    return [
        comparison.baseline.label,
        comparison.arms[result.contender].label,
        metric.value,
        result.verdict.value,
        ratio.value if ratio else None,
        ratio.low if ratio else None,
        ratio.high if ratio else None,
        ratio.confidence if ratio else None,
        comparison.design.margin,
        *(level.value if level else None for level in levels),
        metric.unit,
        result.blocks,
        result.seconds_measured,
        " ".join(caveat.slug for caveat in caveats_of(one, result.contender)),
    ]


def _trials(one: Answer, block: Block, counters: tuple[str, ...]) -> Iterator[list[Any]]:
    """In the order of _TRIAL_COLUMNS, from the second on, then the counters."""
    trials = sorted(block.trials.items())
    table = counter_table([trial for _, trial in trials]).in_order(counters).tolist()
    for (index, trial), values in zip(trials, table, strict=True):
        told = (None if isnan(value) else value for value in values)
        yield [block.number, *_arm(one, index), "finished", *_numbers(trial), None, None, *told]
    for failure in block.failures:
        lacking = [None] * (3 + len(Metric))
        words = [failure.phase.value, failure.words]
        yield [block.number, *_arm(one, failure.arm), "failed", *lacking, *words, *([None] * len(counters))]


def _arm(one: Answer, index: int) -> tuple[str, str]:
    return one.comparison.arms[index].label, "contender" if index else "baseline"


def _numbers(trial: Trial) -> list[Any]:
    return [trial.transactions, trial.seconds, trial.failed, *(trial.value(metric) for metric in Metric)]
