"""What is put beside each other, in plain fields: a renderer adds nothing to it."""

from dataclasses import dataclass
from enum import StrEnum

from pgversus.stats.confidence import Verdict
from pgversus.study.metrics import Metric

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


class Around(StrEnum):
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

    kind: Around
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
class Source:
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

    a: Source
    b: Source
    rows: tuple[SideBySideRow, ...]
    """In the order of A."""
    not_comparable: tuple[NotComparable, ...]
