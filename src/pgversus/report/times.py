"""The time of operations on every arm in absolute numbers, as such studies are written up."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.units import latency, significant
from pgversus.stats.analysis import quantities_of
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.study.operation import Operation

TIME_HEADS = ("trials", "mean", "min", "difference", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One arm, or one step on it; every number is text already, empty where there is none."""

    context: str
    arm: str
    """With the step behind it, where the row is of one."""
    cells: tuple[str, ...]
    """In the order of TIME_HEADS; the difference of the means and the estimated ratio, against the baseline."""


def time_rows(answer: StudyAnswer) -> list[TimeRow]:
    """A row for each arm of each context that times an operation, then for each of several steps, in that order."""
    operations = [one for one in answer.answers if isinstance(one.comparison.workload, Operation)]
    return [row for one in operations for quantity in _quantities(one) for row in _rows(one, quantity)]


def _quantities(one: Answer) -> Iterator[Quantity]:
    yield Metric.TIME
    yield from (quantity for quantity in quantities_of(one.comparison) if isinstance(quantity, StepTime))


def _rows(one: Answer, quantity: Quantity) -> Iterator[TimeRow]:
    baseline = _times(one, BASELINE, quantity)
    for arm in one.comparison.arms:
        times = _times(one, arm.index, quantity)
        yield TimeRow(
            context=one.context.label,
            arm=f"{arm.label}, {quantity.step}" if isinstance(quantity, StepTime) else arm.label,
            cells=(
                str(len(times)),
                latency(_mean(times)) if times else "",
                latency(min(times)) if times else "",
                *(("", "") if arm.index == BASELINE else _against(one, arm.index, quantity, times, baseline)),
            ),
        )


def _times(one: Answer, arm: int, quantity: Quantity) -> list[float]:
    values = (block.trials[arm].value(quantity) for block in one.blocks if block.has(arm))
    return [value for value in values if value is not None]


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values)


def _against(one: Answer, arm: int, quantity: Quantity, times: list[float], baseline: list[float]) -> tuple[str, str]:
    """Difference and ratio."""
    ratio = one.analysis.result_of(arm).ratios.get(quantity)
    if not times or not baseline or ratio is None:
        return "", ""
    seconds = _mean(times) - _mean(baseline)
    return f"{'-' if seconds < 0 else '+'}{latency(abs(seconds))}", significant(ratio.value)
