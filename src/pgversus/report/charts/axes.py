"""Which values of an axis are labelled."""

import math

from pgversus.report.charts.chart import told_by_value
from pgversus.text.units import significant

_FEWEST, _MOST = 4, 8
_FAR = 5
THOUSANDS = "join(split(format(datum.value, ',~r'), ','), ' ')"
"""Labels with thousands apart, as in tables."""


def log_ticks(low: float, high: float) -> list[float]:
    """Round values from low to high: 1, 2 and 5 of each decade, or fewer, or even steps where these are too few."""
    if high < _FAR * low:
        return _even(low, high)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        inside = [value for power in powers for step in steps if low <= (value := step * 10.0**power) <= high]
        if len(inside) <= _MOST:
            break
    return inside


def _even(low: float, high: float) -> list[float]:
    rough = (high - low) / _FEWEST
    power = 10.0 ** math.floor(math.log10(rough))
    # The logarithm of what is just below a power of ten may be that of the power.
    step = max((step * power for step in (1, 2, 5) if step * power <= rough), default=power)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def numbers(values: list[float]) -> str:
    """An expression that labels them as plain numbers."""
    return told_by_value([(value, significant(value)) for value in values])
