"""Every trial in the order in which it ran: drift, jumps and failures are seen here before any number tells of them."""

from dataclasses import dataclass
from math import exp, fsum, log
from typing import Any

from pgversus.report.answer import Answer
from pgversus.report.charts.chart import Chart, chart_name, data, plain
from pgversus.report.charts.series import MOST_SERIES, series_layers
from pgversus.report.charts.theme import sized
from pgversus.report.quantities import level_text
from pgversus.report.sentences import metric_words
from pgversus.text.translation import tell

_HEIGHT = 200
_DIGITS = 5
"""Behind the point: no eye sees more."""
_FAILED = "✕"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    block: int
    arm: str
    value: float | None
    """In the metric's base unit; None for a trial that failed."""
    share: float
    """Of the geometric mean of its arm; 1 for a trial that failed, which has no number."""
    words: str


def run_order(one: Answer) -> Chart | None:
    """The trials of one context; None where fewer than two blocks ran, or there are too many arms to be told apart."""
    points = [point for arm in range(len(one.comparison.arms)) for point in _points(one, arm)]
    if len(one.blocks) < 2 or len(one.comparison.arms) > MOST_SERIES or not any(p.value for p in points):  # noqa: PLR2004
        return None
    metric = one.analysis.metric
    place = one.context.label or one.comparison.workload.name
    return Chart(
        name=chart_name("trials", str(one.context.number), one.context.label),
        title=tell("Trials in the order in which they ran: {place}", place=place),
        description=tell(
            "A mark for each trial: its {metric} as a share of its own arm's mean, by block. Level lines mean that "
            "nothing drifted; arms that move together were moved by the host.",
            metric=metric_words(metric),
        ),
        specification=sized(_specification(one, points)),
        heads=(tell("block"), tell("arm"), metric_words(metric), tell("of its arm's mean")),
        rows=tuple(
            (
                str(point.block),
                point.arm,
                point.words if point.value is None else level_text(metric, point.value),
                "" if point.value is None else f"{100 * point.share:.1f} %",
            )
            for point in sorted(points, key=lambda point: point.block)
        ),
    )


def _points(one: Answer, arm: int) -> list[_Point]:
    label, metric = one.comparison.arms[arm].label, one.analysis.metric
    values = [(block.number, block.trials[arm].value(metric)) for block in one.blocks if block.has(arm)]
    told = [(number, value) for number, value in values if value is not None and value > 0]
    mean = exp(fsum(log(value) for _, value in told) / len(told)) if told else 1.0
    points = [_Point(block=number, arm=label, value=value, share=value / mean, words="") for number, value in told]
    points += [
        _Point(block=block.number, arm=label, value=None, share=1.0, words=tell("failed: {words}", words=failure.words))
        for block in one.blocks
        for failure in block.failures
        if failure.arm == arm
    ]
    return points


def _specification(one: Answer, points: list[_Point]) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    values = [
        {"block": point.block, "series": point.arm, "share": round(point.share, _DIGITS)}
        for point in points
        if point.value is not None
    ]
    failed = [{"block": point.block, "sign": f"{_FAILED} {point.arm}"} for point in points if point.value is None]
    x = alt.X(
        "block:Q",
        title=plain(tell("block, in the order of time")),
        scale=alt.Scale(domain=[0.5, len(one.blocks) + 0.5], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
    )
    y = alt.Y(
        "share:Q",
        title=plain(tell("share of the arm's own mean")),
        scale=alt.Scale(zero=False, nice=True, padding=6),
        axis=alt.Axis(labelExpr="format(100 * datum.value, '.3~g') + ' %'", tickCount=5),
    )
    layers = series_layers(values, [arm.label for arm in one.comparison.arms], x, y, thin=True)
    if failed:
        marks = alt.Chart(data(failed)).mark_text(baseline="bottom", dy=-2, color="var(--invalid)")
        layers.append(marks.encode(x=x, y=alt.value(_HEIGHT), text="sign:N"))
    specification: dict[str, Any] = alt.layer(*layers).properties(width="container", height=_HEIGHT).to_dict()
    return specification
