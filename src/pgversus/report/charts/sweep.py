"""Levels that are amounts: a line for each context, with the band of its intervals."""

from typing import Any

from pgversus.report.charts.axes import THOUSANDS
from pgversus.report.charts.chart import Chart, chart_name, data, plain
from pgversus.report.charts.series import MOST_SERIES, of_series, series_layers
from pgversus.report.charts.theme import SERIES, sized
from pgversus.report.quantities import level_text
from pgversus.report.sweeps import Line, Sweep, metric_axis
from pgversus.text.redaction import visible
from pgversus.text.translation import tell

_HEIGHT = 300
_MOST_ABOVE = 2.0
"""How far above the highest value an axis goes on for the sake of intervals."""


def sweep_chart(found: Sweep, number: int) -> Chart:
    """The sweep as a picture, the number-th of its study.

    Of too many lines to be told apart the first ones are drawn, and all are in the table.
    """
    title = tell("{metric} over {factor}", metric=metric_axis(found.metric), factor=found.factor)
    if found.title:
        title = tell(
            "{metric} over {factor}: {place}", metric=metric_axis(found.metric), factor=found.factor, place=found.title
        )
    levels = _ascending(found)
    return Chart(
        name=chart_name("levels", str(number), found.metric.value, found.title),
        title=title,
        description=tell(
            "A line for each context over the levels, in the order of their amounts; the band around it is the "
            "interval of each value. The axis begins at 0, so that a small difference looks small."
        ),
        specification=sized(_specification(found)),
        heads=("", *levels),
        rows=tuple((line.name, *_cells(found, line, levels)) for line in found.lines),
    )


def _cells(found: Sweep, line: Line, levels: list[str]) -> list[str]:
    values = {point.label: level_text(found.metric, point.value) for point in line.points}
    return [values.get(level, "") for level in levels]


def _ascending(found: Sweep) -> list[str]:
    order = {point.label: point.at for line in found.lines for point in line.points}
    return sorted(order, key=order.__getitem__)


def _specification(found: Sweep) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    lines = found.lines[:MOST_SERIES]
    rows = [
        {"series": line.name, "level": point.label, "value": point.value, "low": point.low, "high": point.high}
        for line in lines
        for point in line.points
    ]
    # Evenly spaced: block sizes double, and so do most levels that people choose.
    ascending = [visible(level) for level in _ascending(found)]
    x = alt.X("level:N", sort=ascending, title=plain(found.factor), axis=alt.Axis(labelAngle=0))
    top, highest = _top(found)
    scale, title = alt.Scale(domain=[0, top], nice=False), plain(metric_axis(found.metric))
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=6, labelExpr=THOUSANDS))
    bands = [
        alt.Chart(data(rows))
        .mark_area(opacity=0.18, clip=True, color=SERIES[number])
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title=title), y2="high:Q")
        .transform_filter(of_series(line.name))
        for number, line in enumerate(lines)
    ]
    layers = [*bands, *series_layers(rows, [line.name for line in lines], x, y)]
    layered = alt.layer(*layers).properties(width="container", height=_HEIGHT)
    if highest > top:
        note = tell("Some intervals end above the chart.")
        layered = layered.properties(title=alt.TitleParams(text="", subtitle=note, anchor="start"))
    specification: dict[str, Any] = layered.to_dict()
    return specification


def _top(found: Sweep) -> tuple[float, float]:
    """Where the axis ends, and the highest that there is."""
    points = [point for line in found.lines for point in line.points]
    highest = max(point.value if point.high is None else point.high for point in points)
    return min(highest, _MOST_ABOVE * max(point.value for point in points)), highest
