"""A study of several factors as a map: where on it a contender is faster, and by how much.

Every renderer shows these texts; one that has colours paints each cell by its ratio.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.overview import MARKS
from pgversus.stats.confidence import Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import tell
from pgversus.text.units import change, change_interval

_FEWEST_FACTORS, _FEWEST_COLUMNS = 2, 2
_MOST_COLUMNS = 12
# More do not fit beside one another.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """One verdict."""

    text: str
    """The change, with the mark of a verdict that claims none; empty without a ratio."""
    change: str
    """The change alone."""
    interval: str
    heat: float
    """ln of how many times as fast the contender is: above 0 it is faster; 0 without a ratio."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """One contender in all contexts."""

    title: str
    """`18.0 against 15.14, dead to the right`."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    """What else is fixed, and a cell for each column; None where nothing was measured."""


def heat_maps(answer: StudyAnswer) -> list[HeatMap]:
    """One for each contender of a study whose contexts differ in factors; empty where there is nothing to spread out.

    To the right goes the factor with the most levels, of several the last.
    """
    levels: dict[str, dict[str, None]] = {}
    for one in answer.answers:
        for factor, level in one.context.levels:
            levels.setdefault(factor, {})[level] = None
    is_operation = any(one.analysis.metric is Metric.TIME for one in answer.answers)
    if len(levels) < _FEWEST_FACTORS and not is_operation:
        # One row: the table of verdicts says the same.
        return []
    widest = max(levels, key=lambda factor: (len(levels[factor]), list(levels).index(factor)), default=None)
    if widest is None or not _FEWEST_COLUMNS <= len(levels[widest]) <= _MOST_COLUMNS:
        return []
    columns = tuple(levels[widest])
    pairs = dict.fromkeys(
        (one.comparison.baseline.label, arm.label) for one in answer.answers for arm in one.comparison.contenders
    )
    return [
        HeatMap(
            title=tell(
                "{contender} against {baseline}, {factor} to the right",
                contender=contender,
                baseline=baseline,
                factor=widest,
            ),
            columns=columns,
            rows=_rows(answer.answers, baseline, contender, widest, columns),
        )
        for baseline, contender in pairs
    ]


def heat_colour(cell: HeatCell) -> str:
    """`#rrggbb` for a difference that is sure, greener the faster and redder the slower; empty for any other."""
    if cell.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    # From twice as fast on, or half as fast, the colour is full.
    pale = round(220 * (1 - min(1.0, abs(cell.heat) / math.log(2))))
    return f"#{pale:02x}dc{pale:02x}" if cell.heat > 0 else f"#dc{pale:02x}{pale:02x}"


def _rows(
    answers: Sequence[Answer], baseline: str, contender: str, widest: str, columns: Sequence[str]
) -> tuple[tuple[str, tuple[HeatCell | None, ...]], ...]:
    cells: dict[str, dict[str, HeatCell]] = {}
    for one in answers:
        fixed = dict(one.context.levels)
        column = fixed.pop(widest, "")
        place = " ".join(f"{factor}={level}" for factor, level in fixed.items())
        for result in one.analysis.results:
            labels = (one.comparison.baseline.label, one.comparison.arms[result.contender].label)
            if labels == (baseline, contender):
                cells.setdefault(place, {})[column] = _cell(one, result.contender)
    return tuple((place, tuple(row.get(column) for column in columns)) for place, row in cells.items())


def _cell(one: Answer, contender: int) -> HeatCell:
    result, metric = one.analysis.result_of(contender), one.analysis.metric
    ratio = result.ratios.get(metric)
    if ratio is None:
        return HeatCell(text=MARKS.get(result.verdict, ""), change="", interval="", heat=0.0, verdict=result.verdict)
    mark = MARKS.get(result.verdict, "")
    log = math.log(ratio.value)
    return HeatCell(
        text=f"{mark} {change(ratio.value)}".strip(),
        change=change(ratio.value),
        interval=change_interval(ratio.low, ratio.high),
        heat=log if metric.more_is_better else -log,
        verdict=result.verdict,
    )
