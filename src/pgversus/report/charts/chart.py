"""A chart as data: the specification that a browser or converter draws, and a table for readers who cannot see it."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.report.charts.theme import DASHES, SERIES, SHAPES
from pgversus.text.redaction import visible
from pgversus.text.translation import thousands_separator
from pgversus.text.units import change, significant

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart. All its texts are plain and in the language that was in use when it was created."""

    name: str
    """Name of its file and its anchor in a page: only letters, digits and `._-`."""
    title: str
    description: str
    """Description of the chart and how to read it, for readers who cannot see it."""
    specification: dict[str, Any]
    """In Vega-Lite, as wide as its container; colors are names from the theme (theme.py)."""
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The plotted numbers, as text."""


def chart_name(*words: str) -> str:
    """Join arbitrary words into a name short enough for a file; put the distinguishing words first."""
    text = "-".join(word for word in words if word)
    plain_text = "".join(character if character.isalnum() or character in "._-" else "_" for character in text)
    return plain_text.encode()[:_LONGEST_NAME].decode(errors="ignore")


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows as inline data of a chart, with control characters made visible."""
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    shown = [{key: visible(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]
    return alt.Data(values=shown)  # type: ignore[no-untyped-call]


def plain(text: str) -> str:
    """Return a title without backslashes, which Vega would interpret as escapes."""
    return visible(text).replace("\\", "/")


def quoted(text: str) -> str:
    """Return a text as a string literal of a Vega expression."""
    # Vega expressions use the same escapes as JSON.
    return json.dumps(visible(text), ensure_ascii=False)


def labels_by_value(pairs: Sequence[tuple[float, str]]) -> str:
    """Return an expression that labels exactly these values of an axis."""
    cases = "".join(f"abs(datum.value - {value!r}) < 1e-9 * {value!r} ? {quoted(text)} : " for value, text in pairs)
    return f"{cases}''"


_FEWEST, _MOST = 4, 8
_FAR_APART = 5


def number_labels() -> str:
    """Return the expression for labels with separated thousands, as in tables."""
    return f"join(split(format(datum.value, ',~r'), ','), '{thousands_separator()}')"


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values from low to high: 1, 2 and 5 of each decade, fewer, or even steps in a short range."""
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
    # The logarithm of a value just below a power of ten may round to that of the power.
    step = max((step * power for step in (1, 2, 5) if step * power <= rough), default=power)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def numbers(values: list[float]) -> str:
    """Return an expression that labels the values as plain numbers."""
    return labels_by_value([(value, significant(value)) for value in values])


_NICE = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    *(2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0),
)
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
"""Tick distances for ratio axes with a short range."""
_MOST_TICKS = 7
_FAR = math.log(3)
"""Log of the smallest range, a factor of three, whose ticks are factors; in smaller ranges they are percentages."""
_FARTHEST = math.log(8)
"""Largest extension of the axis beyond the farthest point for an interval: a wide one would flatten all others."""
_ROOM = 0.06
_LEAST = math.log(1.02)


def ratio_domain(points: Sequence[float], bounds: Iterable[float | None], margin: float) -> tuple[float, float]:
    """Return the range of an axis that shows these ratios, zero difference and the margin.

    bounds: bounds of the intervals, if any.
    """
    logs = [math.log(value) for value in points] or [0.0]
    reach = max(_LEAST, math.log1p(margin) * 1.5)
    low, high = min(-reach, *logs), max(reach, *logs)
    ends = [math.log(bound) for bound in bounds if bound is not None]
    low, high = max(min([low, *ends]), low - _FARTHEST), min(max([high, *ends]), high + _FARTHEST)
    room = _ROOM * (high - low)
    return math.exp(low - room), math.exp(high + room)


def ratio_ticks(domain: tuple[float, float]) -> list[float]:
    """Return the ratios to label, including 1 (no difference)."""
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
    """Return an expression that labels ratios as changes; no difference is `0 %`."""
    return labels_by_value([(tick, "0 %" if math.isclose(tick, 1.0) else _round(change(tick))) for tick in ticks])


def _thinned(ticks: Sequence[float]) -> list[float]:
    """Return only the powers of ten."""
    return [tick for tick in ticks if math.isclose(math.log10(tick), round(math.log10(tick)), abs_tol=1e-9)]


def _round(text: str) -> str:
    """Return `-20 %` for `-20.0 %`, because a tick is exact."""
    return text.replace(".0 %", " %")


MOST_SERIES = len(SERIES)
"""More series could not be distinguished."""


def series_layers(
    rows: Sequence[dict[str, Any]], names: Sequence[str], x: Any, y: Any, *, thin: bool = False
) -> list[Any]:
    """Return a line with marks for each name. Rows contain the name as `series`, and the fields of x and y.

    thin: for lines that only guide the eye from mark to mark. A single line without a name has no legend.
    """
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    shown = [visible(name) for name in names]
    legend = alt.Legend(orient="top", title=None, symbolOpacity=1) if any(shown) else None
    color = alt.Color("series:N", scale=alt.Scale(domain=shown, range=list(SERIES[: len(shown)])), legend=legend)
    shape = alt.Shape("series:N", scale=alt.Scale(domain=shown, range=list(SHAPES[: len(shown)])), legend=legend)
    shared = alt.Chart(data(rows))
    # One layer per line: a scale of dashes would draw dashes around the marks of the legend.
    lines = [
        shared.mark_line(strokeWidth=1 if thin else 2, strokeDash=DASHES[number], color=SERIES[number])
        .encode(x=x, y=y)
        .transform_filter(of_series(name))
        for number, name in enumerate(names)
        if any(row["series"] == name for row in rows)
    ]
    points = shared.mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, color=color, shape=shape)
    return [*lines, points]


def of_series(name: str) -> str:
    """Return an expression that selects the rows of one name."""
    return f"datum.series === {quoted(name)}"


def layered(layers: Sequence[Any], height: int, **properties: Any) -> dict[str, Any]:
    """Return the specification of a chart with these layers, as wide as its container; height: in pixels."""
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    specification = alt.layer(*layers).properties(width="container", height=height, **properties).to_dict()
    rest = {key: value for key, value in specification.items() if key not in {"$schema", "config"}}
    return {**rest, "autosize": {"type": "fit-x", "contains": "padding"}}
