"""Charts of measurements: latency percentiles, trials in run order, and numeric levels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

from pgversus.answers.answer import Answer
from pgversus.records.trials import LatencyHistogram
from pgversus.report.charts.chart import (
    MOST_SERIES,
    Chart,
    chart_name,
    data,
    labels_by_value,
    layered,
    log_ticks,
    number_labels,
    numbers,
    of_series,
    plain,
    series_layers,
)
from pgversus.report.charts.theme import SERIES
from pgversus.report.sentences import metric_text
from pgversus.report.sweeps import Line, Point, Sweep, metric_axis
from pgversus.report.values import value_text
from pgversus.study.metrics import QUANTILES, Metric, percentile_name, transactions_for_quantile
from pgversus.text.redaction import visible
from pgversus.text.translation import _
from pgversus.text.units import latency

_PERCENTILES_HEIGHT = 240
_ROOM = 1.15
_METRICS = {q: metric for metric, q in QUANTILES.items()}
_QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99999)
_LABELLED = (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


def latency_chart(one: Answer) -> Chart | None:
    """Return the latency chart of one context under load; None if no distribution was stored, or with too many arms."""
    points = {arm: _percentiles(histograms) for arm, histograms in one.latencies().items()}
    if not any(points.values()) or len(points) > MOST_SERIES:
        return None
    labels = {arm: one.comparison.arms[arm].label for arm in points}
    shown = sorted({q for row in points.values() for q in row})
    return Chart(
        name=chart_name("latency", str(one.context.number), one.context.label),
        title=_("Latency percentiles: {place}", place=one.place),
        description=_(
            "One line per arm: transaction latency, from the median on the left to the slowest transactions on the "
            "right. As in the tables, a percentile is the mean of its blocks, and is shown only if every block has "
            "enough transactions beyond it."
        ),
        specification=_specification_of_percentiles(points, labels),
        heads=(_("arm"), *(percentile_name(q) for q in shown)),
        rows=tuple(
            (labels[arm], *(_with_interval(one, arm, q, row[q]) if q in row else "" for q in shown))
            for arm, row in points.items()
        ),
    )


def _with_interval(one: Answer, arm: int, q: float, seconds: float) -> str:
    """Return a percentile with its interval, which is known for the percentiles of the tables."""
    found = one.analysis.arm_values[arm].get(_METRICS[q]) if q in _METRICS else None
    if found is None or found.low is None or found.high is None:
        return latency(seconds)
    return f"{latency(seconds)} [{latency(found.low)}, {latency(found.high)}]"


def _percentiles(blocks: Sequence[LatencyHistogram]) -> dict[float, float]:
    """Return latencies in seconds by quantile, for quantiles with enough transactions in every block."""
    fewest = min((histogram.total for histogram in blocks), default=0)
    return {
        q: geometric_mean(histogram.quantile(q) for histogram in blocks)
        for q in _QUANTILES
        if fewest >= transactions_for_quantile(q)
    }


def _nines(q: float) -> float:
    """Return the number of nines: 0.3 for p50, 1 for p90, 2 for p99, 3 for p99.9."""
    return -math.log10(1 - q)


def _specification_of_percentiles(
    points: Mapping[int, Mapping[float, float]], labels: Mapping[int, str]
) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    values = [
        {"series": labels[arm], "nines": _nines(q), "ms": 1000 * seconds}
        for arm, row in points.items()
        for q, seconds in row.items()
    ]
    farthest = max(q for row in points.values() for q in row)
    ticks = [q for q in _LABELLED if q <= farthest]
    x = alt.X(
        "nines:Q",
        title=plain(_("percentile")),
        scale=alt.Scale(domain=[_nines(0.5), max(_nines(farthest), _nines(0.9))], nice=False),
        axis=alt.Axis(
            values=[_nines(q) for q in ticks],
            labelExpr=labels_by_value([(_nines(q), percentile_name(q)) for q in ticks]),
        ),
    )
    drawn = [1000 * seconds for row in points.values() for seconds in row.values()]
    low, high = min(drawn) / _ROOM, max(drawn) * _ROOM
    marks = log_ticks(low, high)
    y = alt.Y(
        "ms:Q",
        title=plain(_("latency (ms)")),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=marks, labelExpr=numbers(marks)),
    )
    return layered(series_layers(values, list(labels.values()), x, y), _PERCENTILES_HEIGHT)


_TRIALS_HEIGHT = 200
_DIGITS = 5
"""Decimal places; more would be invisible."""
_FAILED = "✕"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    block: int
    arm: str
    value: float | None
    """In the metric's base unit; None for a failed trial."""
    share: float
    """Ratio to the geometric mean of its arm; 1 for a failed trial, which has no value."""
    text: str


def run_order(one: Answer) -> Chart | None:
    """Return the chart of trials of one context; None with fewer than two blocks, or too many arms to distinguish."""
    points = [point for arm in range(len(one.comparison.arms)) for point in _points(one, arm)]
    if len(one.blocks) < 2 or len(one.comparison.arms) > MOST_SERIES or not any(p.value for p in points):  # noqa: PLR2004
        return None
    metric = one.analysis.metric
    return Chart(
        name=chart_name("trials", str(one.context.number), one.context.label),
        title=_("Trials in execution order: {place}", place=one.place),
        description=_(
            "One mark per trial: its {metric} as a percentage of the mean of its arm, by block. Flat lines mean that "
            "there was no drift. Arms that move together were affected by the host.",
            metric=metric_text(metric),
        ),
        specification=_specification_of_trials(one, points),
        heads=(_("block"), _("arm"), metric_text(metric), _("share of the arm's mean")),
        rows=tuple(
            (
                str(point.block),
                point.arm,
                point.text if point.value is None else value_text(metric, point.value),
                "" if point.value is None else f"{100 * point.share:.1f} %",
            )
            for point in sorted(points, key=lambda point: point.block)
        ),
    )


