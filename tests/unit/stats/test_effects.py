import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pgversus.records.trials import BIN_WIDTH, Block
from pgversus.stats import effects
from pgversus.stats.effects import LogEstimate, Samples
from pgversus.study.metrics import QUANTILES, Metric
from tests.builders import Microseconds, latency_block, rate_block, rate_blocks, scaled, swapped


def log_ratio(blocks: Sequence[Block], metric: Metric, baseline: int, contender: int) -> LogEstimate | None:
    return effects.log_ratio(Samples(blocks), metric, baseline, contender)


def log_value(blocks: Sequence[Block], metric: Metric, arm: int) -> LogEstimate | None:
    return effects.log_value(Samples(blocks), metric, arm)


def quantile_is_supported(blocks: Sequence[Block], q: float, arm: int) -> bool:
    return effects.quantile_is_supported(Samples(blocks), q, (arm,))


RATE = st.floats(1.0, 1e5)
PAIRS = st.lists(st.tuples(RATE, RATE), min_size=2, max_size=20)
WITH_RATIO = tuple(metric for metric in Metric if metric not in (Metric.LATENCY_MAX, Metric.TIME))


def paired(pairs: list[tuple[float, float]]) -> list[Block]:
    return [rate_block(number, *pair) for number, pair in enumerate(pairs, start=1)]


def random_latencies(rng: np.random.Generator, size: int, median_us: float = 1000.0) -> Microseconds:
    return np.maximum(rng.lognormal(math.log(median_us), 0.4, size), 100).astype(np.int64)


def random_blocks(seed: int, blocks: int = 10, size: int = 400) -> list[Block]:
    rng = np.random.default_rng(seed)
    return [
        latency_block(n, random_latencies(rng, size, 1000.0), random_latencies(rng, size, 1200.0))
        for n in range(1, blocks + 1)
    ]


@given(PAIRS)
def test_the_ratio_is_the_mean_log_ratio_with_scipys_error(pairs: list[tuple[float, float]]) -> None:
    logs = [math.log(contender / baseline) for baseline, contender in pairs]
    found = log_ratio(paired(pairs), Metric.TPS, 0, 1)
    assert found is not None
    assert found.n == len(pairs)
    assert found.point == pytest.approx(float(np.mean(logs)), abs=1e-9)
    assert found.standard_error == pytest.approx(float(stats.sem(logs)), abs=1e-9)


@given(PAIRS, st.floats(0.01, 100))
def test_scaling_both_arms_does_not_change_the_ratio(pairs: list[tuple[float, float]], factor: float) -> None:
    blocks = paired(pairs)
    before = log_ratio(blocks, Metric.TPS, 0, 1)
    after = log_ratio(scaled(scaled(blocks, 0, factor), 1, factor), Metric.TPS, 0, 1)
    assert before is not None
    assert after is not None
    assert after.point == pytest.approx(before.point, abs=1e-9)
    assert after.standard_error == pytest.approx(before.standard_error, abs=1e-9)


@given(PAIRS, st.floats(0.01, 100))
def test_scaling_one_arm_moves_the_ratio_by_that_factor(pairs: list[tuple[float, float]], factor: float) -> None:
    blocks = paired(pairs)
    before = log_ratio(blocks, Metric.TPS, 0, 1)
    after = log_ratio(scaled(blocks, 1, factor), Metric.TPS, 0, 1)
    assert before is not None
    assert after is not None
    assert after.point == pytest.approx(before.point + math.log(factor), abs=1e-9)
    assert after.standard_error == pytest.approx(before.standard_error, abs=1e-9)


@pytest.mark.parametrize("metric", WITH_RATIO)
@pytest.mark.parametrize("seed", range(3))
def test_swapping_the_arms_mirrors_the_ratio(metric: Metric, seed: int) -> None:
    blocks = random_blocks(seed)
    there, back = log_ratio(blocks, metric, 0, 1), log_ratio(swapped(blocks), metric, 0, 1)
    assert there is not None
    assert back is not None
    assert back.point == pytest.approx(-there.point, abs=1e-9)
    assert back.standard_error == pytest.approx(there.standard_error, abs=1e-9)
    assert log_ratio(blocks, metric, 1, 0) == back


@pytest.mark.parametrize("metric", WITH_RATIO)
def test_the_order_of_blocks_does_not_matter(metric: Metric) -> None:
    blocks = random_blocks(1)
    one, other = log_ratio(blocks, metric, 0, 1), log_ratio(blocks[::-1], metric, 0, 1)
    assert one is not None
    assert other is not None
    assert one.point == pytest.approx(other.point, abs=1e-12)
    assert one.standard_error == pytest.approx(other.standard_error, abs=1e-12)


def test_one_block_has_a_point_and_no_error() -> None:
    for metric in WITH_RATIO:
        found = log_ratio([rate_block(1, 100.0, 110.0)], metric, 0, 1)
        assert found is not None
        assert math.isfinite(found.point)
        assert math.isnan(found.standard_error)
        assert found.n == 1


