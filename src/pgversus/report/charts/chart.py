"""A chart as data: what a browser or a converter draws, and the same as a table for who cannot see it."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.report.charts.theme import DASHES, SERIES, SHAPES
from pgversus.text.redaction import visible
from pgversus.text.units import change, significant

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture. All its texts are plain and in the language in which it was made."""

    name: str
    """Of its file and its place in a page: letters, digits, `._-` alone."""
    title: str
    description: str
    """What it shows and how to read it, for who cannot see it."""
    specification: dict[str, Any]
    """In Vega-Lite, as wide as its container; its colours are names of the theme (theme.py)."""
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The numbers that are drawn, as text."""


def chart_name(*words: str) -> str:
    """A name made of these, whatever is in them, and short enough for a file; what tells it apart comes first."""
    text = "-".join(word for word in words if word)
    plain_text = "".join(character if character.isalnum() or character in "._-" else "_" for character in text)
    return plain_text.encode()[:_LONGEST_NAME].decode(errors="ignore")


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as a chart's own data, with the texts of others made visible."""
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    shown = [{key: visible(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]
    return alt.Data(values=shown)  # type: ignore[no-untyped-call]


def plain(text: str) -> str:
    """Without what Vega takes for the beginning of an escape, where it reads a title as one."""
    return visible(text).replace("\\", "/")


def quoted(text: str) -> str:
    """A text inside an expression of Vega's."""
    # JSON's escapes are those of its expressions.
    return json.dumps(visible(text), ensure_ascii=False)


def told_by_value(pairs: Sequence[tuple[float, str]]) -> str:
    """An expression that labels each of these values of an axis, and nothing else."""
    cases = "".join(f"abs(datum.value - {value!r}) < 1e-9 * {value!r} ? {quoted(text)} : " for value, text in pairs)
    return f"{cases}''"


_FEWEST, _MOST = 4, 8
_FAR_APART = 5
THOUSANDS = "join(split(format(datum.value, ',~r'), ','), ' ')"
"""Labels with thousands apart, as in tables."""


def log_ticks(low: float, high: float) -> list[float]:
    """Round values from low to high: 1, 2 and 5 of each decade, or fewer, or even steps where these are too few."""
    if high < _FAR_APART * low:
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


MOST_SERIES = len(SERIES)
"""More cannot be told apart."""


def series_layers(
    rows: Sequence[dict[str, Any]], names: Sequence[str], x: Any, y: Any, *, thin: bool = False
) -> list[Any]:
    """A line and its marks for each name; rows have it under `series`, and their places where x and y look for them.

    thin: lines that only lead the eye from mark to mark. No legend for a single line without a name.
    """
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    shown = [visible(name) for name in names]
    legend = alt.Legend(orient="top", title=None, symbolOpacity=1) if any(shown) else None
    colour = alt.Color("series:N", scale=alt.Scale(domain=shown, range=list(SERIES[: len(shown)])), legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=shown, range=list(SHAPES[: len(shown)])), legend=legend)
    shared = alt.Chart(data(rows))
    # Each its own layer: a scale of dashes would put its dashes around the marks of the legend.
    lines = [
        shared.mark_line(strokeWidth=1 if thin else 2, strokeDash=DASHES[number], color=SERIES[number])
        .encode(x=x, y=y)
        .transform_filter(of_series(name))
        for number, name in enumerate(names)
        if any(row["series"] == name for row in rows)
    ]
    points = shared.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=colour, shape=shape)
    return [*lines, points]


def of_series(name: str) -> str:
    """An expression that holds for the rows of one name."""
    return f"datum.series === {quoted(name)}"
