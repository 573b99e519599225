"""Charts of a study, as pictures: lines over levels that are amounts, each with the band of its interval.

Lines are told apart by dash and by the name at their end, never by colour alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgversus.report.answer import StudyAnswer
from pgversus.report.sweeps import Sweep, metric_axis, sweeps
from pgversus.report.visible import visible

_WIDTH, _HEIGHT = 560, 320
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"]
"""Okabe and Ito's, which people with any colour vision tell apart."""
_PIXELS_PER_POINT = 2.0
_MOST_ABOVE = 2.0
"""How far above the highest value an axis goes on for the sake of intervals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One chart, drawn."""

    name: str
    """Of its file, without a suffix."""
    svg: str
    png: bytes


def pictures(answer: StudyAnswer) -> Iterator[Picture]:
    """A picture of each sweep of the study, each drawn when it is asked for."""
    # Imported here: the half second is for who wants pictures.
    import vl_convert  # noqa: PLC0415

    for found in sweeps(answer):
        specification = _specification(found, answer.study.title)
        yield Picture(
            name=_file_name(found),
            svg=vl_convert.vegalite_to_svg(specification),
            png=vl_convert.vegalite_to_png(specification, scale=_PIXELS_PER_POINT),
        )


def _specification(found: Sweep, study: str) -> dict[str, Any]:
    """In Vega-Lite."""
    import altair as alt  # noqa: PLC0415 - as above

    rows = [
        {
            "line": visible(line.name),
            "level": visible(point.label),
            "value": point.value,
            "low": point.low,
            "high": point.high,
        }
        for line in found.lines
        for point in line.points
    ]
    order = {point.label: point.at for line in found.lines for point in line.points}
    # Evenly spaced: block sizes double, and so do most levels that people choose.
    ascending = sorted(order, key=order.__getitem__)
    x = alt.X("level:N", sort=ascending, title=_plain(found.factor), axis=alt.Axis(labelAngle=0))
    # From 0, so that a small difference looks small; not up to where an interval of few blocks ends.
    top, highest = _top(found)
    y = alt.Y("value:Q", title=metric_axis(found.metric), scale=alt.Scale(domain=[0, top]))
    names = [visible(line.name) for line in found.lines]
    colour = alt.Color("line:N", sort=names, scale=alt.Scale(domain=names, range=_COLOURS), legend=None)
    base = alt.Chart(_data(rows)).encode(x=x)
    band = base.mark_area(opacity=0.2, clip=True).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour)
    dash = alt.StrokeDash("line:N", sort=names, legend=None)
    line = base.mark_line(point=True).encode(y=y, color=colour, strokeDash=dash)
    layers = [band, line]
    if len(names) > 1:
        # Of each its own: a line may end before the others.
        last = list({row["line"]: row for row in rows}.values())
        ends = alt.Chart(_data(last)).mark_text(align="left", dx=8)
        layers.append(ends.encode(x=x, y=y, text="line:N", color=colour))
    subtitle = "bands: the interval of each value" + ("; some end above the chart" if highest > top else "")
    title = alt.TitleParams(
        text=visible(f"{found.title}: {study}" if found.title else study), subtitle=subtitle, anchor="start"
    )
    chart = alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT, title=title, padding=12)
    specification: dict[str, Any] = chart.configure(background="white").to_dict()
    return specification


def _top(found: Sweep) -> tuple[float, float]:
    """Where the axis ends, and the highest that there is."""
    points = [point for line in found.lines for point in line.points]
    highest = max(point.value if point.high is None else point.high for point in points)
    return min(highest, _MOST_ABOVE * max(point.value for point in points)), highest


def _plain(text: str) -> str:
    """Without what Vega takes for the beginning of an escape, where it reads a title as one."""
    return visible(text).replace("\\", "/")


def _data(rows: list[dict[str, Any]]) -> Any:
    import altair as alt  # noqa: PLC0415 - as above

    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _file_name(found: Sweep) -> str:
    words = "-".join(part for part in (found.metric.value, found.title) if part)
    return "".join(character if character.isalnum() or character in "._-" else "_" for character in words)
