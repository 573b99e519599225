"""All charts of a study, each where a page has it."""

from collections.abc import Iterator
from dataclasses import dataclass

from pgversus.report.answer import StudyAnswer
from pgversus.report.charts.chart import Chart
from pgversus.report.charts.forest import forests
from pgversus.report.charts.heat import heat_chart
from pgversus.report.charts.latency import latency_chart
from pgversus.report.charts.run_order import run_order
from pgversus.report.charts.sweep import sweep_chart
from pgversus.report.heat_map import heat_maps
from pgversus.report.sweeps import sweeps
from pgversus.report.worst_first import worst_first

MOST_CONTEXTS = 40
"""Of which trials and latencies are drawn, the worst first: nobody looks at more."""
_MOST_MAPPED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCharts:
    """By what they show."""

    forests: list[Chart]
    run_orders: list[Chart]
    sweeps: list[Chart]
    heat_maps: list[Chart]
    latencies: list[Chart]

    def __iter__(self) -> Iterator[Chart]:
        yield from (*self.forests, *self.run_orders, *self.sweeps, *self.heat_maps, *self.latencies)


def study_charts(answer: StudyAnswer) -> StudyCharts:
    """Every chart for which there is something to draw."""
    placed = worst_first(answer)
    contexts = list({id(one.answer): one.answer for one in placed}.values())[:MOST_CONTEXTS]
    maps = heat_maps(answer) if len(placed) <= _MOST_MAPPED else []
    return StudyCharts(
        forests=forests(answer),
        run_orders=[chart for one in contexts if (chart := run_order(one)) is not None],
        sweeps=[sweep_chart(found, number) for number, found in enumerate(sweeps(answer), start=1)],
        heat_maps=[heat_chart(found, number) for number, found in enumerate(maps, start=1)],
        latencies=[chart for one in contexts if (chart := latency_chart(one)) is not None],
    )
