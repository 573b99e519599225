"""Latency of every arm from the median to the farthest tail: percentiles, spread out by nines."""

import math
from collections.abc import Mapping
from typing import Any

from pgversus.records.trials import LatencyHistogram
from pgversus.report.answer import Answer
from pgversus.report.charts.axes import log_ticks, numbers
from pgversus.report.charts.chart import Chart, chart_name, plain, told_by_value
from pgversus.report.charts.series import MOST_SERIES, series_layers
from pgversus.report.charts.theme import sized
from pgversus.study.metrics import transactions_for_quantile
from pgversus.text.translation import tell
from pgversus.text.units import latency

_HEIGHT = 240
_ROOM = 1.15
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999)
_LABELLED = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


def latency_chart(one: Answer) -> Chart | None:
    """Of one context under a load; None where no distribution was kept."""
    found = one.latencies()
    arms = {arm: histogram for arm, histogram in found.items() if histogram.total}
    points = {arm: _percentiles(histogram) for arm, histogram in arms.items()}
    if not any(points.values()) or len(points) > MOST_SERIES:
        return None
    labels = {arm: one.comparison.arms[arm].label for arm in points}
    place = one.context.label or one.comparison.workload.name
    shown = sorted({q for row in points.values() for q in row})
    return Chart(
        name=chart_name("latency", str(one.context.number), one.context.label),
        title=tell("Latency percentiles: {place}", place=place),
        description=tell(
            "A line for each arm: how long its transactions took, from the median on the left to the slowest ones on "
            "the right, over all its blocks. A percentile is drawn where enough transactions lie beyond it."
        ),
        specification=sized(_specification(points, labels)),
        heads=(tell("arm"), *(_name(q) for q in shown)),
        rows=tuple((labels[arm], *(latency(row[q]) if q in row else "" for q in shown)) for arm, row in points.items()),
    )


def _percentiles(histogram: LatencyHistogram) -> dict[float, float]:
    """Seconds by quantile, as far as there are transactions enough."""
    return {q: histogram.quantile(q) for q in _QUANTILES if histogram.total >= transactions_for_quantile(q)}


def _name(q: float) -> str:
    return f"p{100 * q:.5g}"


def _nines(q: float) -> float:
    """p50 at 0.3, p90 at 1, p99 at 2, p99.9 at 3."""
    return -math.log10(1 - q)


def _specification(points: Mapping[int, Mapping[float, float]], labels: Mapping[int, str]) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    values = [
        {"series": labels[arm], "nines": _nines(q), "ms": 1000 * seconds}
        for arm, row in points.items()
        for q, seconds in row.items()
    ]
    farthest = max(q for row in points.values() for q in row)
    ticks = [q for q in _LABELLED if q <= farthest]
    x = alt.X(
        "nines:Q",
        title=plain(tell("percentile")),
        scale=alt.Scale(domain=[_nines(0.5), max(_nines(farthest), _nines(0.9))], nice=False),
        axis=alt.Axis(
            values=[_nines(q) for q in ticks], labelExpr=told_by_value([(_nines(q), _name(q)) for q in ticks])
        ),
    )
    drawn = [1000 * seconds for row in points.values() for seconds in row.values()]
    low, high = min(drawn) / _ROOM, max(drawn) * _ROOM
    marks = log_ticks(low, high)
    y = alt.Y(
        "ms:Q",
        title=plain(tell("latency (ms)")),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=marks, labelExpr=numbers(marks)),
    )
    layers = series_layers(values, list(labels.values()), x, y)
    specification: dict[str, Any] = alt.layer(*layers).properties(width="container", height=_HEIGHT).to_dict()
    return specification
