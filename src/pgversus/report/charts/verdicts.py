"""Charts of verdicts: ratios with intervals relative to no difference, and a map of two factors."""

import math
from collections.abc import Sequence
from typing import Any

from pgversus.answers.answer import StudyAnswer
from pgversus.report.charts.chart import (
    Chart,
    chart_name,
    data,
    layered,
    plain,
    ratio_domain,
    ratio_labels,
    ratio_ticks,
)
from pgversus.report.charts.theme import verdict_color
from pgversus.report.overview import RankedVerdict, worst_first
from pgversus.report.sentences import metric_text
from pgversus.report.sweeps import HeatCell, HeatMap
from pgversus.report.values import change_texts, uses_factors
from pgversus.report.verdicts import SIGNS, verdict_word
from pgversus.stats.analysis import Estimate
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import _

_MOST_ROWS = 60
_ROW_HEIGHT = 24
_SHAPES = {
    Verdict.FASTER: "triangle-up",
    Verdict.SLOWER: "triangle-down",
    Verdict.EQUIVALENT: "square",
    Verdict.UNDECIDED: "circle",
    Verdict.INVALID: "cross",
}


_Drawn = tuple[RankedVerdict, Estimate]
"""A verdict and its ratio."""


def forests(answer: StudyAnswer) -> list[Chart]:
    """Return a chart for each judged metric that has ratios."""
    placed = worst_first(answer)
    metrics = dict.fromkeys(one.answer.analysis.metric for one in placed)
    charts = (_forest([one for one in placed if one.answer.analysis.metric is m], m) for m in metrics)
    return [chart for chart in charts if chart is not None]


def _forest(placed: Sequence[RankedVerdict], metric: Metric) -> Chart | None:
    rows = [(one, ratio) for one in placed if (ratio := one.result.ratios.get(metric)) is not None]
    if not rows:
        return None
    shown, as_factors = rows[:_MOST_ROWS], uses_factors(one.answer for one in placed)
    margins = {one.answer.comparison.design.margin for one in placed}
    title = _("All verdicts: {metric} relative to the baseline", metric=metric_text(metric))
    if len(shown) < len(rows):
        title = _(
            "The first {shown} of {all} verdicts: {metric} relative to the baseline",
            shown=len(shown),
            all=len(rows),
            metric=metric_text(metric),
        )
    return Chart(
        name=chart_name("forest", metric.value),
        title=title,
        description=_(
            "One row per verdict, the worst first. The mark is the ratio of contender to baseline, and the line is "
            "its interval. The vertical line is zero difference, and the band around it is the margin."
        ),
        specification=_specification(shown, margins, metric),
        heads=(_("verdict on"), _("verdict"), _("change"), _("interval")),
        rows=tuple(
            (one.label, verdict_word(one.result.verdict), texts.value, texts.interval)
            for one, ratio in shown
            for texts in [change_texts(ratio, as_factors=as_factors)]
        ),
    )


def _specification(rows: Sequence[_Drawn], margins: set[float], metric: Metric) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    margin = margins.pop() if len(margins) == 1 else 0.0
    ratios = [ratio for _unused, ratio in rows]
    bounds = (end for ratio in ratios for end in (ratio.low, ratio.high))
    domain = ratio_domain([ratio.value for ratio in ratios], bounds, margin)
    ticks, scale = ratio_ticks(domain), alt.Scale(type="log", domain=list(domain), nice=False)
    words = metric_text(metric)
    x = alt.X(
        "ratio:Q",
        scale=scale,
        title=plain(
            _("{metric}, faster →", metric=words) if metric.more_is_better else _("← faster, {metric}", metric=words)
        ),
        axis=alt.Axis(values=ticks, labelExpr=ratio_labels(ticks), grid=True),
    )
    band = alt.Chart(data([{"from": 1 / (1 + margin), "to": 1 + margin}])).mark_rect(color="var(--band)", clip=True)
    none = alt.Chart(data([{"ratio": 1.0}])).mark_rule(color="var(--muted)", strokeDash=[4, 3]).encode(x=x)
    layers = [
        *([band.encode(x=alt.X("from:Q", scale=scale), x2="to:Q")] if margin else []),
        none,
        *_verdicts(rows, x, scale),
    ]
    return layered(layers, _ROW_HEIGHT * len(rows))


def _verdicts(rows: Sequence[_Drawn], x: Any, scale: Any) -> list[Any]:
    """Return layers of intervals with marks, whose shapes and colors show the verdict."""
    import altair as alt  # noqa: PLC0415 - as above

    values = [
        {
            "label": one.label,
            "verdict": verdict_word(one.result.verdict),
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
        }
        for one, ratio in rows
    ]
    y = alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelPadding=8, ticks=False, domain=False))
    kinds = list(dict.fromkeys(one.result.verdict for one, _unused in rows))
    words, colors = [verdict_word(kind) for kind in kinds], [verdict_color(kind) for kind in kinds]
    legend = alt.Legend(orient="top", title=None, symbolOpacity=1)
    color = alt.Color("verdict:N", scale=alt.Scale(domain=words, range=colors), legend=legend)
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=words, range=[_SHAPES[kind] for kind in kinds]), legend=legend
    )
    base = alt.Chart(data(values))
    return [
        base.mark_rule(strokeWidth=2, clip=True).encode(x=alt.X("low:Q", scale=scale), x2="high:Q", y=y, color=color),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, color=color, shape=shape),
    ]


_MAP_ROW_HEIGHT = 44
_FULL = math.log(2)
"""Log-ratio of full color: twice or half as fast."""
_FAINTEST, _STRONGEST = 0.12, 0.5


def heat_chart(found: HeatMap, number: int) -> Chart:
    """Return the chart of a heat map. number: number of the map in its study."""
    return Chart(
        name=chart_name("map", str(number)),
        title=found.title,
        description=_(
            "One cell per verdict, with the change and its interval. Blue and ▲ mean faster, orange and ▼ mean "
            "slower. A stronger color means a larger difference. A gray, dashed cell means that no difference was "
            "established."
        ),
        specification=_specification_of_map(found),
        heads=("", *found.columns),
        rows=tuple(
            (
                place or _("all"),
                *("" if cell is None else f"{_cell_text(cell)} {cell.interval}".strip() for cell in cells),
            )
            for place, cells in found.rows
        ),
    )


def _cell_text(cell: HeatCell) -> str:
    return f"{SIGNS[cell.verdict]} {cell.change}".strip()


def _strength(cell: HeatCell) -> float:
    if cell.verdict not in DIFFERENT:
        return 0.0
    return _FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, abs(cell.heat) / _FULL)


def _specification_of_map(found: HeatMap) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415 - takes a third of a second, and only charts need it

    rows = [place or _("all") for place, _unused in found.rows]
    values = [
        {
            "row": row,
            "column": column,
            "way": "faster" if cell.heat > 0 else "slower",
            "strength": _strength(cell),
            "sure": cell.verdict in DIFFERENT,
            "words": _cell_text(cell),
            "interval": cell.interval,
        }
        for row, (_unused, cells) in zip(rows, found.rows, strict=True)
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
    return layered([*cells, words, bounds], _MAP_ROW_HEIGHT * len(rows))