def test_no_blocks_give_no_estimate() -> None:
    for metric in Metric:
        assert log_ratio([], metric, 0, 1) is None
        assert log_value([], metric, 0) is None


def test_the_maximum_has_no_ratio_and_its_level_is_the_largest_without_error() -> None:
    blocks = [latency_block(1, [100, 900], [200]), latency_block(2, [100, 5000], [300])]
    assert log_ratio(blocks, Metric.LATENCY_MAX, 0, 1) is None
    value = log_value(blocks, Metric.LATENCY_MAX, 0)
    assert value is not None
    assert math.exp(value.point) == pytest.approx(0.005)
    assert math.isnan(value.standard_error)


@pytest.mark.parametrize("metric", WITH_RATIO)
def test_blocks_without_an_arm_are_ignored_in_ratios(metric: Metric) -> None:
    whole = random_blocks(2)
    lone = [latency_block(90, [10**6] * 50, None), latency_block(91, None, [10**6] * 50), Block(number=92, trials={})]
    assert log_ratio([lone[0], *whole, *lone[1:]], metric, 0, 1) == log_ratio(whole, metric, 0, 1)
    assert log_ratio(lone, metric, 0, 1) is None


def test_values_of_arms_count_every_block_of_their_arm() -> None:
    value = log_value(rate_blocks([100.0, 400.0, 200.0], [None, 50.0, None]), Metric.TPS, 0)
    assert value is not None
    assert value.n == 3
    assert math.exp(value.point) == pytest.approx(200.0)
    alone = log_value(rate_blocks([100.0, 400.0, 200.0], [None, 50.0, None]), Metric.TPS, 1)
    assert alone is not None
    assert alone.n == 1
    assert math.exp(alone.point) == pytest.approx(50.0)


@pytest.mark.parametrize("metric", QUANTILES)
def test_quantile_ratios_are_a_jackknife_over_blocks(metric: Metric) -> None:
    """A second implementation on raw latencies, which may only differ by the bins of 1 %."""
    rng = np.random.default_rng(11)
    q = QUANTILES[metric]
    size = round(100 / (1 - q)) + 2000
    arms = [[random_latencies(rng, size, median * rng.normal(1, 0.05)) for _ in range(10)] for median in (1000, 1300)]

    def exact(left_out: int | None) -> float:
        pooled = [np.concatenate([part for i, part in enumerate(arm) if i != left_out]) for arm in arms]
        return math.log(float(np.quantile(pooled[1], q)) / float(np.quantile(pooled[0], q)))

    replicates = np.array([exact(i) for i in range(10)])
    error = math.sqrt(9 / 10 * float(((replicates - replicates.mean()) ** 2).sum()))
    found = log_ratio([latency_block(i + 1, arms[0][i], arms[1][i]) for i in range(10)], metric, 0, 1)
    assert found is not None
    assert found.n == 10
    assert found.point == pytest.approx(exact(None), abs=2 * BIN_WIDTH)
    assert found.standard_error == pytest.approx(error, rel=0.35)


def test_the_error_of_a_quantile_is_never_below_half_a_bin() -> None:
    blocks = [latency_block(n, [1000] * 50, [1000] * 50) for n in range(1, 11)]
    found = log_ratio(blocks, Metric.LATENCY_P50, 0, 1)
    assert found is not None
    assert found.point == 0
    assert found.standard_error == pytest.approx(BIN_WIDTH / 2)


@pytest.mark.parametrize(("metric", "needed"), [("latency_p50_s", 10), ("latency_p95_s", 100), ("latency_p99_s", 500)])
def test_a_quantile_needs_five_transactions_beyond_it_in_every_block(metric: str, needed: int) -> None:
    q = QUANTILES[Metric(metric)]
    enough = [latency_block(n, [100] * needed) for n in range(1, 5)]
    assert quantile_is_supported(enough, q, 0)
    assert not quantile_is_supported([latency_block(9, [100] * (needed - 1)), *enough], q, 0)


def test_a_quantile_of_an_arm_without_trials_is_not_supported() -> None:
    assert not quantile_is_supported([latency_block(1, [100] * 10_000)], 0.95, 1)


def test_growing_samples_give_the_same_estimates() -> None:
    blocks = rate_blocks([100.0, 400.0, 200.0], [110.0, None, 230.0])
    growing = Samples()
    for block in blocks:
        growing.add(block)
        growing.logs(Metric.TPS, 0)
    for arm in (0, 1):
        assert growing.logs(Metric.TPS, arm) == Samples(blocks).logs(Metric.TPS, arm)
    assert growing.logs(Metric.TPS, 1)[1] is None
    assert growing.fewest_transactions((0, 1)) == 100
    assert growing.fewest_transactions((0, 7)) == 0
