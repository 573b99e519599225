"""Published ratios next to the measured ones, and whether the two agree.

A published ratio has no interval, so it is compared with the measured interval:

    measured 95 % interval          it includes the published ratio    it does not
    missing                         cannot tell                        cannot tell
    excludes 1 (no difference)      agrees                             disagrees
    includes 1, exceeds the margin  cannot tell                        disagrees
    lies within the margin          agrees                             agrees if the published ratio lies
                                                                       within the margin, otherwise disagrees

All of this applies only if the published conditions equal the measured ones; otherwise the agreement is "cannot tell".
The data (scale, setup files), the load (clients) and both versions must be published and equal, and so must be every
factor of the study and every condition that the figures state. A confounded figure is marked next to the agreement in
any case.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.sentences import shortened
from pgversus.report.values import change_texts, value_text
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.study.comparison import BASELINE
from pgversus.study.published import CONFOUNDED, Figure, major_version, read_figures
from pgversus.text.translation import N_, _
from pgversus.text.units import has_bounds, ratio_texts, shows_factors

NOTHING_PUBLISHED = N_("No published values for these contexts.")
"""Untranslated."""


class PublishedAgreement(StrEnum):
    """Relation of a measured ratio to a published one, as in the table above."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    OPEN = "cannot tell"


_WORDS = {
    PublishedAgreement.AGREES: N_("agrees"),
    PublishedAgreement.DISAGREES: N_("disagrees"),
    PublishedAgreement.OPEN: N_("cannot tell"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferentCondition:
    """A condition of the published figures that differs from the measured one, or may differ from it."""

    name: str
    """As in the figures: scale, clients, version, the name of a setting or variable."""
    measured: str
    """Empty if unknown."""
    published: str
    """Empty if not published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRatio:
    """A published ratio of tps, or of an operation's time, next to the measured one."""

    context: str
    contender: str
    published: float
    measured: Estimate | None
    """None if not measured."""
    agreement: PublishedAgreement
    values: tuple[str, str]
    """The published figures themselves, of baseline and contender."""
    different: tuple[DifferentCondition, ...]
    confounded: str
    """Reason why the published ratio may have another cause, or CONFOUNDED without details; empty without one."""


def published_ratios(answer: StudyAnswer) -> list[PublishedRatio]:
    """Return a row for each verdict with published figures of its workload, in the order of the study."""
    figures = read_figures(answer.study.published) if answer.study.published else ()
    found = (_compare_published(one, result, figures) for one in answer.answers for result in one.analysis.results)
    return [row for row in found if row is not None]


def published_cells(rows: Sequence[PublishedRatio]) -> list[tuple[str, ...]]:
    """Return the cells of each row: context, contender, published change, measured change, its interval."""
    measured = (row.measured for row in rows if row.measured is not None)
    as_factors = any(shows_factors(row.published, None) for row in rows) or any(
        shows_factors(ratio.value, ratio.high) for ratio in measured
    )
    return [_cells(row, as_factors=as_factors) for row in rows]


def _cells(row: PublishedRatio, *, as_factors: bool) -> tuple[str, ...]:
    measured = change_texts(row.measured, as_factors=as_factors)
    published = ratio_texts(row.published, None, None, as_factors=as_factors)
    return (
        row.context,
        row.contender,
        _("{change} ({levels})", change=published.value, levels=" / ".join(row.values)),
        measured.value,
        measured.interval,
    )


def agreement_text(row: PublishedRatio) -> str:
    """Return the agreement in the current language, with the reason why it is open, and a mark if confounded."""
    return _marked(_open_text(row) or _(_WORDS[row.agreement]), _confounded_text(row))


def agreement_word(row: PublishedRatio) -> str:
    """Return agreement_text() without its reasons, for narrow tables; agreement_notes() returns the reasons."""
    return _marked(_(_WORDS[row.agreement]), _("confounded") if row.confounded else "")


def agreement_notes(rows: Iterable[PublishedRatio]) -> list[str]:
    """Return each reason once, with its rows."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for reason in filter(None, (_open_text(row), _confounded_text(row))):
            found.setdefault(reason, []).append(f"{row.context} {row.contender}".strip())
    return [_("{reason} [{rows}]", reason=reason, rows=shortened(places)) for reason, places in found.items()]


def agreement(measured: Estimate | None, published: float, margin: float) -> PublishedAgreement:
    """Compare a published ratio with the measured one under the same conditions."""
    bounds = _bounds(measured)
    if bounds is None:
        return PublishedAgreement.OPEN
    low, high = bounds
    is_inside = low <= published <= high
    if _lies_within(margin, low) and _lies_within(margin, high):
        return (
            PublishedAgreement.AGREES if is_inside or _lies_within(margin, published) else PublishedAgreement.DISAGREES
        )
    if not is_inside:
        return PublishedAgreement.DISAGREES
    return PublishedAgreement.OPEN if low <= 1 <= high else PublishedAgreement.AGREES


def _lies_within(margin: float, ratio: float) -> bool:
    return abs(math.log(ratio)) < math.log1p(margin)


def _bounds(measured: Estimate | None) -> tuple[float, float] | None:
    """Return the interval; None for no interval or an uninformative one, which reports do not show."""
    if measured is None or measured.low is None or measured.high is None:
        return None
    return (measured.low, measured.high) if has_bounds(measured.low, measured.high) else None


def _marked(text: str, mark: str) -> str:
    return _("{agreement} ({mark})", agreement=text, mark=mark) if mark else text


def _confounded_text(row: PublishedRatio) -> str:
    """Return the mark of a confounded figure; empty for any other."""
    if row.confounded in ("", CONFOUNDED):
        return _("confounded") if row.confounded else ""
    return _("confounded: {reason}", reason=row.confounded)


def _open_text(row: PublishedRatio) -> str:
    """Return why a row cannot tell; empty if it can."""
    if row.agreement is not PublishedAgreement.OPEN:
        return ""
    if row.different:
        reason = "; ".join(map(_condition_text, row.different))
    elif _bounds(row.measured) is None:
        reason = _("no interval")
    else:
        reason = _("the interval includes both the published ratio and zero difference")
    return _("cannot tell: {reason}", reason=reason)


def _condition_text(one: DifferentCondition) -> str:
    if not one.published:
        return _("{name} {value} here, not published", name=one.name, value=one.measured)
    if not one.measured:
        return _("{name} {value} published, unknown here", name=one.name, value=one.published)
    return _("{name} {value} here, {published} published", name=one.name, value=one.measured, published=one.published)


def _compare_published(one: Answer, result: ContenderResult, figures: tuple[Figure, ...]) -> PublishedRatio | None:
    """Compare a verdict with the figures whose conditions differ least; None without figures of its workload."""
    pairs = [(pair, _different(one, result.contender, pair)) for pair in _pairs(one, result.contender, figures)]
    if not pairs:
        return None
    (old, new), different = min(pairs, key=lambda found: len(found[1]))
    metric = one.comparison.workload.main_metric
    published, measured = new.values[metric.value] / old.values[metric.value], result.ratios.get(metric)
    return PublishedRatio(
        context=one.context.label,
        contender=one.comparison.arms[result.contender].label,
        published=published,
        measured=measured,
        agreement=PublishedAgreement.OPEN
        if different
        else agreement(measured, published, one.comparison.design.margin),
        values=(value_text(metric, old.values[metric.value]), value_text(metric, new.values[metric.value])),
        different=different,
        confounded="; ".join(dict.fromkeys(filter(None, (old.confounded, new.confounded)))),
    )


def _pairs(one: Answer, contender: int, figures: tuple[Figure, ...]) -> Iterator[tuple[Figure, Figure]]:
    """Yield figures of both arms under equal conditions: figures for different data have no ratio."""
    workload, metric = _measured_conditions(one)["workload"], one.comparison.workload.main_metric
    fitting = [
        figure
        for figure in figures
        if figure.conditions.get("workload", workload) == workload and metric.value in figure.values
    ]
    contenders = [figure for figure in fitting if _is_of(figure, one, contender)]
    for old in fitting:
        if _is_of(old, one, BASELINE):
            others = (new for new in contenders if new.level != old.level and new.conditions == old.conditions)
            yield from ((old, new) for new in others)


def _is_of(figure: Figure, one: Answer, arm: int) -> bool:
    """Return whether a figure is for the level of an arm, or for another minor version of the same major."""
    if figure.level == one.comparison.arms[arm].label:
        return True
    major = major_version(figure.level)
    return major is not None and "server" in one.comparison.factors and major == major_version(_version(one, arm))


def _version(one: Answer, arm: int) -> str:
    """Return the version of an arm without its package: of `17.8 (Debian 17.8-1)`, 17.8."""
    return one.arms[arm].version.partition(" ")[0]


def _different(one: Answer, contender: int, pair: tuple[Figure, Figure]) -> tuple[DifferentCondition, ...]:
    measured, published = _measured_conditions(one), pair[BASELINE].conditions
    found = [
        DifferentCondition(name=name, measured=measured.get(name, ""), published=published.get(name, ""))
        for name in dict.fromkeys((*published, *_required(one, published)))
    ]
    found += [
        DifferentCondition(name="version", measured=_version(one, arm), published=figure.version)
        for arm, figure in zip((BASELINE, contender), pair, strict=True)
    ]
    return tuple(condition for condition in dict.fromkeys(found) if _differs(condition))


def _differs(condition: DifferentCondition) -> bool:
    return not condition.published or condition.published != condition.measured


_STATED_OTHERWISE = frozenset({"workload", "load", "dataset", "server"})
"""Factors whose levels are names within a study: names of its workloads, loads, datasets and servers."""


def _required(one: Answer, published: Mapping[str, str]) -> Iterator[str]:
    """Yield the conditions that must be published: the size of the data, the load, and other factors of the study."""
    if one.comparison.dataset.pgbench_scale is not None:
        yield "scale"
    if one.comparison.dataset.files:
        yield "data"
    if not one.comparison.workload.runs_once and "load" not in published:
        yield "clients"
    yield from (name for name, _level in one.context.levels if name not in _STATED_OTHERWISE)


def _measured_conditions(one: Answer) -> dict[str, str]:
    """Return the levels of a context, and properties that need not be factors.

    Settings are those of the baseline, which all arms share unless they are compared.
    """
    comparison = one.comparison
    scale, files = comparison.dataset.pgbench_scale, comparison.dataset.files
    data = ", ".join(PurePath(file).name for file in files)
    return {
        **{setting.name: setting.value for setting in comparison.baseline.settings},
        **dict(comparison.dataset.variables),
        **dict(comparison.workload.variables),
        "workload": PurePath(comparison.workload.name).stem,
        "clients": str(comparison.workload.clients),
        "threads": str(comparison.workload.threads),
        "cache": comparison.cache.value,
        **({"scale": str(scale)} if scale is not None else {}),
        **({"data": data} if data else {}),
        **dict(one.context.levels),
    }
