"""Published figures beside the measured ones, and whether they were replicated."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.values import level_text
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.confidence import Interval, Verdict, judge
from pgversus.study.metrics import Metric
from pgversus.study.published import Figures, read_figures
from pgversus.study.workload import Operation
from pgversus.text.translation import N_, _
from pgversus.text.units import change, change_interval

NOTHING_PUBLISHED = N_("No published values for these contexts.")
"""To be told."""


class Replication(StrEnum):
    """How a published ratio stands to a measured one."""

    REPLICATED = "replicated"
    """The published ratio lies in the measured interval, or both lie inside the margin."""
    SAME_DIRECTION = "same direction"
    """The sign is the same, the size is not."""
    NOT_REPLICATED = "not replicated"
    """The signs differ, or there is a difference on one side only."""
    OPEN = "open"
    """Nothing was decided here, and the interval holds the published ratio or does not exist."""


_WORDS = {
    Replication.REPLICATED: N_("replicated"),
    Replication.SAME_DIRECTION: N_("same direction"),
    Replication.NOT_REPLICATED: N_("not replicated"),
    Replication.OPEN: N_("inconclusive"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRatio:
    """A published ratio of tps, or of an operation's time, beside the measured one."""

    context: str
    contender: str
    published: float
    measured: Estimate | None
    """None where nothing was measured."""
    replication: Replication
    levels: tuple[str, str]
    """The published figures themselves, of baseline and contender."""
    at: str
    """Where the published figures are of other data: `scale 50`; else empty."""


def published_ratios(answer: StudyAnswer) -> list[PublishedRatio]:
    """One for each verdict of which there are published figures, in the order of the study."""
    figures = read_figures(answer.study.published) if answer.study.published else ()
    found = (_held_against(one, result, figures) for one in answer.answers for result in one.analysis.results)
    return [row for row in found if row is not None]


def published_cells(row: PublishedRatio) -> tuple[str, ...]:
    """The row in words: contender, published change, measured change, its interval, replication."""
    measured, published, levels = row.measured, change(row.published), " / ".join(row.levels)
    return (
        row.contender,
        _("{change} ({levels} at {scale})", change=published, levels=levels, scale=row.at)
        if row.at
        else _("{change} ({levels})", change=published, levels=levels),
        change(measured.value) if measured else "",
        change_interval(measured.low, measured.high) if measured else "",
        replication_word(row.replication),
    )


def replication_word(found: Replication) -> str:
    """How a published ratio stands to a measured one, as people are told it."""
    return _(_WORDS[found])


def replication(measured: Estimate | None, published: float, margin: float, metric: Metric) -> Replication:
    """How a published ratio of a metric stands to what was measured of it, whichever metric carries the verdict."""
    if measured is None or measured.low is None or measured.high is None:
        return Replication.OPEN
    rho = math.log1p(margin)
    verdict = judge(Interval(low=math.log(measured.low), high=math.log(measured.high)), metric, rho)
    is_inside = measured.low <= published <= measured.high
    if verdict is Verdict.UNDECIDED:
        return Replication.OPEN if is_inside else Replication.NOT_REPLICATED
    if is_inside or (verdict is Verdict.EQUIVALENT and abs(math.log(published)) < rho):
        return Replication.REPLICATED
    # Of no difference published there is no direction: one that was decided here does not replicate it.
    is_same = (published - 1) * (measured.value - 1) > 0 and verdict is not Verdict.EQUIVALENT
    return Replication.SAME_DIRECTION if is_same else Replication.NOT_REPLICATED


def _held_against(one: Answer, result: ContenderResult, figures: Figures) -> PublishedRatio | None:
    comparison = one.comparison
    contender = comparison.arms[result.contender].label
    metric = Metric.TIME if isinstance(comparison.workload, Operation) else Metric.TPS
    known = _context(one)
    for scale in _scales(figures, known.get("scale")):
        # Both at one scale: figures of different data have no ratio.
        pair = [_figure(figures, known, label, scale, metric) for label in (comparison.baseline.label, contender)]
        if pair[0] is not None and pair[1] is not None:
            published, measured = pair[1] / pair[0], result.ratios.get(metric)
            return PublishedRatio(
                context=one.context.label,
                contender=contender,
                published=published,
                measured=measured,
                replication=replication(measured, published, comparison.design.margin, metric),
                levels=(level_text(metric, pair[0]), level_text(metric, pair[1])),
                at="" if scale in (None, known.get("scale")) else f"scale {scale}",
            )
    return None


def _context(one: Answer) -> dict[str, str]:
    """What may identify a context: its levels, and what holds whether or not it is a factor.

    A setting as the baseline has it, which is every arm's unless it is what is compared.
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
    """The sizes of data that figures are of, the context's own first: a ratio may hold at another one."""
    scales = dict.fromkeys(row.get("scale") for row in figures)
    yield from sorted(scales, key=lambda scale: scale != own)


def _figure(figures: Figures, known: Mapping[str, str], level: str, scale: str | None, metric: Metric) -> float | None:
    """The figure of a level in the context that is known; None where nothing was published of it at this scale."""
    rows = (row for row in figures if row["level"] == level and row.get("scale") == scale and _agrees(row, known))
    return next((float(row[metric.value]) for row in rows if metric.value in row), None)


def _agrees(row: Mapping[str, str], known: Mapping[str, str]) -> bool:
    return all(known[name] == value for name, value in row.items() if name in known and name != "scale")
