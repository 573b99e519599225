"""Whether two ratios agree, by their intervals.

The quotient of two ratios has an interval as wide on the log scale as the root of the sum of the squares of both half
widths: the two runs are independent. Each half width already allows for looks and for the verdicts that share its
study's error, and so does theirs together (docs/side-by-side.md).
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from pgversus.stats.confidence import Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import N_, _
from pgversus.text.units import percent

A, B = "A", "B"
"""How the two results are called, in the order in which they were named."""


class Unlike(StrEnum):
    """Why two verdicts are no answers to one question."""

    WORKLOAD = "workload"
    DATASET = "dataset"
    METRIC = "metric"
    CACHE = "cache"
    LEVELS = "levels"
    """Another setting or server is fixed."""
    COMPARED = "compared"
    """Other factors are compared, or it is open which contender stands for which."""
    NOT_MEASURED = "not-measured"
    ONLY_HERE = "only-here"


class DiscrepancyKind(StrEnum):
    """What may differ around two answers to one question."""

    BASELINE = "baseline"
    """Builds or levels of the baselines: then there is no common measure, and nothing is said of the ratios."""
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
    """A caveat of one of the two says that its number may mean something else than it seems to."""


class Agreement(StrEnum):
    """How two ratios stand to each other."""

    AGREE = "agree"
    LARGER_IN_A = "larger-in-a"
    LARGER_IN_B = "larger-in-b"
    HIGHER_IN_A = "higher-in-a"
    """The ratios lie on both sides of no difference, and not both are decided: their sizes are not compared."""
    HIGHER_IN_B = "higher-in-b"
    OPPOSITE = "opposite"
    """Faster in one, slower in the other."""
    OPEN = "open"
    """The intervals cannot tell them apart, and do not show that they are alike."""
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
    """In the base unit; no comparison with that of the other side."""
    contender_value: float | None
    margin: float
    blocks: int
    needs_check: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that is not alike."""

    kind: DiscrepancyKind
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """The ratio of B over that of A: 1 where both found the same."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySideRow:
    """Two verdicts that answer one question."""

    a: Side
    b: Side
    metric: Metric
    by_role: bool
    """Whether they belong together as baseline and contender only, being called otherwise."""
    agreement: Agreement
    words: str
    """The agreement as a sentence, or why nothing is said of it."""
    quotient: Quotient | None
    """None where nothing is said of it, or an interval is missing."""
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComparable:
    """A context or a contender without one beside it."""

    a: str | None
    """What it is called in A, with the contender where it is one of several; None where it is only in B."""
    b: str | None
    reasons: tuple[tuple[Unlike, str], ...]
    """One or more, each in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSource:
    """One of the two results."""

    title: str
    results: str
    host: str
    """In words; empty where it told nothing."""
    days: str
    """On which it was measured; empty where nobody noted them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Everything that can be said of two results together."""

    a: ResultSource
    b: ResultSource
    rows: tuple[SideBySideRow, ...]
    """In the order of A."""
    not_comparable: tuple[NotComparable, ...]


def quotient(a: Side, b: Side) -> Quotient | None:
    """B's ratio over A's with its interval; None where one of the two has no interval."""
    if a.ratio is None or b.ratio is None or None in (a.low, a.high, b.low, b.high):
        return None
    point = math.log(b.ratio) - math.log(a.ratio)
    half = math.hypot(_half_width(a), _half_width(b))
    return Quotient(value=math.exp(point), low=math.exp(point - half), high=math.exp(point + half))


def agreement(a: Side, b: Side, found: Quotient | None) -> Agreement:
    """How the ratios stand to each other. found: their quotient."""
    if found is None:
        return Agreement.OPEN
    margin = shared_margin(a, b)
    if 1 / (1 + margin) < found.low and found.high < 1 + margin:
        return Agreement.AGREE
    if found.low <= 1 <= found.high:
        return Agreement.OPEN
    if {a.verdict, b.verdict} == {Verdict.FASTER, Verdict.SLOWER}:
        return Agreement.OPPOSITE
    assert a.ratio is not None  # noqa: S101 - there is a quotient
    assert b.ratio is not None  # noqa: S101
    if (a.ratio - 1) * (b.ratio - 1) <= 0:
        return Agreement.HIGHER_IN_B if b.ratio > a.ratio else Agreement.HIGHER_IN_A
    return Agreement.LARGER_IN_B if _size(b.ratio) > _size(a.ratio) else Agreement.LARGER_IN_A


_DIFFERENT = {
    Agreement.LARGER_IN_A: N_("differ: larger effect in A"),
    Agreement.LARGER_IN_B: N_("differ: larger effect in B"),
    Agreement.HIGHER_IN_A: N_("differ: higher ratio in A"),
    Agreement.HIGHER_IN_B: N_("differ: higher ratio in B"),
}


def agreement_words(found: Agreement, a: Side, b: Side) -> str:
    """The same as a sentence."""
    match found:
        case Agreement.AGREE:
            return _("agree within ±{margin}", margin=percent(shared_margin(a, b)))
        case Agreement.OPPOSITE if a.verdict is Verdict.FASTER:
            return _("differ: faster in A, slower in B")
        case Agreement.OPPOSITE:
            return _("differ: slower in A, faster in B")
        case _:
            return _(_DIFFERENT[found]) if found in _DIFFERENT else _open(a, b)


def shared_margin(a: Side, b: Side) -> float:
    """Below which a difference matters to neither: the larger of the two."""
    return max(a.margin, b.margin)


def _open(a: Side, b: Side) -> str:
    """Why they cannot be told apart: no interval, or one that is too wide."""
    for name, side in (("A", a), ("B", b)):
        if side.verdict is Verdict.INVALID:
            return _("inconclusive: {side} is invalid", side=name)
        if side.low is None or side.high is None:
            return _("inconclusive: {side} has no interval yet", side=name)
    return _("inconclusive")


def _half_width(side: Side) -> float:
    assert side.low is not None  # noqa: S101 - asked of sides with an interval
    assert side.high is not None  # noqa: S101
    return (math.log(side.high) - math.log(side.low)) / 2


def _size(ratio: float) -> float:
    """How far from no difference."""
    return abs(math.log(ratio))
