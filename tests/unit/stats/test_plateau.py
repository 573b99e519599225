"""Levels that do not differ from the best one, and differences too small to detect."""

import math

import numpy as np
import pytest

from pgversus.records.trials import Block
from pgversus.stats.analysis import POWER, plateau, smallest_difference, spread_of_blocks
from pgversus.stats.confidence import interval, look_rule
from pgversus.stats.effects import LogEstimate, Samples, log_ratio
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from tests.builders import rate_block

RULE = look_rule(Design(fixed_blocks=10, seed=1), 4)


def made(*rates: float, noise: float = 0.02, blocks: int = 10, seed: int = 3) -> list[Block]:
    rng = np.random.default_rng(seed)
    return [
        rate_block(n, *(rate * float(np.exp(rng.normal(0, noise))) for rate in rates)) for n in range(1, blocks + 1)
    ]


MARGIN = math.log1p(0.02)


@pytest.mark.parametrize(
    ("rates", "metric", "found"),
    [
        ((100, 150, 151, 150, 100), Metric.TPS, (1, 2, 3)),
        ((100, 120, 150, 120, 100), Metric.TPS, (2,)),
        ((100, 100, 100, 100, 100), Metric.TPS, (0, 1, 2, 3, 4)),
        ((150, 150, 120, 100, 90), Metric.TPS, (0, 1)),
        ((100, 150, 151, 150, 100), Metric.LATENCY_MEAN, (1, 2, 3)),
        # A worse arm in between does not make the arms behind it worse.
        ((150, 100, 151, 150, 150), Metric.TPS, (0, 2, 3, 4)),
        ((100, 151, 100, 100, 150), Metric.LATENCY_MEAN, (1, 4)),
    ],
)
def test_a_plateau_holds_every_arm_that_is_not_shown_to_be_worse(
    rates: tuple[float, ...], metric: Metric, found: tuple[int, ...]
) -> None:
    one = plateau(made(*rates), metric, RULE, range(5), MARGIN)
    assert one is not None
    assert one.arms == found
    assert one.best in found


def test_an_arm_that_differs_by_less_than_the_margin_belongs_to_the_plateau() -> None:
    blocks = made(100, 101, 150, noise=0.0001)
    for margin, arms in ((0.02, (0, 1)), (0.005, (1,))):
        one = plateau(blocks[:], Metric.TPS, RULE, (0, 1), math.log1p(margin))
        assert one is not None
        assert (one.best, one.arms) == (1, arms)


def test_an_arm_whose_interval_reaches_into_the_margin_belongs_to_the_plateau() -> None:
    blocks = made(100, 97, noise=0.01)
    bounds = interval(log_ratio(Samples(blocks), Metric.TPS, 0, 1), RULE)  # type: ignore[arg-type]
    assert bounds.low < -MARGIN < bounds.high < 0
    one = plateau(blocks, Metric.TPS, RULE, (0, 1), MARGIN)
    assert one is not None
    assert (one.best, one.arms) == (0, (0, 1))


@pytest.mark.parametrize("seed", range(20))
def test_a_plateau_around_the_baseline_agrees_with_the_verdicts(seed: int) -> None:
    blocks = made(100, 98, 97, 96, 95, noise=0.01, seed=seed)
    one = plateau(blocks, Metric.TPS, RULE, range(5), MARGIN)
    assert one is not None
    samples = Samples(blocks)
    intervals = {
        arm: interval(found, RULE) for arm in range(5) if (found := log_ratio(samples, Metric.TPS, one.best, arm))
    }
    assert one.best == 0
    assert one.arms == tuple(arm for arm, bounds in intervals.items() if bounds.high >= -MARGIN)


def test_noise_yields_a_plateau_of_all_arms() -> None:
    one = plateau(made(100, 104, 108, 104, 100, noise=0.3), Metric.TPS, RULE, range(5), MARGIN)
    assert one is not None
    assert one.arms == (0, 1, 2, 3, 4)


def test_without_values_there_is_no_plateau() -> None:
    assert plateau(made(100, 100), Metric.TPS, RULE, range(3), MARGIN) is None


def test_the_smallest_difference_is_detected_with_80_percent_power() -> None:
    """Simulated: with a true difference of that size the interval excludes zero with that power."""
    rng = np.random.default_rng(11)
    estimate = LogEstimate(point=0.0, standard_error=0.02 / np.sqrt(10), n=10)
    smallest = smallest_difference(estimate, RULE)
    assert smallest is not None
    draws = rng.normal(np.log1p(smallest), 0.02, (4000, 10))
    errors = draws.std(axis=1, ddof=1) / np.sqrt(10)
    seen = np.mean(draws.mean(axis=1) - RULE.critical_value(10) * errors > 0)
    # By the normal distribution; Student's t would give a slightly lower power.
    assert POWER - 0.08 < seen < POWER + 0.03


def test_there_is_no_smallest_difference_before_the_first_look() -> None:
    few = LogEstimate(point=0.0, standard_error=0.02, n=3)
    assert smallest_difference(few, RULE) is None
    assert smallest_difference(LogEstimate(point=0.0, standard_error=float("nan"), n=1), RULE) is None
    assert smallest_difference(LogEstimate(point=0.0, standard_error=99.0, n=10), RULE) is None
    assert spread_of_blocks(LogEstimate(point=0.0, standard_error=float("nan"), n=1)) is None


def test_the_spread_of_blocks_is_the_deviation_of_their_ratios() -> None:
    estimate = log_ratio(Samples(made(100, 110, noise=0.05, blocks=200)), Metric.TPS, 0, 1)
    assert estimate is not None
    spread = spread_of_blocks(estimate)
    assert spread == pytest.approx(0.05 * 2**0.5, rel=0.15)


def test_an_arm_decided_early_is_compared_in_blocks_with_the_baseline() -> None:
    """In the first five blocks the host was twice as fast; only these blocks hold the second arm."""
    early = [rate_block(n, 2000.0 + n, 2400.0 - n, 2600.0 + n) for n in range(1, 6)]
    late = [rate_block(n, 1000.0 + n, None, 1300.0 - n) for n in range(6, 14)]
    one = plateau([*early, *late], Metric.TPS, look_rule(Design(seed=1), 2), range(3), MARGIN)
    assert one is not None
    assert one.best == 2


def test_an_unsupported_percentile_yields_a_plateau_of_all_arms() -> None:
    few = [rate_block(n, 100.0, 200.0, 400.0, transactions=60) for n in range(1, 11)]
    one = plateau(few, Metric.LATENCY_P95, RULE, range(3), MARGIN)
    assert one is not None
    assert one.arms == (0, 1, 2)
