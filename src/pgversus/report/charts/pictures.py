"""Charts as files: SVG and PNG, as they look on paper."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgversus.report.answer import StudyAnswer
from pgversus.report.charts.chart import Chart, plain
from pgversus.report.charts.of_study import study_charts
from pgversus.report.charts.theme import config, on_paper

_WIDTH = 640
_PIXELS_PER_POINT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One chart, drawn."""

    name: str
    """Of its file, without a suffix."""
    svg: str
    png: bytes


def pictures(answer: StudyAnswer) -> Iterator[Picture]:
    """A picture of each chart of the study, each drawn when it is asked for."""
    for chart in study_charts(answer):
        yield _picture(chart)


def _picture(chart: Chart) -> Picture:
    # Imported here: the time is for who wants pictures.
    import vl_convert  # noqa: PLC0415

    specification = _whole(chart)
    return Picture(
        name=chart.name,
        svg=vl_convert.vegalite_to_svg(specification),
        png=vl_convert.vegalite_to_png(specification, scale=_PIXELS_PER_POINT),
    )


def _whole(chart: Chart) -> dict[str, Any]:
    """With what stands around a chart on a page: its title, its ground, its width."""
    title = {"text": plain(chart.title), "anchor": "start", "color": "var(--fg)", "fontSize": 14}
    own = chart.specification.get("title")
    if isinstance(own, dict):
        title |= {key: value for key, value in own.items() if key.startswith("subtitle")}
    whole = on_paper({**chart.specification, "config": config(), "title": title, "padding": 12})
    whole["width"] = _WIDTH
    return dict(whole)
