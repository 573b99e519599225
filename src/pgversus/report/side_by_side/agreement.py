"""Whether two ratios agree, by their intervals.

The quotient of two ratios has an interval as wide on the log scale as the root of the sum of the squares of both half
widths: the two runs are independent. Each half width already allows for looks and for the verdicts that share its
study's error, and so does theirs together (docs/side-by-side.md).
"""

import math

from pgversus.report.side_by_side.put import Agreement, Quotient, Side
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import later, tell
from pgversus.text.units import percent


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
    Agreement.LARGER_IN_A: later("they differ: the effect is larger in A"),
    Agreement.LARGER_IN_B: later("they differ: the effect is larger in B"),
    Agreement.HIGHER_IN_A: later("they differ: the ratio is higher in A"),
    Agreement.HIGHER_IN_B: later("they differ: the ratio is higher in B"),
}


def agreement_words(found: Agreement, a: Side, b: Side) -> str:
    """The same as a sentence."""
    match found:
        case Agreement.AGREE:
            return tell("they agree within ±{margin}", margin=percent(shared_margin(a, b)))
        case Agreement.OPPOSITE if a.verdict is Verdict.FASTER:
            return tell("they differ: faster in A, slower in B")
        case Agreement.OPPOSITE:
            return tell("they differ: slower in A, faster in B")
        case _:
            return tell(_DIFFERENT[found]) if found in _DIFFERENT else _open(a, b)


def shared_margin(a: Side, b: Side) -> float:
    """Below which a difference matters to neither: the larger of the two."""
    return max(a.margin, b.margin)


def _open(a: Side, b: Side) -> str:
    """Why they cannot be told apart: no interval, or one that is too wide."""
    for name, side in (("A", a), ("B", b)):
        if side.verdict is Verdict.INVALID:
            return tell("cannot be told apart: {side} is invalid", side=name)
        if side.low is None or side.high is None:
            return tell("cannot be told apart: {side} has no interval yet", side=name)
    return tell("cannot be told apart")


def _half_width(side: Side) -> float:
    assert side.low is not None  # noqa: S101 - asked of sides with an interval
    assert side.high is not None  # noqa: S101
    return (math.log(side.high) - math.log(side.low)) / 2


def _size(ratio: float) -> float:
    """How far from no difference."""
    return abs(math.log(ratio))
