"""The time of operations on every arm in absolute numbers, as such studies are written up."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.units import latency, significant
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import Metric
from pgversus.study.operation import Operation

TIME_HEADS = ("trials", "mean", "min", "difference", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One arm; every number is text already, empty where there is none."""

    context: str
    arm: str
    cells: tuple[str, ...]
    """In the order of TIME_HEADS; the difference of the means and the ratio of the verdict, against the baseline."""


def time_rows(answer: StudyAnswer) -> list[TimeRow]:
    """A row for each arm of each context that times an operation, in the order of the study."""
    return [row for one in answer.answers if isinstance(one.comparison.workload, Operation) for row in _rows(one)]


def _rows(one: Answer) -> Iterator[TimeRow]:
    times = [_times(one, arm.index) for arm in one.comparison.arms]
    for arm, known in zip(one.comparison.arms, times, strict=True):
        yield TimeRow(
            context=one.context.label,
            arm=arm.label,
            cells=(
                str(len(known)),
                latency(_mean(known)) if known else "",
                latency(min(known)) if known else "",
                _difference(known, times[BASELINE]) if arm.index != BASELINE else "",
                _ratio(one, arm.index) if arm.index != BASELINE else "",
            ),
        )


def _times(one: Answer, arm: int) -> list[float]:
    values = (block.trials[arm].value(Metric.TIME) for block in one.blocks if block.has(arm))
    return [value for value in values if value is not None]


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values)


def _difference(known: list[float], baseline: list[float]) -> str:
    if not known or not baseline:
        return ""
    seconds = _mean(known) - _mean(baseline)
    return f"{'-' if seconds < 0 else '+'}{latency(abs(seconds))}"


def _ratio(one: Answer, arm: int) -> str:
    ratio = one.analysis.result_of(arm).ratios.get(Metric.TIME)
    return significant(ratio.value) if ratio else ""
