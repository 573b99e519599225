import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from pgversus.stats import confidence
from pgversus.stats.confidence import (
    UNBOUNDED,
    Interval,
    LookRule,
    Verdict,
    critical_value,
    ends_measuring,
    interval,
    judge,
    look_rule,
    sequential_alpha,
)
from pgversus.stats.effects import LogEstimate
from pgversus.study.design import FIRST_LOOK, MOST_BLOCKS, Design
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
def test_the_position_of_the_interval_determines_the_verdict(low: float, high: float, expected: Verdict) -> None:
    assert judge(bounds(low, high), Metric.TPS, MARGIN) is expected


def test_equivalence_takes_precedence_over_the_sign() -> None:
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


def test_an_unbounded_interval_is_undecided() -> None:
    for metric in Metric:
        assert judge(UNBOUNDED, metric, MARGIN) is Verdict.UNDECIDED


@given(st.floats(-5, 5), st.floats(0, 5), st.integers(4, 100))
def test_the_interval_is_centered_on_the_point(point: float, error: float, n: int) -> None:
    rule = look_rule(Design(), 1)
    found = interval(LogEstimate(point=point, standard_error=error, n=n), rule)
    assert found.low <= point <= found.high
    assert found.half_width == pytest.approx(rule.critical_value(n) * error, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_there_is_no_interval_before_the_first_look(n: int) -> None:
    assert interval(LogEstimate(point=0.5, standard_error=0.001, n=n), look_rule(Design(), 1)) == UNBOUNDED


def test_a_nan_error_gives_an_unbounded_interval() -> None:
    assert interval(LogEstimate(point=0.5, standard_error=math.nan, n=10), look_rule(Design(), 1)) == UNBOUNDED


def test_a_fixed_design_has_no_interval_before_its_last_block() -> None:
    rule = look_rule(Design(fixed_blocks=6), 1)
    assert interval(LogEstimate(point=0.5, standard_error=0.1, n=5), rule) == UNBOUNDED
    assert interval(LogEstimate(point=0.5, standard_error=0.1, n=6), rule).half_width == pytest.approx(
        0.1 * 2.5706, 1e-4
    )


@given(st.floats(-0.5, 0.5), st.floats(0, 0.5), st.sampled_from(list(Verdict)))
def test_measuring_ends_at_the_verdict_or_with_a_precision_at_a_width_whatever_the_verdict(
    point: float, half: float, verdict: Verdict
) -> None:
    found = bounds(point - half, point + half)
    assert ends_measuring(found, verdict, Design()) is (verdict is not Verdict.UNDECIDED)
    assert ends_measuring(found, verdict, Design(precision=0.1)) is (found.half_width <= math.log(1.1))


PRINTED = {
    4: 7.92,
    5: 5.88,
    6: 4.98,
    7: 4.48,
    8: 4.17,
    10: 3.80,
    12: 3.60,
    15: 3.41,
    20: 3.25,
    30: 3.11,
    40: 3.04,
    60: 2.98,
    100: 2.93,
}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 13, 30, 100])
@pytest.mark.parametrize("alpha", [0.05, 0.0146, 0.00418, 4.79e-05])
def test_critical_values_match_scipys_student_t(n: int, alpha: float) -> None:
    assert critical_value(n, alpha) == pytest.approx(float(student_t.isf(alpha / 2, n - 1)), rel=1e-9)


@pytest.mark.parametrize(("n", "expected"), PRINTED.items())
def test_critical_values_of_one_comparison_match_the_method(n: int, expected: float) -> None:
    assert look_rule(Design(), 1).critical_value(n) == pytest.approx(expected, abs=0.02)


def test_the_rule_allows_no_look_before_the_first() -> None:
    rule = look_rule(Design(), 1)
    assert rule.first_look == FIRST_LOOK == 4
    assert [rule.may_look(n) for n in (1, 3, 4, 100)] == [False, False, True, True]
    assert rule.critical_value(3) == math.inf
    assert math.isfinite(rule.critical_value(4))


def test_critical_values_fall_with_the_number_of_blocks() -> None:
    rule = look_rule(Design(), 1)
    widths = [rule.critical_value(n) for n in range(FIRST_LOOK, MOST_BLOCKS + 1)]
    assert all(later < earlier for earlier, later in itertools.pairwise(widths))


def test_alphas_fall_with_the_number_of_comparisons() -> None:
    for cap in confidence._CAPS:
        alphas = [sequential_alpha(cap, k) for k in confidence._ALPHAS]
        assert all(later < earlier for earlier, later in itertools.pairwise(alphas))


def test_alphas_fall_with_the_cap() -> None:
    for k in confidence._ALPHAS:
        alphas = [sequential_alpha(cap, k) for cap in confidence._CAPS]
        assert all(later < earlier for earlier, later in itertools.pairwise(alphas))


def test_every_level_lies_between_bonferroni_over_all_looks_and_one_look() -> None:
    for k in confidence._ALPHAS:
        for cap in confidence._CAPS:
            assert 0.05 / k / (cap - FIRST_LOOK + 1) < sequential_alpha(cap, k) < 0.05 / k