def _points(one: Answer, arm: int) -> list[_Point]:
    label, metric = one.comparison.arms[arm].label, one.analysis.metric
    blocks = one.blocks if metric in one.analysis.arm_values[arm] else ()
    values = [(block.number, block.trials[arm].value(metric)) for block in blocks if block.has(arm)]
    known = [(number, value) for number, value in values if value is not None and value > 0]
    mean = geometric_mean(value for _unused, value in known) if known else 1.0
    points = [_Point(block=number, arm=label, value=value, share=value / mean, text="") for number, value in known]
    points += [
        _Point(block=block.number, arm=label, value=None, share=1.0, text=_("failed: {words}", words=failure.message))
        for block in one.blocks
        for failure in block.failures
        if failure.arm == arm
    ]
    return points


def _specification_of_trials(one: Answer, points: list[_Point]) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    values = [
        {"block": point.block, "series": point.arm, "share": round(point.share, _DIGITS)}
        for point in points
        if point.value is not None
    ]
    failed = [{"block": point.block, "sign": f"{_FAILED} {point.arm}"} for point in points if point.value is None]
    x = alt.X(
        "block:Q",
        title=plain(_("block, in execution order")),
        scale=alt.Scale(domain=[0.5, len(one.blocks) + 0.5], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    y = alt.Y(
        "share:Q",
        title=plain(_("share of the arm's mean")),
        scale=alt.Scale(zero=False, nice=True, padding=6),
        axis=alt.Axis(labelExpr="format(100 * datum.value, '.3~g') + ' %'", tickCount=5),
    )
    layers = series_layers(values, [arm.label for arm in one.comparison.arms], x, y, thin=True)
    if failed:
        marks = alt.Chart(data(failed)).mark_text(baseline="bottom", dy=-2, color="var(--invalid)")
        layers.append(marks.encode(x=x, y=alt.value(_TRIALS_HEIGHT), text="sign:N"))
    return layered(layers, _TRIALS_HEIGHT)


_SWEEP_HEIGHT = 300
_MOST_ABOVE = 2.0
"""Largest extension of the axis by intervals, as a multiple of the highest value."""


def sweep_chart(found: Sweep, number: int) -> Chart:
    """Return the chart of a sweep. number: number of the sweep in its study.

    If there are too many lines to distinguish, only the first ones are drawn; the table contains all of them.
    """
    title = _("{metric} by {factor}", metric=metric_axis(found.metric), factor=found.factor)
    if found.title:
        title = _(
            "{metric} by {factor}: {place}", metric=metric_axis(found.metric), factor=found.factor, place=found.title
        )
    levels = _ascending(found)
    return Chart(
        name=chart_name("levels", str(number), found.metric.value, found.title),
        title=title,
        description=_(
            "One line per context across the levels, in ascending order. The band around it shows the interval of each "
            "value. The axis starts at 0, so a small difference looks small."
        ),
        specification=_specification_of_sweep(found),
        heads=("", *levels),
        rows=tuple((line.name, *_cells(found, line, levels)) for line in found.lines),
    )


def _cells(found: Sweep, line: Line, levels: list[str]) -> list[str]:
    values = {point.label: _value_with_interval(found.metric, point) for point in line.points}
    return [values.get(level, "") for level in levels]


def _value_with_interval(metric: Metric, point: Point) -> str:
    """Return `1 204 [1 190, 1 219]`; only the value if a bound is not valid."""
    value, bounds = value_text(metric, point.value), (point.low, point.high)
    texts = [value_text(metric, bound) for bound in bounds if bound is not None]
    return f"{value} [{', '.join(texts)}]" if len(texts) == len(bounds) else value


def _ascending(found: Sweep) -> list[str]:
    order = {point.label: point.at for line in found.lines for point in line.points}
    return sorted(order, key=order.__getitem__)


def _specification_of_sweep(found: Sweep) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    lines = found.lines[:MOST_SERIES]
    rows = [
        {"series": line.name, "level": point.label, "value": point.value, "low": point.low, "high": point.high}
        for line in lines
        for point in line.points
    ]
    # Evenly spaced, because block sizes and most other levels double.
    ascending = [visible(level) for level in _ascending(found)]
    x = alt.X("level:N", sort=ascending, title=plain(found.factor), axis=alt.Axis(labelAngle=0))
    top, highest = _top(found)
    scale, words = alt.Scale(domain=[0, top], nice=False), plain(metric_axis(found.metric))
    y = alt.Y("value:Q", title=words, scale=scale, axis=alt.Axis(tickCount=6, labelExpr=number_labels()))
    bands = [
        alt.Chart(data(rows))
        .mark_area(opacity=0.18, clip=True, color=SERIES[number])
        .encode(x=x, y=alt.Y("low:Q", scale=scale, title=words), y2="high:Q")
        .transform_filter(of_series(line.name))
        for number, line in enumerate(lines)
    ]
    note = _("Some intervals extend beyond the chart.")
    title = {"title": alt.TitleParams(text="", subtitle=note, anchor="start")} if highest > top else {}
    return layered([*bands, *series_layers(rows, [line.name for line in lines], x, y)], _SWEEP_HEIGHT, **title)


def _top(found: Sweep) -> tuple[float, float]:
    """Return the end of the axis, and the highest value or bound."""
    points = [point for line in found.lines for point in line.points]
    highest = max(point.value if point.high is None else point.high for point in points)
    return min(highest, _MOST_ABOVE * max(point.value for point in points)), highest
