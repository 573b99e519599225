"""All charts of a study, for a page and as SVG and PNG files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pgversus.answers.answer import StudyAnswer
from pgversus.report.charts.chart import Chart, plain
from pgversus.report.charts.curves import latency_chart, run_order, sweep_chart
from pgversus.report.charts.theme import config, print_theme
from pgversus.report.charts.verdicts import forests, heat_chart
from pgversus.report.overview import worst_first
from pgversus.report.sweeps import heat_maps, sweeps

MOST_CONTEXTS = 40
"""Maximum number of contexts whose trials and latencies are drawn, the worst first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCharts:
    """Charts of a study, by kind."""

    forests: list[Chart]
    run_orders: list[Chart]
    sweeps: list[Chart]
    heat_maps: list[Chart]
    latencies: list[Chart]

    def __iter__(self) -> Iterator[Chart]:
        yield from (*self.forests, *self.run_orders, *self.sweeps, *self.heat_maps, *self.latencies)


def study_charts(answer: StudyAnswer) -> StudyCharts:
    """Return every chart for which there is data."""
    placed = worst_first(answer)
    contexts = list({id(one.answer): one.answer for one in placed}.values())[:MOST_CONTEXTS]
    maps = heat_maps(answer)
    return StudyCharts(
        forests=forests(answer),
        run_orders=[chart for one in contexts if (chart := run_order(one)) is not None],
        sweeps=[sweep_chart(found, number) for number, found in enumerate(sweeps(answer), start=1)],
        heat_maps=[heat_chart(found, number) for number, found in enumerate(maps, start=1)],
        latencies=[chart for one in contexts if (chart := latency_chart(one)) is not None],
    )


_WIDTH = 640
_PIXELS_PER_POINT = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One rendered chart."""

    name: str
    """File name without a suffix."""
    svg: str
    png: bytes


def pictures(answer: StudyAnswer) -> Iterator[Picture]:
    """Yield a picture of each chart of the study, rendered on demand."""
    for chart in study_charts(answer):
        yield _picture(chart)


def _picture(chart: Chart) -> Picture:
    # Imported here, because it takes time and only pictures need it.
    import vl_convert  # noqa: PLC0415

    specification = _whole(chart)
    return Picture(
        name=chart.name,
        svg=vl_convert.vegalite_to_svg(specification),
        png=vl_convert.vegalite_to_png(specification, scale=_PIXELS_PER_POINT),
    )


def _whole(chart: Chart) -> dict[str, Any]:
    """Return the specification with the title, background and width that a page would provide."""
    title = {"text": plain(chart.title), "anchor": "start", "color": "var(--fg)", "fontSize": 14}
    own = chart.specification.get("title")
    if isinstance(own, dict):
        title |= {key: value for key, value in own.items() if key.startswith("subtitle")}
    whole = print_theme({**chart.specification, "config": config(), "title": title, "padding": 12})
    whole["width"] = _WIDTH
    return dict(whole)