@pytest.mark.parametrize(("comparisons", "stricter"), [(7, 8), (9, 10), (11, 15), (16, 20), (21, 30), (31, 50)])
def test_a_number_of_comparisons_between_two_rows_uses_the_stricter(comparisons: int, stricter: int) -> None:
    assert sequential_alpha(100, comparisons) == sequential_alpha(100, stricter)


@pytest.mark.parametrize(("cap", "stricter"), [(4, 10), (11, 20), (21, 30), (31, 50), (51, 100), (99, 100)])
def test_a_cap_between_two_columns_uses_the_stricter(cap: int, stricter: int) -> None:
    assert sequential_alpha(cap, 1) == sequential_alpha(stricter, 1)


@pytest.mark.parametrize("comparisons", [1, 2, 3, 50])
@pytest.mark.parametrize("blocks", [2, 5, 20, 200])
def test_a_fixed_design_is_plain_student_t_shared_by_its_comparisons(blocks: int, comparisons: int) -> None:
    rule = look_rule(Design(fixed_blocks=blocks), comparisons)
    assert rule.first_look == rule.last_look == blocks
    assert rule.critical_value(blocks) == pytest.approx(float(student_t.isf(0.025 / comparisons, blocks - 1)), rel=1e-9)
    assert not rule.may_look(blocks - 1)


def test_the_last_look_is_the_cap_of_the_design() -> None:
    assert look_rule(Design(max_blocks=20), 3) == LookRule(alpha=0.00247, first_look=4, last_look=20, verdicts=3)


@pytest.mark.parametrize("design", [Design(), Design(fixed_blocks=10)])
@pytest.mark.parametrize("comparisons", [-1, 0])
def test_too_few_verdicts_are_rejected(design: Design, comparisons: int) -> None:
    with pytest.raises(ValueError, match="verdicts"):
        look_rule(design, comparisons)


def test_the_level_falls_smoothly_beyond_the_table() -> None:
    alphas = [sequential_alpha(100, comparisons) for comparisons in (30, 50, 51, 100, 1_000, 100_000)]
    assert all(later < earlier for earlier, later in itertools.pairwise(alphas))
    assert alphas[2] > 0.97 * alphas[1]


def test_two_hundred_verdicts_respect_the_error_rate() -> None:
    rule, promised = look_rule(Design(max_blocks=10), 200), 0.05 / 200
    rng = np.random.default_rng(200)
    missed = float(np.mean([any_look_error(rng, rule, 1, 50_000) for _ in range(10)]))
    assert promised / 4 < missed <= promised


def any_look_error(rng: np.random.Generator, rule: LookRule, comparisons: int, sequences: int) -> float:
    """Return the share of studies in which any interval of any look misses zero; contenders share one baseline."""
    n = np.arange(1, rule.last_look + 1)
    samples = rng.standard_normal((sequences, comparisons + 1, rule.last_look))
    differences = samples[:, 1:, :] - samples[:, :1, :]
    mean = differences.cumsum(axis=2) / n
    squares = (differences**2).cumsum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(squares / n - mean**2, 0) / (n - 1))
    looks = slice(rule.first_look - 1, rule.last_look)
    widths = np.array([rule.critical_value(int(i)) for i in n[looks]])
    missed = np.abs(mean[:, :, looks]) > widths * error[:, :, looks]
    return float(missed.any(axis=(1, 2)).mean())


def test_checking_after_every_block_is_wrong_in_five_percent_of_studies() -> None:
    rule = look_rule(Design(max_blocks=20), 1)
    assert 0.043 <= any_look_error(np.random.default_rng(20), rule, 1, 20_000) <= 0.055


def test_three_comparisons_with_one_baseline_share_the_five_percent() -> None:
    rule = look_rule(Design(max_blocks=20), 3)
    assert any_look_error(np.random.default_rng(3), rule, 3, 20_000) <= 0.055


def test_a_plain_interval_checked_repeatedly_is_wrong_far_more_often() -> None:
    rule = replace(look_rule(Design(max_blocks=20), 1), alpha=0.05)
    assert any_look_error(np.random.default_rng(20), rule, 1, 20_000) > 0.12


@pytest.mark.parametrize("fixed_blocks", [None, 10])
def test_sixty_quantities_respect_the_error_rate(
    fixed_blocks: int | None,
) -> None:
    studies, quantities, most = 1000, 60, 20
    rule = look_rule(Design(max_blocks=most, fixed_blocks=fixed_blocks), 1).shared_by(quantities)
    noise = np.random.default_rng(5).standard_normal((studies, quantities, most))
    wrong = np.zeros(studies, dtype=bool)
    for n in range(rule.first_look, rule.last_look + 1):
        seen = noise[:, :, :n]
        errors = seen.std(axis=2, ddof=1) / n**0.5
        wrong |= (np.abs(seen.mean(axis=2)) > rule.critical_value(n) * errors).any(axis=1)
    assert wrong.mean() <= 0.05 + 3 * (0.05 * 0.95 / studies) ** 0.5
