"""Tidy tables: a row for each verdict or for each trial, in base units and full precision; None for no number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import caveats_of
from pgversus.stats.analysis import ContenderResult
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
    """Rows by column name; a row lacks the columns that it has no value for."""

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]


def verdict_table(answer: StudyAnswer) -> TidyTable:
    """One row for each verdict, after the levels of its context."""
    rows = tuple(_verdict(one, result) for one in answer.answers for result in one.analysis.results)
    return TidyTable(columns=(*_factors(answer), *_VERDICT_COLUMNS), rows=rows)


def trial_table(answer: StudyAnswer) -> TidyTable:
    """One row for each trial, failed ones included, after the levels of its context and before its counters."""
    counters = sorted({name for one in answer.answers for block in one.blocks for name in _counter_names(block)})
    rows = tuple(row for one in answer.answers for block in one.blocks for row in _trials(one, block))
    return TidyTable(columns=(*_factors(answer), *_TRIAL_COLUMNS, *counters), rows=rows)


def _factors(answer: StudyAnswer) -> list[str]:
    return list(
        dict.fromkeys(factor for one in answer.answers for factor, _ in one.context.levels if factor != "workload")
    )


def _levels(one: Answer) -> dict[str, Any]:
    return {"workload": one.comparison.workload.name, **dict(one.context.levels)}


def _verdict(one: Answer, result: ContenderResult) -> dict[str, Any]:
    comparison, metric = one.comparison, one.analysis.metric
    ratio = result.ratios.get(metric)
    levels = [one.analysis.levels[arm].get(metric) for arm in (0, result.contender)]
    return {
        **_levels(one),
        "baseline": comparison.baseline.label,
        "contender": comparison.arms[result.contender].label,
        "metric": metric.value,
        "verdict": result.verdict.value,
        "ratio": ratio.value if ratio else None,
        "low": ratio.low if ratio else None,
        "high": ratio.high if ratio else None,
        "confidence": ratio.confidence if ratio else None,
        "margin": comparison.design.margin,
        "baseline_value": levels[0].value if levels[0] else None,
        "contender_value": levels[1].value if levels[1] else None,
        "unit": metric.unit,
        "blocks": result.blocks,
        "seconds_measured": result.seconds_measured,
        "caveats": " ".join(caveat.slug for caveat in caveats_of(one, result.contender)),
    }


def _trials(one: Answer, block: Block) -> Iterator[dict[str, Any]]:
    arms = one.comparison.arms
    at = {**_levels(one), "block": block.number}
    for index, trial in sorted(block.trials.items()):
        yield {**at, **_arm(index, arms[index].label), "status": "finished", **_numbers(trial), **trial.counters}
    for failure in block.failures:
        yield {
            **at,
            **_arm(failure.arm, arms[failure.arm].label),
            "status": "failed",
            "failed_phase": failure.phase.value,
            "failed_words": failure.words,
        }


def _arm(index: int, label: str) -> dict[str, str]:
    return {"arm": label, "role": "contender" if index else "baseline"}


def _numbers(trial: Trial) -> dict[str, Any]:
    return {
        "transactions": trial.transactions,
        "seconds": trial.seconds,
        "failed": trial.failed,
        **{metric.value: trial.value(metric) for metric in Metric},
    }


def _counter_names(block: Block) -> Iterator[str]:
    for trial in block.trials.values():
        yield from trial.counters
