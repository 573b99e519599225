"""Two factors as a map: each cell says its change in figures, its ground where and how much a contender is faster."""

import math
from typing import Any

from pgversus.report.charts.chart import Chart, chart_name, data
from pgversus.report.charts.theme import SIGNS, sized
from pgversus.report.heat_map import HeatCell, HeatMap
from pgversus.stats.confidence import DIFFERENT
from pgversus.text.translation import tell

_ROW_HEIGHT = 44
_FULL = math.log(2)
"""From twice as fast on, or half as fast, the ground is as strong as it gets."""
_FAINTEST, _STRONGEST = 0.12, 0.5


def heat_chart(found: HeatMap, number: int) -> Chart:
    """The map as a picture, the number-th of its study."""
    return Chart(
        name=chart_name("map", str(number)),
        title=found.title,
        description=tell(
            "A cell for each verdict with its change and the interval. Blue and ▲ is faster, orange and ▼ slower, the "
            "stronger the further; a grey, dashed cell claims no difference."
        ),
        specification=sized(_specification(found)),
        heads=("", *found.columns),
        rows=tuple(
            (
                place or tell("all"),
                *("" if cell is None else f"{_words(cell)} {cell.interval}".strip() for cell in cells),
            )
            for place, cells in found.rows
        ),
    )


def _words(cell: HeatCell) -> str:
    return f"{SIGNS[cell.verdict]} {cell.change}".strip()


def _strength(cell: HeatCell) -> float:
    if cell.verdict not in DIFFERENT:
        return 0.0
    return _FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, abs(cell.heat) / _FULL)


def _specification(found: HeatMap) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    rows = [place or tell("all") for place, _ in found.rows]
    values = [
        {
            "row": row,
            "column": column,
            "way": "faster" if cell.heat > 0 else "slower",
            "strength": _strength(cell),
            "sure": cell.verdict in DIFFERENT,
            "words": _words(cell),
            "interval": cell.interval,
        }
        for row, (_, cells) in zip(rows, found.rows, strict=True)
        for column, cell in zip(found.columns, cells, strict=True)
        if cell is not None
    ]
    x = alt.X(
        "column:N",
        sort=list(found.columns),
        title=None,
        axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False),
    )
    y = alt.Y("row:N", sort=rows, title=None, axis=alt.Axis(domain=False, ticks=False, labelPadding=8))
    base = alt.Chart(data(values)).encode(x=x, y=y)
    fill = alt.Fill(
        "way:N",
        scale=alt.Scale(domain=["faster", "slower"], range=["var(--faster)", "var(--slower)"]),
        legend=None,
    )
    sure = base.mark_rect(stroke="var(--line)").transform_filter("datum.sure")
    open_ones = base.mark_rect(stroke="var(--muted)", strokeDash=[3, 3], fillOpacity=0)
    cells = (
        sure.encode(fill=fill, fillOpacity=alt.FillOpacity("strength:Q", scale=None, legend=None)),
        open_ones.transform_filter("!datum.sure"),
    )
    ink = alt.condition("datum.sure", alt.value("var(--fg)"), alt.value("var(--muted)"))
    words = base.mark_text(dy=-7, fontWeight="bold").encode(text="words:N", color=ink)
    bounds = base.mark_text(dy=9, fontSize=10.5).encode(text="interval:N", color=ink)
    specification: dict[str, Any] = (
        alt.layer(*cells, words, bounds).properties(width="container", height=_ROW_HEIGHT * len(rows)).to_dict()
    )
    return specification
