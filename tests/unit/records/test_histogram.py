import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.records.trials import BIN_WIDTH, LatencyHistogram, merge

LATENCY = st.integers(min_value=100, max_value=10**9)
LATENCIES = st.lists(LATENCY, min_size=1, max_size=200)
QUANTILE = st.sampled_from([0.5, 0.95, 0.99])


def histogram_of(latencies: list[int]) -> LatencyHistogram:
    return LatencyHistogram.from_microseconds(np.array(latencies, dtype=np.int64))


def expanded(histogram: LatencyHistogram) -> dict[int, int]:
    return {histogram.first_bin + i: int(count) for i, count in enumerate(histogram.counts) if count}


@given(LATENCIES, QUANTILE)
def test_quantiles_are_within_one_percent_of_numpys_exact_ones(latencies: list[int], q: float) -> None:
    exact = float(np.quantile(np.array(latencies), q, method="inverted_cdf")) / 1e6
    assert exact / 1.0101 < histogram_of(latencies).quantile(q) < exact * 1.0101


@pytest.mark.parametrize("seed", range(6))
def test_quantiles_of_large_random_samples_are_within_one_percent_of_numpys_default(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = (
        rng.lognormal(math.log(400), 0.5, 50_000),
        rng.gamma(2.0, 5_000.0, 50_000),
        rng.pareto(1.5, 50_000) * 1_000,
        rng.exponential(20_000.0, 50_000),
        rng.uniform(100, 900, 50_000),
        np.concatenate([rng.normal(500, 20, 45_000), rng.normal(40_000, 4_000, 5_000)]),
    )
    latencies = np.maximum(shapes[seed], 100).astype(np.int64)
    histogram = LatencyHistogram.from_microseconds(latencies)
    for q in (0.5, 0.95, 0.99):
        assert histogram.quantile(q) == pytest.approx(float(np.quantile(latencies, q)) / 1e6, rel=0.0101)


@given(LATENCIES)
def test_quantiles_never_decrease_with_q(latencies: list[int]) -> None:
    histogram = histogram_of(latencies)
    values = [histogram.quantile(q) for q in (0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)]
    assert values == sorted(values)


@given(LATENCY, st.integers(1, 50))
def test_quantiles_of_equal_latencies_stay_in_the_bin_of_that_latency(latency: int, count: int) -> None:
    histogram = histogram_of([latency] * count)
    assert histogram.counts.tolist() == [count]
    for q in (0.01, 0.5, 1.0):
        assert abs(math.log(histogram.quantile(q) * 1e6 / latency)) <= BIN_WIDTH * (1 + 1e-9)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=100))
def test_no_transaction_is_lost_and_both_ends_are_not_empty(latencies: list[int]) -> None:
    histogram = histogram_of(latencies)
    assert histogram.total == len(latencies)
    assert histogram.counts[0] > 0
    assert histogram.counts[-1] > 0
    assert histogram.counts.min() >= 0


def test_zero_microseconds_count_as_one() -> None:
    assert expanded(histogram_of([0, 0, 1])) == {0: 3}


@given(st.lists(st.lists(LATENCY, max_size=40), max_size=6))
def test_merging_adds_the_counts_of_both_histograms(groups: list[list[int]]) -> None:
    merged = merge([histogram_of(group) for group in groups])
    together = histogram_of([latency for group in groups for latency in group])
    assert expanded(merged) == expanded(together)
    assert merged.first_bin == together.first_bin


def test_an_empty_histogram_has_no_quantile() -> None:
    empty = histogram_of([])
    assert empty.total == 0
    with pytest.raises(ValueError, match="no quantile"):
        empty.quantile(0.5)


@pytest.mark.parametrize("q", [0.0, -0.1, 1.0001, math.nan])
def test_a_quantile_outside_zero_to_one_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        histogram_of([100]).quantile(q)
