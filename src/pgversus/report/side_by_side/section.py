"""Texts of two results side by side: every renderer shows these, in this order."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pgversus.report.sentences import metric_text
from pgversus.report.side_by_side.agreement import (
    Agreement,
    DiscrepancyKind,
    NotComparable,
    Quotient,
    ResultSource,
    Side,
    SideBySide,
    SideBySideRow,
)
from pgversus.report.values import value_text
from pgversus.report.verdicts import MARKS, verdict_word
from pgversus.stats.confidence import Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import N_, _, listed, ngettext
from pgversus.text.units import RatioTexts, ratio_texts

_AROUND = {
    DiscrepancyKind.BASELINE: N_("baselines"),
    DiscrepancyKind.CONTENDER: N_("contenders"),
    DiscrepancyKind.SETTINGS: N_("settings"),
    DiscrepancyKind.DATA: N_("rows"),
    DiscrepancyKind.STATISTICS: N_("statistics"),
    DiscrepancyKind.HOST: N_("host"),
    DiscrepancyKind.DAYS: N_("days"),
    DiscrepancyKind.CLIENT: N_("client"),
    DiscrepancyKind.WINDOWS: N_("windows"),
    DiscrepancyKind.MARGIN: N_("margin"),
    DiscrepancyKind.CHECK: N_("CHECK"),
}
_COUNTED: Mapping[Agreement, Callable[[int], str]] = {
    Agreement.AGREE: lambda number: ngettext("{number} pair agrees", "{number} pairs agree", number),
    Agreement.LARGER_IN_A: lambda number: ngettext(
        "{number} pair has a larger effect in A", "{number} pairs have a larger effect in A", number
    ),
    Agreement.LARGER_IN_B: lambda number: ngettext(
        "{number} pair has a larger effect in B", "{number} pairs have a larger effect in B", number
    ),
    Agreement.HIGHER_IN_A: lambda number: ngettext(
        "{number} pair has a higher ratio in A", "{number} pairs have a higher ratio in A", number
    ),
    Agreement.HIGHER_IN_B: lambda number: ngettext(
        "{number} pair has a higher ratio in B", "{number} pairs have a higher ratio in B", number
    ),
    Agreement.OPPOSITE: lambda number: ngettext(
        "{number} pair has opposite effects", "{number} pairs have opposite effects", number
    ),
    Agreement.OPEN: lambda number: ngettext("{number} pair is inconclusive", "{number} pairs are inconclusive", number),
    Agreement.NOT_JUDGED: lambda number: ngettext(
        "{number} pair is not judged", "{number} pairs are not judged", number
    ),
}
"""Texts for the number of pairs of each kind, in the order shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideText:
    """The texts of one verdict."""

    baseline_text: str
    contender_text: str
    change: str
    """With a mark if no difference is claimed; empty without a ratio."""
    interval: str
    verdict: Verdict
    verdict_word: str
    blocks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowText:
    """The texts of two verdicts and of their agreement."""

    place: str
    """The context and the contender, each followed by its name in B if that differs."""
    metric: str
    a: SideText
    b: SideText
    agreement: Agreement
    words: str
    quotient: str
    """B's ratio divided by A's, with its interval; empty if not judged."""
    around: str
    """The kinds of differences: `host, days`."""
    notes: list[str]
    """The differences in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySideSection:
    """All texts of a comparison of two results."""

    title: str
    sources: list[tuple[str, str]]
    """A and B, each with its description."""
    sentences: list[str]
    """Numbers of agreements, and how to interpret them."""
    rows: list[RowText]
    not_comparable: list[tuple[str, str]]
    """A context or contender without a counterpart, and the reason."""

    @property
    def notes(self) -> list[str]:
        """Notes of all rows, each once, with the rows that it concerns."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            for note in row.notes:
                found.setdefault(note, []).append(row.place)
        return [
            note if len(places) == len(self.rows) else _("{note} [{places}]", note=note, places=listed(places))
            for note, places in found.items()
        ]


def side_by_side_section(found: SideBySide) -> SideBySideSection:
    """Return the texts of two results side by side."""
    return SideBySideSection(
        title=_("A and B side by side"),
        sources=[("A", _source(found.a)), ("B", _source(found.b))],
        sentences=list(_sentences(found)),
        rows=[_row(row) for row in found.rows],
        not_comparable=[_lone(one) for one in found.not_comparable],
    )


def _source(source: ResultSource) -> str:
    return listed(part for part in (source.title, source.results, source.days, source.host) if part)


def _sentences(found: SideBySide) -> Iterator[str]:
    counted = Counter(row.agreement for row in found.rows)
    parts = [phrase(counted[kind]) for kind, phrase in _COUNTED.items() if counted[kind]]
    if parts:
        yield _("{counts}.", counts=listed(parts))
        yield _(
            "Do not compare the values of two runs directly: they also depend on hosts, days and settings. Only "
            "ratios are compared, and only where the baselines are the same."
        )
        yield _(
            "Two ratios agree if the interval of their quotient lies within the margin. They differ if it does not "
            "include 1. The chance that any of these statements is wrong is at most 1 in 20."
        )
    else:
        yield _("A and B contain no comparable results.")
    if found.not_comparable:
        yield ngettext(
            "{number} context or contender has no counterpart. The reason is given below.",
            "{number} contexts or contenders have no counterpart. The reasons are given below.",
            len(found.not_comparable),
        )


def _row(row: SideBySideRow) -> RowText:
    return RowText(
        place=_place(row),
        metric=metric_text(row.metric),
        a=_side(row.a, row.metric),
        b=_side(row.b, row.metric),
        agreement=row.agreement,
        words=row.words,
        quotient=_quotient(row.quotient),
        around=listed(_(_AROUND[note.kind]) for note in row.notes),
        notes=[note.words for note in row.notes],
    )


def _place(row: SideBySideRow) -> str:
    a, b = row.a, row.b
    place = a.context if a.context == b.context or not b.context else f"{a.context} / {b.context}".strip(" /")
    pair = a.contender if a.contender == b.contender else f"{a.contender} / {b.contender}"
    return f"{place}: {pair}" if place else pair


def _side(side: Side, metric: Metric) -> SideText:
    baseline, contender = side.baseline_value, side.contender_value
    shown = RatioTexts("", "", "") if side.ratio is None else ratio_texts(side.ratio, side.low, side.high)
    return SideText(
        baseline_text="" if baseline is None else value_text(metric, baseline),
        contender_text="" if contender is None else value_text(metric, contender),
        change=f"{MARKS.get(side.verdict, '')} {shown.value}".strip(),
        interval=shown.interval,
        verdict=side.verdict,
        verdict_word=verdict_word(side.verdict),
        blocks=str(side.blocks),
    )


def _quotient(found: Quotient | None) -> str:
    if found is None:
        return ""
    shown = ratio_texts(found.value, found.low, found.high)
    return f"{shown.value} {shown.interval}".strip()


def _lone(one: NotComparable) -> tuple[str, str]:
    reason = listed(words for _unused, words in one.reasons)
    if one.a is None or one.b is None:
        return one.a or one.b or "", reason
    place = one.a if one.a == one.b else _("{a} in A, {b} in B", a=one.a, b=one.b)
    return place, reason
