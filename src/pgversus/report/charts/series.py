"""Lines that are told apart by colour, by dash and by the shape of their marks, with one legend for all three."""

from collections.abc import Sequence
from typing import Any

from pgversus.report.charts.chart import data, quoted
from pgversus.report.charts.theme import DASHES, SERIES, SHAPES
from pgversus.text.redaction import visible

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
