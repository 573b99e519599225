"""An axis of ratios: logarithmic, since twice as fast and half as fast are equally far from no difference."""

import math
from collections.abc import Iterable, Sequence

from pgversus.report.charts.chart import told_by_value
from pgversus.text.units import change

_NICE = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    *(2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
)
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
"""Between ratios for axes that reach less far."""
_MOST_TICKS = 7
_FAR = math.log(3)
"""From a factor of three in all on, ticks are factors; below they are percent."""
_FARTHEST = math.log(8)
"""How far an interval may draw the axis beyond the farthest point: one of few blocks would flatten all others."""
_ROOM = 0.06
_LEAST = math.log(1.02)


def ratio_domain(points: Sequence[float], bounds: Iterable[float | None], margin: float) -> tuple[float, float]:
    """From where to where an axis goes that shows these ratios, no difference, and the margin.

    bounds: of their intervals, as far as there are any.
    """
    logs = [math.log(value) for value in points] or [0.0]
    reach = max(_LEAST, math.log1p(margin) * 1.5)
    low, high = min(-reach, *logs), max(reach, *logs)
    ends = [math.log(bound) for bound in bounds if bound is not None]
    low, high = max(min([low, *ends]), low - _FARTHEST), min(max([high, *ends]), high + _FARTHEST)
    room = _ROOM * (high - low)
    return math.exp(low - room), math.exp(high + room)


def ratio_ticks(domain: tuple[float, float]) -> list[float]:
    """Ratios on it that are labelled, no difference among them."""
    low, high = domain
    if math.log(high / low) > _FAR:
        found = [value for value in _NICE if low <= value <= high]
        return found if len(found) <= _MOST_TICKS else _thinned(found)
    for step in _STEPS:
        first, last = math.ceil((low - 1) / step), math.floor((high - 1) / step)
        if last - first < _MOST_TICKS:
            return [1 + step * number for number in range(first, last + 1)]
    return [1.0]


def ratio_labels(ticks: Sequence[float]) -> str:
    """An expression that labels them as they are said in words; no difference is `0 %`."""
    return told_by_value([(tick, "0 %" if math.isclose(tick, 1.0) else _round(change(tick))) for tick in ticks])


def _thinned(ticks: Sequence[float]) -> list[float]:
    """Powers of ten alone."""
    return [tick for tick in ticks if math.isclose(math.log10(tick), round(math.log10(tick)), abs_tol=1e-9)]


def _round(text: str) -> str:
    """`-20 %` of `-20.0 %`: a tick is exact."""
    return text.replace(".0 %", " %")
