"""Figures of an article: ratios with intervals and verdicts, and the layout of the tables of its cases.

The layout follows from the content of a study, never from its name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.markdown import escaped, paragraph, table
from pgversus.report.published import PublishedRatio, agreement_text, published_ratios
from pgversus.report.sentences import interval_heading, metric_text
from pgversus.report.sweeps import Sweep, sweeps
from pgversus.report.verdicts import verdict_in_table
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import Metric
from pgversus.study.workload import Workload
from pgversus.text.translation import _, ngettext
from pgversus.text.units import has_bounds, significant

_MOST_ROWS = 200

Published = dict[tuple[str, str], PublishedRatio]
"""By context and contender."""
NOTHING = ("",) * 3


def published_by_verdict(answer: StudyAnswer) -> Published:
    """Return the published ratios by context and contender."""
    return {(row.context, row.contender): row for row in published_ratios(answer)}


def ratio_heads(metric: Metric) -> tuple[str, ...]:
    """Return the headings of ratio_cells()."""
    return _("ratio of {metric}", metric=metric_text(metric)), interval_heading(), _("verdict")


def ratio_cells(one: Answer, arm: int) -> tuple[str, str, str]:
    """Return the ratio of the judged metric, its interval, and the verdict; only "baseline" for the baseline."""
    if arm == BASELINE:
        return "", "", _("baseline")
    result = one.analysis.result_of(arm)
    ratio = result.ratios.get(one.analysis.metric)
    return ratio_text(ratio), interval_text(ratio), _verdict(one, result)


def of_each_metric(answers: Iterable[Answer]) -> dict[Metric, list[Answer]]:
    """Group answers by judged metric, because ratios of different metrics never share a column."""
    found: dict[Metric, list[Answer]] = {}
    for one in answers:
        found.setdefault(one.analysis.metric, []).append(one)
    return found


def published_heads() -> tuple[str, ...]:
    """Return the headings of published_columns()."""
    return _("published"), _("published ratio"), _("agreement")


def published_columns(known: Published, one: Answer, arm: int) -> tuple[str, str, str]:
    """Return the published figure of an arm, its ratio, and the agreement; empty if nothing was published."""
    place, label = one.context.label, one.comparison.arms[arm].label
    if arm == BASELINE:
        values = (row.values[0] for (where, _unused), row in known.items() if where == place)
        return next(values, ""), "", ""
    row = known.get((place, label))
    if row is None:
        return NOTHING
    return row.values[1], significant(row.published), agreement_text(row)


def ratio_text(ratio: Estimate | None) -> str:
    """Return `1.03`; empty for None."""
    return significant(ratio.value) if ratio is not None else ""


def interval_text(ratio: Estimate | None, scale: float = 1.0, unit: str = "") -> str:
    """Return `[1.01, 1.05]`; empty for no interval or an uninformative one. scale, unit: for percentages."""
    if ratio is None or ratio.low is None or ratio.high is None or not has_bounds(ratio.low, ratio.high):
        return ""
    return f"[{significant(scale * ratio.low)}{unit}, {significant(scale * ratio.high)}{unit}]"


def capped(heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int) -> str:
    """Return a table of the first rows, with a note on where to find the rest. heads: plain text."""
    shown = table([escaped(head) for head in heads], rows[:_MOST_ROWS], names=names)
    rest = len(rows) - _MOST_ROWS
    if rest <= 0:
        return shown
    more = ngettext(
        "{number} more row. See pgversus report --format csv.",
        "{number} more rows. See pgversus report --format csv.",
        rest,
    )
    return f"{shown}\n\n{paragraph(more)}"


def _verdict(one: Answer, result: ContenderResult) -> str:
    word = verdict_in_table(one, result)
    return _("{verdict}, CHECK", verdict=word) if one.needs_check(result) else word


_PAIR = 2


class Form(StrEnum):
    """Layout of the tables of a case."""

    OPERATION = "operation"
    """Mean and minimum of the times of each cell, difference and ratio."""
    AMOUNTS = "amounts"
    """The metric over numeric levels, for each combination of the other factors."""
    PAIR = "pair"
    """Two arms under one load: throughput, mean latency, ratio."""
    LOADS = "loads"
    """Several arms or loads: transactions, throughput, and latencies from the shortest to the longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload name and every context that runs it."""

    name: str
    answers: tuple[Answer, ...]
    form: Form
    sweeps: tuple[Sweep, ...]
    """Only for the form AMOUNTS; otherwise empty."""
    factors: tuple[str, ...]
    """Factors that vary between its contexts, in the order of the study."""

    @property
    def workloads(self) -> Iterator[Workload]:
        """Each workload once; several have the same name if workloads are compared, or loads differ."""
        seen = []
        for one in self.answers:
            for arm in one.comparison.arms:
                if arm.workload not in seen:
                    seen.append(arm.workload)
                    yield arm.workload


def cases(answer: StudyAnswer) -> list[Case]:
    """Return the cases in the order of the study."""
    grouped: dict[str, list[Answer]] = {}
    for one in answer.answers:
        grouped.setdefault(_name(one), []).append(one)
    found = sweeps(answer)
    return [_case(name, tuple(ones), found) for name, ones in grouped.items()]


def level(one: Answer, factor: str) -> str:
    """Return the level of a factor that is fixed in a context; empty if the context has no such factor."""
    return dict(one.context.levels).get(factor, "")


def _name(one: Answer) -> str:
    return level(one, "workload") or one.comparison.workload.short_name


def _case(name: str, answers: tuple[Answer, ...], found: list[Sweep]) -> Case:
    own = tuple(sweep for sweep in found if sweep.title in (name, ""))
    return Case(name=name, answers=answers, form=_form(answers, own), sweeps=own, factors=_varied(answers))


def _varied(answers: tuple[Answer, ...]) -> tuple[str, ...]:
    levels: dict[str, set[str]] = {}
    for one in answers:
        for name, found in one.context.levels:
            levels.setdefault(name, set()).add(found)
    return tuple(name for name, found in levels.items() if name != "workload" and len(found) > 1)


def _form(answers: tuple[Answer, ...], own: tuple[Sweep, ...]) -> Form:
    if any(one.comparison.workload.runs_once for one in answers):
        return Form.OPERATION
    if own:
        return Form.AMOUNTS
    is_pair = len(answers) == 1 and len(answers[0].comparison.arms) == _PAIR
    return Form.PAIR if is_pair else Form.LOADS
