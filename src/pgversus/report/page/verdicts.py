"""The answer in sentences with validity badges, and a row for each verdict with its interval drawn in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.charts.chart import ratio_domain
from pgversus.report.charts.theme import SIGNS
from pgversus.report.overview import RankedVerdict
from pgversus.report.sentences import contender_sentence, next_step
from pgversus.report.values import dropped_trials, medians, value_text
from pgversus.report.verdicts import VerdictRow, verdict_row
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import _
from pgversus.text.units import percent

_MOST_SENTENCES = 12
MOST_ROWS = 1000
"""Rows of the verdict table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityBadge:
    """The reliability of a verdict, or of all of them; shown by word and symbol, not by colour alone."""

    kind: str
    """valid, undecided, caution or invalid."""
    sign: str
    word: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """The sentence on one contender."""

    place: str
    text: str
    next: str
    """The next step; empty if the sentence includes it."""
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
    """One line of the verdict table: the row that every report shows, and what only the page has."""

    row: VerdictRow
    sign: str
    forest: Forest | None
    medians: tuple[str, str]
    used: int
    """Number of trials of both arms."""
    dropped: int
    margin: str
    light: ValidityBadge


def validity_badge(answer: Answer, result: ContenderResult) -> ValidityBadge:
    """Return the badge of one verdict."""
    if result.verdict is Verdict.INVALID:
        return _badges()["invalid"]
    if answer.needs_check(result):
        return _badges()["caution"]
    return _badges()["undecided" if result.verdict is Verdict.UNDECIDED else "valid"]


def study_badge(answer: StudyAnswer) -> ValidityBadge:
    """Return the badge of the whole study; invalid if nothing was measured."""
    kinds = {validity_badge(one, result).kind for one in answer.answers for result in one.analysis.results}
    if not kinds:
        return _badges()["invalid"]
    if any(one.failed for one in answer.unanswered) or any(one.failure for one in answer.answers):
        kinds.add("caution")
    if len(kinds) == 1:
        return _badges()[kinds.pop()]
    # One invalid contender does not invalidate the others.
    return _badges()["partly" if kinds == {"valid", "undecided"} else "caution"]


def _badges() -> dict[str, ValidityBadge]:
    return {
        "valid": ValidityBadge(kind="valid", sign="✔", word=_("valid")),
        "undecided": ValidityBadge(kind="undecided", sign="?", word=_("undecided")),
        "partly": ValidityBadge(kind="undecided", sign="?", word=_("partly undecided")),
        "caution": ValidityBadge(kind="caution", sign="⚠", word=_("with caution")),
        "invalid": ValidityBadge(kind="invalid", sign="✖", word=_("invalid")),
    }


def answer_lines(placed: Sequence[RankedVerdict]) -> tuple[list[Sentence], int]:
    """Return a sentence for each of the first verdicts, and the number of verdicts without one."""
    shown = [
        Sentence(
            place=one.answer.context.label,
            text=contender_sentence(one.answer, one.result),
            next=next_step(one.answer, one.result),
            light=validity_badge(one.answer, one.result),
        )
        for one in placed[:_MOST_SENTENCES]
    ]
    return shown, len(placed) - len(shown)


def verdict_lines(placed: Sequence[RankedVerdict]) -> list[VerdictLine]:
    """Return a line for each verdict, in order, at most MOST_ROWS."""
    shown = placed[:MOST_ROWS]
    domain = _domain(shown)
    return [_line(one, domain) for one in shown]


def _domain(placed: Sequence[RankedVerdict]) -> tuple[float, float]:
    ratios = [ratio for one in placed if (ratio := one.result.ratios.get(one.answer.analysis.metric)) is not None]
    margin = max((one.answer.comparison.design.margin for one in placed), default=0.0)
    bounds = (end for ratio in ratios for end in (ratio.low, ratio.high))
    return ratio_domain([ratio.value for ratio in ratios], bounds, margin)


def _line(one: RankedVerdict, domain: tuple[float, float]) -> VerdictLine:
    answer, result = one.answer, one.result
    margin, metric = answer.comparison.design.margin, answer.analysis.metric
    ratio, middle = result.ratios.get(metric), medians(answer, result)
    return VerdictLine(
        row=verdict_row(answer, result),
        sign=SIGNS[result.verdict],
        forest=_forest(ratio.value, ratio.low, ratio.high, margin, domain) if ratio else None,
        medians=(value_text(metric, middle[0]), value_text(metric, middle[1])) if middle else ("", ""),
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
