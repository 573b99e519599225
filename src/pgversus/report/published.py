"""Published figures beside the measured ones, and whether they were replicated."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.units import change, change_interval
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.verdict import Verdict
from pgversus.study.metrics import Metric
from pgversus.study.published import Figures, read_figures

NOTHING_PUBLISHED = "Nothing was published of these contexts."


class Replication(StrEnum):
    """How a published ratio stands to a measured one."""

    REPLICATED = "replicated"
    """The published ratio lies in the measured interval, or both lie inside the margin."""
    SAME_DIRECTION = "same direction"
    """The sign is the same, the size is not."""
    NOT_REPLICATED = "not replicated"
    OPEN = "open"
    """Nothing was decided here, and the interval holds the published ratio or does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """One published ratio beside the measured one; every number is text already."""

    context: str
    contender: str
    published: str
    measured: str
    interval: str
    replication: Replication


def published_rows(answer: StudyAnswer) -> list[PublishedRow]:
    """A row for each verdict of which there are published figures, in the order of the study."""
    figures = read_figures(answer.published) if answer.published else ()
    rows = (_row(one, result, figures) for one in answer.answers for result in one.analysis.results)
    return [row for row in rows if row is not None]


def replication(result: ContenderResult, published: float, margin: float) -> Replication:
    """How a published ratio of tps stands to what was measured."""
    ratio, log, rho = result.ratios.get(Metric.TPS), math.log(published), math.log1p(margin)
    if ratio is None or ratio.low is None or ratio.high is None:
        return Replication.OPEN
    if result.verdict is Verdict.UNDECIDED:
        return Replication.OPEN if ratio.low <= published <= ratio.high else Replication.NOT_REPLICATED
    if ratio.low <= published <= ratio.high or (result.verdict is Verdict.EQUIVALENT and abs(log) < rho):
        return Replication.REPLICATED
    is_same = (log > 0) == (ratio.value > 1) and result.verdict is not Verdict.EQUIVALENT
    return Replication.SAME_DIRECTION if is_same else Replication.NOT_REPLICATED


def _row(one: Answer, result: ContenderResult, figures: Figures) -> PublishedRow | None:
    comparison = one.comparison
    contender = comparison.arms[result.contender].label
    known = _context(one)
    base, other = (_figure(figures, known, label) for label in (comparison.baseline.label, contender))
    if base is None or other is None:
        return None
    ratio = result.ratios.get(Metric.TPS)
    return PublishedRow(
        context=one.context.label,
        contender=contender,
        published=change(other / base),
        measured=change(ratio.value) if ratio else "",
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
        replication=replication(result, other / base, comparison.design.margin),
    )


def _context(one: Answer) -> dict[str, str]:
    """What may identify a context: its levels, and what holds whether or not it is a factor."""
    comparison = one.comparison
    scale = comparison.dataset.pgbench_scale
    return {
        "workload": PurePath(comparison.workload.name).stem,
        "clients": str(comparison.workload.clients),
        "cache": comparison.cache.value,
        **({"scale": str(scale)} if scale is not None else {}),
        **dict(one.context.levels),
    }


def _figure(figures: Figures, known: Mapping[str, str], level: str) -> float | None:
    """The tps of a level in the context that is known; None where nothing was published of it.

    The size of the data is no condition, only a preference: a ratio may hold at another one.
    """
    found = [row for row in figures if row["level"] == level and _agrees(row, known)]
    found.sort(key=lambda row: row.get("scale") != known.get("scale"))
    return float(found[0]["tps"]) if found else None


def _agrees(row: Mapping[str, str], known: Mapping[str, str]) -> bool:
    return all(known[name] == value for name, value in row.items() if name in known and name != "scale")
