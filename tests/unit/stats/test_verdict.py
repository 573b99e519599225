import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.stats.confidence import look_rule
from pgversus.stats.effects import LogEstimate
from pgversus.stats.verdict import UNBOUNDED, Interval, Verdict, interval, judge
from pgversus.study.design import Design
from pgversus.study.metrics import JUDGED, Metric

MARGIN = math.log1p(0.02)
LATENCIES = tuple(metric for metric in JUDGED if metric is not Metric.TPS)
BOUND = st.floats(-1.0, 1.0)
MIRROR = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}


def bounds(low: float, high: float) -> Interval:
    return Interval(low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.03, 0.05, Verdict.FASTER),
        (0.001, 0.05, Verdict.FASTER),
        (-0.05, -0.03, Verdict.SLOWER),
        (-0.05, -0.001, Verdict.SLOWER),
        (-0.01, 0.01, Verdict.EQUIVALENT),
        (-0.01, 0.03, Verdict.UNDECIDED),
        (-0.03, 0.01, Verdict.UNDECIDED),
        (-0.5, 0.5, Verdict.UNDECIDED),
    ],
)
def test_the_place_of_the_interval_decides(low: float, high: float, expected: Verdict) -> None:
    assert judge(bounds(low, high), Metric.TPS, MARGIN) is expected


def test_equivalence_is_asked_before_the_sign() -> None:
    assert judge(bounds(0.001, 0.01), Metric.TPS, MARGIN) is Verdict.EQUIVALENT
    assert judge(bounds(-0.01, -0.001), Metric.TPS, MARGIN) is Verdict.EQUIVALENT


def test_an_interval_that_touches_the_margin_is_not_inside_it() -> None:
    assert judge(bounds(-MARGIN, 0.0), Metric.TPS, MARGIN) is Verdict.UNDECIDED
    assert judge(bounds(0.0, MARGIN), Metric.TPS, MARGIN) is Verdict.UNDECIDED
    assert judge(bounds(0.001, MARGIN), Metric.TPS, MARGIN) is Verdict.FASTER


def test_an_interval_that_touches_zero_has_no_sign() -> None:
    assert judge(bounds(0.0, 0.5), Metric.TPS, MARGIN) is Verdict.UNDECIDED
    assert judge(bounds(-0.5, 0.0), Metric.TPS, MARGIN) is Verdict.UNDECIDED


@given(BOUND, BOUND, st.sampled_from(LATENCIES))
def test_latencies_reverse_the_direction(one: float, other: float, metric: Metric) -> None:
    found = bounds(min(one, other), max(one, other))
    by_rate = judge(found, Metric.TPS, MARGIN)
    assert judge(found, metric, MARGIN) is MIRROR.get(by_rate, by_rate)


@given(BOUND, BOUND, st.sampled_from(JUDGED))
def test_the_mirrored_interval_has_the_mirrored_verdict(one: float, other: float, metric: Metric) -> None:
    low, high = min(one, other), max(one, other)
    verdict = judge(bounds(low, high), metric, MARGIN)
    assert judge(bounds(-high, -low), metric, MARGIN) is MIRROR.get(verdict, verdict)


@given(BOUND, BOUND)
def test_a_sign_is_never_claimed_while_zero_is_inside(one: float, other: float) -> None:
    low, high = -abs(one), abs(other)
    assert judge(bounds(low, high), Metric.TPS, MARGIN) not in (Verdict.FASTER, Verdict.SLOWER)


def test_nothing_is_claimed_of_an_unbounded_interval() -> None:
    for metric in Metric:
        assert judge(UNBOUNDED, metric, MARGIN) is Verdict.UNDECIDED


@given(st.floats(-5, 5), st.floats(0, 5), st.integers(4, 100))
def test_the_interval_contains_the_point_in_its_middle(point: float, error: float, n: int) -> None:
    rule = look_rule(Design(), 1)
    found = interval(LogEstimate(point=point, standard_error=error, n=n), rule)
    assert found.low <= point <= found.high
    assert found.half_width == pytest.approx(rule.half_widths(n) * error, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_there_is_no_interval_before_the_first_look(n: int) -> None:
    assert interval(LogEstimate(point=0.5, standard_error=0.001, n=n), look_rule(Design(), 1)) == UNBOUNDED


def test_an_error_that_is_not_a_number_leaves_the_interval_unbounded() -> None:
    assert interval(LogEstimate(point=0.5, standard_error=math.nan, n=10), look_rule(Design(), 1)) == UNBOUNDED


def test_a_fixed_design_has_no_interval_before_its_last_block() -> None:
    rule = look_rule(Design(fixed_blocks=6), 1)
    assert interval(LogEstimate(point=0.5, standard_error=0.1, n=5), rule) == UNBOUNDED
    assert interval(LogEstimate(point=0.5, standard_error=0.1, n=6), rule).half_width == pytest.approx(
        0.1 * 2.5706, 1e-4
    )
