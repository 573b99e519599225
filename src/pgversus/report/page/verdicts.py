"""The answer in sentences with validity badges, and a row for each verdict with its interval drawn in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.answers.validity import Doubt, Validity, doubts, validity, validity_of_study
from pgversus.report.advice import NOTHING_TO_DO, is_unfinished, repairs, unfinished_groups
from pgversus.report.charts.chart import ratio_domain
from pgversus.report.overview import RankedVerdict
from pgversus.report.sentences import contender_sentence
from pgversus.report.size import size_advice
from pgversus.report.study_answer import unfinished_lines
from pgversus.report.values import dropped_trials, uses_factors
from pgversus.report.verdicts import VerdictRow, verdict_row
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import N_, _, listed, together
from pgversus.text.units import percent

_MOST_SENTENCES = 12
MOST_ROWS = 1000
"""Maximum number of rows of the verdict table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityBadge:
    """The reliability of a verdict, or of all of them; shown by word and symbol, not by color alone."""

    kind: str
    """valid, undecided, caution or invalid."""
    sign: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """The sentence on one contender, or on unfinished verdicts with the same next step."""

    place: str
    text: str
    next: str
    """The next step; empty if this verdict needs none."""
    light: ValidityBadge


@dataclass(frozen=True, slots=True, kw_only=True)
class Forest:
    """An interval drawn inside a cell, in percent of its width, clipped to the cell."""

    low: float
    high: float
    at: float
    none: float
    """Position of no difference."""
    margin_low: float
    margin_high: float
    has_interval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One line of the verdict table: the row that every report shows, and additions that only the page shows."""

    row: VerdictRow
    forest: Forest | None
    used: int
    """Number of trials of both arms."""
    dropped: int
    margin: str
    light: ValidityBadge


def validity_badge(answer: Answer, result: ContenderResult) -> ValidityBadge:
    """Return the badge of one verdict, with the reasons for caution."""
    badge = _badge(validity(answer, result))
    reasons = [_(_DOUBTS[doubt]) for doubt in doubts(answer, result)]
    return replace(badge, word=_("caution: {reasons}", reasons=listed(reasons))) if reasons else badge


def study_badge(answer: StudyAnswer) -> ValidityBadge:
    """Return the badge of the whole study."""
    return _badge(validity_of_study(answer))


_DOUBTS = {
    Doubt.CAVEATS: N_("see the caveats"),
    Doubt.WIDE_INTERVAL: N_("wide interval"),
    Doubt.FEW_BLOCKS: N_("few blocks"),
}


def _badge(found: Validity) -> ValidityBadge:
    kind, sign, word = _BADGES[found]
    return ValidityBadge(kind=kind, sign=sign, word=_(word))


_BADGES = {
    Validity.VALID: ("valid", "✔", N_("valid")),
    Validity.UNDECIDED: ("undecided", "?", N_("undecided")),
    Validity.PARTLY_UNDECIDED: ("undecided", "?", N_("partly undecided")),
    Validity.CAUTION: ("caution", "⚠", N_("caution")),
    Validity.INVALID: ("invalid", "✖", N_("invalid")),
}


def answer_lines(answer: StudyAnswer, placed: Sequence[RankedVerdict]) -> tuple[list[Sentence], int]:
    """Return a sentence for each of the first verdicts, and the number of verdicts without one.

    Several unfinished verdicts share the advice on the next step, and undecided ones also the sentence.
    """
    unfinished = [one for one in placed if is_unfinished(one.answer, one.result)]
    is_grouped = len(unfinished) > 1
    single = [one for one in placed if not (is_grouped and one.result.verdict is Verdict.UNDECIDED)]
    groups = unfinished_lines(answer, unfinished) if is_grouped else []
    as_factors = uses_factors(answer.answers)
    lines = [
        _sentence(one, is_grouped=is_grouped, is_only=len(placed) == 1, as_factors=as_factors)
        for one in single[:_MOST_SENTENCES]
    ]
    lines += [
        Sentence(
            place=group.names,
            text=group.count,
            next=group.advice,
            light=_badge(Validity.UNDECIDED if group.is_undecided else Validity.CAUTION),
        )
        for group in groups
    ]
    return lines, max(0, len(single) - _MOST_SENTENCES)


def _sentence(one: RankedVerdict, *, is_grouped: bool, is_only: bool, as_factors: bool) -> Sentence:
    judged = (one.answer, one.result)
    groups = [] if is_grouped else unfinished_groups([judged])
    # With several verdicts, the answer to the study contains this advice.
    size = size_advice([judged]) if is_only else ""
    steps = [*repairs([judged]), size, *(group.advice for group in groups)]
    is_done = is_only and validity(*judged) is Validity.VALID
    return Sentence(
        place=one.answer.context.label,
        text=contender_sentence(*judged, as_factors=as_factors),
        next=together(*steps) or (_(NOTHING_TO_DO) if is_done else ""),
        light=validity_badge(*judged),
    )


def verdict_lines(placed: Sequence[RankedVerdict]) -> list[VerdictLine]:
    """Return a line for each verdict, in order, at most MOST_ROWS."""
    shown = placed[:MOST_ROWS]
    domain, as_factors = _domain(shown), uses_factors(one.answer for one in placed)
    return [_line(one, domain, as_factors=as_factors) for one in shown]


def _domain(placed: Sequence[RankedVerdict]) -> tuple[float, float]:
    ratios = [ratio for one in placed if (ratio := one.result.ratios.get(one.answer.analysis.metric)) is not None]
    margin = max((one.answer.comparison.design.margin for one in placed), default=0.0)
    bounds = (end for ratio in ratios for end in (ratio.low, ratio.high))
    return ratio_domain([ratio.value for ratio in ratios], bounds, margin)


def _line(one: RankedVerdict, domain: tuple[float, float], *, as_factors: bool) -> VerdictLine:
    answer, result = one.answer, one.result
    margin, metric = answer.comparison.design.margin, answer.analysis.metric
    ratio = result.ratios.get(metric)
    return VerdictLine(
        row=verdict_row(answer, result, as_factors=as_factors),
        forest=_forest(ratio.value, ratio.low, ratio.high, margin, domain) if ratio else None,
        used=2 * result.blocks,
        dropped=dropped_trials(answer, result),
        margin=f"±{percent(margin)}",
        light=validity_badge(answer, result),
    )


def _forest(value: float, low: float | None, high: float | None, margin: float, domain: tuple[float, float]) -> Forest:
    def place(ratio: float) -> float:
        share = math.log(ratio / domain[0]) / math.log(domain[1] / domain[0])
        return round(100 * min(1.0, max(0.0, share)), 2)

    return Forest(
        low=place(low or value),
        high=place(high or value),
        at=place(value),
        none=place(1.0),
        margin_low=place(1 / (1 + margin)),
        margin_high=place(1 + margin),
        has_interval=low is not None and high is not None,
    )
