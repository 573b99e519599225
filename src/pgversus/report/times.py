"""The time of operations on every arm in absolute numbers, as such studies are written up."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.stats.analysis import quantities_of
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.study.workload import Operation
from pgversus.text.translation import later
from pgversus.text.units import latency, significant

TIME_HEADS = (later("trials"), later("mean"), later("min"), later("difference"), later("ratio"))
TIMES_NOTE = later(
    "times: means and differences are arithmetic, as published; the ratio is the mean of the blocks' ratios"
)
"""Both to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """One arm, or one step on it; every number is text already, empty where there is none."""

    context: str
    arm: str
    """With the step behind it, where the row is of one."""
    cells: tuple[str, ...]
    """In the order of TIME_HEADS; against the baseline, over the blocks that hold both: the difference of the means and
    the estimated ratio."""


def time_rows(answer: StudyAnswer) -> list[TimeRow]:
    """A row for each arm of each context that times an operation, then for each of several steps, in that order."""
    operations = [one for one in answer.answers if isinstance(one.comparison.workload, Operation)]
    return [row for one in operations for quantity in _quantities(one) for row in _rows(one, quantity)]


def _quantities(one: Answer) -> Iterator[Quantity]:
    yield Metric.TIME
    yield from (quantity for quantity in quantities_of(one.comparison) if isinstance(quantity, StepTime))


def _rows(one: Answer, quantity: Quantity) -> Iterator[TimeRow]:
    for arm in one.comparison.arms:
        times = [time for (time,) in _times(one, quantity, arm.index)]
        yield TimeRow(
            context=one.context.label,
            arm=f"{arm.label}, {quantity.step}" if isinstance(quantity, StepTime) else arm.label,
            cells=(
                str(len(times)),
                latency(_mean(times)) if times else "",
                latency(min(times)) if times else "",
                *(("", "") if arm.index == BASELINE else _against(one, quantity, arm.index)),
            ),
        )


def _times(one: Answer, quantity: Quantity, *arms: int) -> list[tuple[float, ...]]:
    """Of these arms, for each block that tells it of all of them."""
    blocks = (block for block in one.blocks if block.has(*arms))
    found = (tuple(block.trials[arm].value(quantity) for arm in arms) for block in blocks)
    return [tuple(time for time in times if time is not None) for times in found if None not in times]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _against(one: Answer, quantity: Quantity, arm: int) -> tuple[str, str]:
    """Difference and ratio."""
    times, ratio = _times(one, quantity, BASELINE, arm), one.analysis.result_of(arm).ratios.get(quantity)
    if not times or ratio is None:
        return "", ""
    seconds = _mean([theirs - ours for ours, theirs in times])
    return f"{'-' if seconds < 0 else '+'}{latency(abs(seconds))}", significant(ratio.value)
