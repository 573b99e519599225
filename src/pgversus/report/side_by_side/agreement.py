"""Whether two ratios agree, by their intervals.

The two runs are independent, so the half-width of the quotient's interval on the log scale is the root of the sum of
the squares of both half-widths. Each half-width already accounts for repeated checks and for the verdicts that share
the error of its study, and so does the combined one (docs/side-by-side.md).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from pgversus.stats.confidence import FARTHEST, Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import N_, _
from pgversus.text.units import percent


class MismatchReason(StrEnum):
    """Why two verdicts do not answer the same question."""

    WORKLOAD = "workload"
    DATASET = "dataset"
    METRIC = "metric"
    CACHE = "cache"
    LEVELS = "levels"
    """A different setting or server is fixed."""
    COMPARED = "compared"
    """Different factors are compared, or the contenders cannot be matched."""
    NOT_MEASURED = "not-measured"
    ONLY_HERE = "only-here"


class DiscrepancyKind(StrEnum):
    """Differences between two answers to the same question."""

    BASELINE = "baseline"
    """Builds or levels of the baselines; without a common baseline the ratios are not judged."""
    CONTENDER = "contender"
    SETTINGS = "settings"
    DATA = "data"
    STATISTICS = "statistics"
    HOST = "host"
    DAYS = "days"
    CLIENT = "client"
    WINDOWS = "windows"
    MARGIN = "margin"
    CHECK = "check"
    """A caveat of one of the two says that its number may be misleading."""


class Agreement(StrEnum):
    """Relation of two ratios."""

    AGREE = "agree"
    LARGER_IN_A = "larger-in-a"
    LARGER_IN_B = "larger-in-b"
    HIGHER_IN_A = "higher-in-a"
    """The ratios lie on opposite sides of 1, but not both are decided, so their sizes are not compared."""
    HIGHER_IN_B = "higher-in-b"
    OPPOSITE = "opposite"
    """Faster in one, slower in the other."""
    OPEN = "open"
    """The intervals show neither a difference nor agreement."""
    NOT_JUDGED = "not-judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One verdict of one of the two results."""

    context: str
    baseline: str
    contender: str
    verdict: Verdict
    ratio: float | None
    """Contender / baseline."""
    low: float | None
    high: float | None
    baseline_value: float | None
    """In the base unit; not comparable with the other side."""
    contender_value: float | None
    margin: float
    blocks: int
    needs_check: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A difference between the two sides."""

    kind: DiscrepancyKind
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """The ratio of B divided by that of A: 1 if both are equal."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySideRow:
    """Two verdicts that answer the same question."""

    a: Side
    b: Side
    metric: Metric
    by_role: bool
    """Whether they are matched by role only, because their names differ."""
    agreement: Agreement
    words: str
    """The agreement as a sentence, or why it is not judged."""
    quotient: Quotient | None
    """None if not judged, or if an interval is missing."""
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComparable:
    """A context or contender without a counterpart."""

    a: str | None
    """The name in A, followed by the contender if only that one is concerned; None if it is only in B."""
    b: str | None
    reasons: tuple[tuple[MismatchReason, str], ...]
    """One or more, each with a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSource:
    """One of the two results."""

    title: str
    results: str
    host: str
    """Description; empty if not reported."""
    days: str
    """Days of measurement; empty if not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """The complete comparison of two results."""

    a: ResultSource
    b: ResultSource
    rows: tuple[SideBySideRow, ...]
    """In the order of A."""
    not_comparable: tuple[NotComparable, ...]


def quotient(a: Side, b: Side) -> Quotient | None:
    """Return B's ratio divided by A's, with its interval; None if one of the two has no interval, or too wide a one."""
    if a.ratio is None or b.ratio is None or None in (a.low, a.high, b.low, b.high):
        return None
    point = math.log(b.ratio) - math.log(a.ratio)
    half = math.hypot(_half_width(a), _half_width(b))
    if abs(point) + half >= FARTHEST:
        return None
    return Quotient(value=math.exp(point), low=math.exp(point - half), high=math.exp(point + half))


def agreement(a: Side, b: Side, found: Quotient | None) -> Agreement:
    """Return the relation of two ratios. found: their quotient."""
    if found is None:
        return Agreement.OPEN
    margin = shared_margin(a, b)
    if 1 / (1 + margin) < found.low and found.high < 1 + margin:
        return Agreement.AGREE
    if found.low <= 1 <= found.high:
        return Agreement.OPEN
    if {a.verdict, b.verdict} == {Verdict.FASTER, Verdict.SLOWER}:
        return Agreement.OPPOSITE
    assert a.ratio is not None  # noqa: S101 - a quotient exists
    assert b.ratio is not None  # noqa: S101
    if (a.ratio - 1) * (b.ratio - 1) <= 0:
        return Agreement.HIGHER_IN_B if b.ratio > a.ratio else Agreement.HIGHER_IN_A
    return Agreement.LARGER_IN_B if _size(b.ratio) > _size(a.ratio) else Agreement.LARGER_IN_A


_WORDS = {
    Agreement.LARGER_IN_A: N_("differ: larger effect in A"),
    Agreement.LARGER_IN_B: N_("differ: larger effect in B"),
    Agreement.HIGHER_IN_A: N_("differ: higher ratio in A"),
    Agreement.HIGHER_IN_B: N_("differ: higher ratio in B"),
    Agreement.NOT_JUDGED: N_("not judged: the baselines differ"),
}


def agreement_text(found: Agreement, a: Side, b: Side) -> str:
    """Return the agreement as a sentence."""
    match found:
        case Agreement.AGREE:
            return _("agree within ±{margin}", margin=percent(shared_margin(a, b)))
        case Agreement.OPPOSITE if a.verdict is Verdict.FASTER:
            return _("differ: faster in A, slower in B")
        case Agreement.OPPOSITE:
            return _("differ: slower in A, faster in B")
        case _:
            return _(_WORDS[found]) if found in _WORDS else _open(a, b)


def shared_margin(a: Side, b: Side) -> float:
    """Return the larger margin, below which a difference matters to neither side."""
    return max(a.margin, b.margin)


def _open(a: Side, b: Side) -> str:
    """Return why the result is inconclusive: no interval, or one that is too wide."""
    for name, side in (("A", a), ("B", b)):
        if side.verdict is Verdict.INVALID:
            return _("inconclusive: {side} is invalid", side=name)
        if side.low is None or side.high is None:
            return _("inconclusive: {side} has no interval yet", side=name)
    return _("inconclusive")


def _half_width(side: Side) -> float:
    assert side.low is not None  # noqa: S101 - called for sides with an interval
    assert side.high is not None  # noqa: S101
    return (math.log(side.high) - math.log(side.low)) / 2


def _size(ratio: float) -> float:
    """Return the distance from no difference, on the log scale."""
    return abs(math.log(ratio))
