import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.stats.analysis import analyze, blocks_needed
from pgversus.stats.confidence import (
    Verdict,
    blocks_to_end,
    blocks_to_resolve,
    check_precision,
    interval,
    judge,
    look_rule,
)
from pgversus.stats.effects import LogEstimate, Samples
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from tests.builders import comparison, judged_by, latency_block

RULE = look_rule(Design(), 1)
DESIGN = Design()


def at(estimate: LogEstimate, n: int) -> LogEstimate:
    """Return an estimate with the same noise after n blocks."""
    error = estimate.standard_error * math.sqrt(estimate.n / n)
    return LogEstimate(point=estimate.point, standard_error=error, n=n)


def verdict(estimate: LogEstimate) -> Verdict:
    return judge(interval(estimate, RULE), Metric.TPS, DESIGN.log_margin)


@given(st.floats(-0.2, 0.2), st.floats(1e-4, 0.2), st.integers(2, 99))
def test_the_forecast_is_the_smallest_deciding_number_of_blocks(point: float, error: float, n: int) -> None:
    estimate = LogEstimate(point=point, standard_error=error, n=n)
    expected = next((m for m in range(max(n, 4), 101) if verdict(at(estimate, m)) is not Verdict.UNDECIDED), None)
    found = blocks_to_end(estimate, RULE, DESIGN)
    if found != expected:
        # Both may differ by one block, only if an interval ends at a bound up to the last bit.
        assert found is not None
        assert expected is not None
        assert abs(found - expected) == 1


@given(st.floats(1e-4, 0.2), st.integers(2, 99), st.floats(1e-3, 0.5))
def test_blocks_to_resolve_give_a_narrower_interval(error: float, n: int, half_width: float) -> None:
    estimate = LogEstimate(point=0.0, standard_error=error, n=n)
    found = blocks_to_resolve(estimate, RULE, half_width)
    if found is None:
        assert interval(at(estimate, 100), RULE).half_width >= half_width * (1 - 1e-9)
    else:
        assert interval(at(estimate, found), RULE).half_width < half_width * (1 + 1e-9)
        if found > max(n, 4):
            assert interval(at(estimate, found - 1), RULE).half_width >= half_width * (1 - 1e-9)


@given(st.floats(1e-4, 0.1), st.integers(2, 50))
def test_more_noise_never_needs_fewer_blocks(error: float, n: int) -> None:
    quiet = blocks_to_resolve(LogEstimate(point=0.0, standard_error=error, n=n), RULE, 0.02)
    loud = blocks_to_resolve(LogEstimate(point=0.0, standard_error=2 * error, n=n), RULE, 0.02)
    assert (quiet or 101) <= (loud or 101)


def test_one_block_gives_no_forecast() -> None:
    estimate = LogEstimate(point=0.5, standard_error=math.nan, n=1)
    assert blocks_to_end(estimate, RULE, DESIGN) is None
    assert blocks_to_resolve(estimate, RULE, 1.0) is None


def test_no_forecast_exceeds_the_last_look() -> None:
    estimate = LogEstimate(point=0.01, standard_error=1.0, n=10)
    assert blocks_to_end(estimate, RULE, DESIGN) is None


def test_a_large_and_quiet_difference_is_decided_at_the_first_look() -> None:
    estimate = LogEstimate(point=0.5, standard_error=0.001, n=2)
    assert blocks_to_end(estimate, RULE, DESIGN) == RULE.first_look


@given(st.floats(-0.2, 0.2), st.floats(1e-4, 0.02), st.integers(4, 99), st.floats(0.005, 0.1))
def test_with_a_precision_the_forecast_depends_on_the_width_alone(
    point: float, error: float, n: int, precision: float
) -> None:
    estimate, design = LogEstimate(point=point, standard_error=error, n=n), Design(precision=precision)
    found = blocks_to_end(estimate, RULE, design)
    assert found == blocks_to_end(LogEstimate(point=0.0, standard_error=error, n=n), RULE, design)
    if found is not None:
        # At the bound itself the last bit decides.
        reached = interval(at(estimate, found), RULE).half_width
        assert reached <= math.log1p(precision) + 1e-12
        before = interval(at(estimate, found - 1), RULE).half_width
        assert found == n or before >= math.log1p(precision) - 1e-12


@pytest.mark.parametrize("point", [0.03, -0.03])
def test_the_forecast_does_not_depend_on_the_sign(point: float) -> None:
    found = blocks_to_end(LogEstimate(point=point, standard_error=0.02, n=6), RULE, DESIGN)
    assert found == blocks_to_end(LogEstimate(point=0.03, standard_error=0.02, n=6), RULE, DESIGN)
    assert found is not None
    assert found > 6


@pytest.mark.parametrize(("precision", "is_reached"), [(0.01, False), (0.02, True)])
def test_no_number_of_blocks_narrows_a_percentile_beyond_its_resolution(precision: float, *, is_reached: bool) -> None:
    requested = comparison(design=replace(judged_by(Metric.LATENCY_P95), precision=precision))
    alike = Samples(latency_block(number, [5000] * 1000, [5000] * 1000) for number in range(1, 11))
    needed = blocks_needed(analyze(alike, requested, RULE).results[0], requested, RULE)
    assert (needed is not None) is is_reached
    narrowest = interval(LogEstimate(point=0.0, standard_error=math.log(1.01) / 2, n=100), RULE).half_width
    assert (narrowest <= math.log1p(precision)) is is_reached


@pytest.mark.parametrize(
    ("metric", "precision", "verdicts", "is_refused"),
    [
        (Metric.LATENCY_P95, 0.01, 1, True),
        (Metric.LATENCY_P95, 0.015, 1, False),
        (Metric.LATENCY_P95, 0.015, 5, True),
        (Metric.LATENCY_P95, None, 5, False),
        (Metric.LATENCY_MEAN, 0.001, 5, False),
        (Metric.TPS, 0.001, 5, False),
    ],
)
def test_a_precision_beyond_the_resolution_of_a_percentile_is_refused(
    metric: Metric, precision: float | None, verdicts: int, *, is_refused: bool
) -> None:
    design = replace(judged_by(metric), precision=precision)
    if not is_refused:
        check_precision(design, verdicts)
        return
    with pytest.raises(StudyError) as caught:
        check_precision(design, verdicts)
    assert caught.value.slug == "study-precision-of-percentile"
