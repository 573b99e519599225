"""Published figures next to the measured ones, and whether they were replicated."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.values import value_text
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.confidence import Interval, Verdict, judge
from pgversus.study.metrics import Metric
from pgversus.study.published import Figures, read_figures
from pgversus.text.translation import N_, _
from pgversus.text.units import RatioTexts, change, ratio_texts

NOTHING_PUBLISHED = N_("No published values for these contexts.")
"""Untranslated."""


class Replication(StrEnum):
    """Relation of a published ratio to a measured one."""

    REPLICATED = "replicated"
    """The published ratio lies in the measured interval, or both lie within the margin."""
    SAME_DIRECTION = "same direction"
    """The direction is the same, the size is not."""
    NOT_REPLICATED = "not replicated"
    """The directions differ, or there is a difference on one side only."""
    OPEN = "open"
    """The verdict is undecided, and the interval includes the published ratio or does not exist."""


_WORDS = {
    Replication.REPLICATED: N_("replicated"),
    Replication.SAME_DIRECTION: N_("same direction"),
    Replication.NOT_REPLICATED: N_("not replicated"),
    Replication.OPEN: N_("inconclusive"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRatio:
    """A published ratio of tps, or of an operation's time, next to the measured one."""

    context: str
    contender: str
    published: float
    measured: Estimate | None
    """None if not measured."""
    replication: Replication
    values: tuple[str, str]
    """The published figures themselves, of baseline and contender."""
    at: str
    """Scale of the published figures if it differs, as `scale 50`; otherwise empty."""


def published_ratios(answer: StudyAnswer) -> list[PublishedRatio]:
    """Return a row for each verdict with published figures, in the order of the study."""
    figures = read_figures(answer.study.published) if answer.study.published else ()
    found = (_compare_published(one, result, figures) for one in answer.answers for result in one.analysis.results)
    return [row for row in found if row is not None]


def published_cells(row: PublishedRatio) -> tuple[str, ...]:
    """Return the cells of a row: contender, published change, measured change, its interval, replication."""
    published, values = change(row.published), " / ".join(row.values)
    one = row.measured
    measured = RatioTexts("", "", "") if one is None else ratio_texts(one.value, one.low, one.high)
    return (
        row.contender,
        _("{change} ({levels} at {scale})", change=published, levels=values, scale=row.at)
        if row.at
        else _("{change} ({levels})", change=published, levels=values),
        measured.value,
        measured.interval,
        replication_word(row.replication),
    )


def replication_word(found: Replication) -> str:
    """Return the replication in the current language."""
    return _(_WORDS[found])


def replication(measured: Estimate | None, published: float, margin: float, metric: Metric) -> Replication:
    """Compare a published ratio of a metric with the measured one, whichever metric carries the verdict."""
    if measured is None or measured.low is None or measured.high is None:
        return Replication.OPEN
    rho = math.log1p(margin)
    verdict = judge(Interval(low=math.log(measured.low), high=math.log(measured.high)), metric, rho)
    is_inside = measured.low <= published <= measured.high
    if verdict is Verdict.UNDECIDED:
        return Replication.OPEN if is_inside else Replication.NOT_REPLICATED
    if is_inside or (verdict is Verdict.EQUIVALENT and abs(math.log(published)) < rho):
        return Replication.REPLICATED
    # A published ratio of 1 has no direction, so a measured difference does not replicate it.
    is_same = (published - 1) * (measured.value - 1) > 0 and verdict is not Verdict.EQUIVALENT
    return Replication.SAME_DIRECTION if is_same else Replication.NOT_REPLICATED


def _compare_published(one: Answer, result: ContenderResult, figures: Figures) -> PublishedRatio | None:
    comparison = one.comparison
    contender = comparison.arms[result.contender].label
    metric = comparison.workload.main_metric
    known = _context(one)
    for scale in _scales(figures, known.get("scale")):
        # Both at the same scale: figures for different data have no ratio.
        pair = [_figure(figures, known, label, scale, metric) for label in (comparison.baseline.label, contender)]
        if pair[0] is not None and pair[1] is not None:
            published, measured = pair[1] / pair[0], result.ratios.get(metric)
            return PublishedRatio(
                context=one.context.label,
                contender=contender,
                published=published,
                measured=measured,
                replication=replication(measured, published, comparison.design.margin, metric),
                values=(value_text(metric, pair[0]), value_text(metric, pair[1])),
                at="" if scale in (None, known.get("scale")) else f"scale {scale}",
            )
    return None


def _context(one: Answer) -> dict[str, str]:
    """Return the values that can identify a context: its levels, and properties that need not be factors.

    Settings are those of the baseline, which all arms share unless they are compared.
    """
    comparison = one.comparison
    scale = comparison.dataset.pgbench_scale
    return {
        **{setting.name: setting.value for setting in comparison.baseline.settings},
        **dict(comparison.dataset.variables),
        "workload": PurePath(comparison.workload.name).stem,
        "clients": str(comparison.workload.clients),
        "cache": comparison.cache.value,
        **({"scale": str(scale)} if scale is not None else {}),
        **dict(one.context.levels),
    }


def _scales(figures: Figures, own: str | None) -> Iterator[str | None]:
    """Yield the scales of the figures, the context's own first; a ratio may have been published for another one."""
    scales = dict.fromkeys(row.get("scale") for row in figures)
    yield from sorted(scales, key=lambda scale: scale != own)


def _figure(figures: Figures, known: Mapping[str, str], level: str, scale: str | None, metric: Metric) -> float | None:
    """Return the figure of a level in the given context; None if nothing was published at this scale."""
    rows = (row for row in figures if row["level"] == level and row.get("scale") == scale and _agrees(row, known))
    return next((float(row[metric.value]) for row in rows if metric.value in row), None)


def _agrees(row: Mapping[str, str], known: Mapping[str, str]) -> bool:
    return all(known[name] == value for name, value in row.items() if name in known and name != "scale")
