import math
from dataclasses import replace

import numpy as np
import pytest

from pgversus.records.trials import Block, Trial, trial_of
from pgversus.stats.block_model import noise_parts, ratio_error
from pgversus.stats.effects import Samples, log_ratio
from pgversus.study.metrics import Metric
from tests.builders import window


def windows_of(arm: int, *tps: float) -> Trial:
    return trial_of(arm, [replace(window([1000]), transactions=round(1000 * one), seconds=1000.0) for one in tps])


def test_the_ratio_error_is_the_standard_error_over_quads() -> None:
    # Quads: (100, 100) and (110, 110), (100, 100) and (90, 90), and a round without its mirror.
    found = ratio_error(windows_of(0, 100, 100, 100, 100, 1), windows_of(1, 110, 110, 90, 90, 1))
    logs = [math.log(1.1), math.log(0.9)]
    assert found == pytest.approx(np.std(logs, ddof=1) / math.sqrt(2))


def test_noise_common_to_both_arms_of_a_quad_cancels() -> None:
    assert ratio_error(windows_of(0, 100, 50, 70, 20), windows_of(1, 110, 55, 77, 22)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("windows", [0, 1, 3])
def test_fewer_than_two_quads_have_no_error(windows: int) -> None:
    assert ratio_error(windows_of(0, *[100.0] * max(1, windows)), windows_of(1, *[100.0] * max(1, windows))) is None


def blocks(starts: float, within: float, seed: int = 1) -> list[Block]:
    rng = np.random.default_rng(seed)
    found = []
    for number in range(1, 61):
        base, luck = windows_of(0, *[1000.0] * 40), rng.normal(0, starts)
        other = windows_of(1, *(1000 * np.exp(luck + rng.normal(0, within, 40))))
        found.append(Block(number=number, trials={0: base, 1: other._replace(ratio_error=ratio_error(base, other))}))
    return found


@pytest.mark.parametrize(("starts", "within"), [(0.02, 0.06), (0.0, 0.1), (0.05, 0.01)])
def test_the_spread_is_split_into_its_simulated_parts(starts: float, within: float) -> None:
    made = blocks(starts, within)
    estimate = log_ratio(Samples(made), Metric.TPS, 0, 1)
    assert estimate is not None
    found = noise_parts(estimate, made, 1)
    assert found is not None
    assert found.windows == pytest.approx(within / math.sqrt(40), rel=0.1)
    assert found.starts == pytest.approx(starts, abs=0.006)


def test_the_spread_is_not_split_if_a_block_has_no_error() -> None:
    made = blocks(0.01, 0.01)[:3]
    estimate = log_ratio(Samples(made), Metric.TPS, 0, 1)
    assert estimate is not None
    bare = made[1].trials[1]._replace(ratio_error=None)
    assert noise_parts(estimate, [made[0], made[1]._replace(trials={**made[1].trials, 1: bare})], 1) is None
    assert noise_parts(estimate, [], 1) is None


def test_a_block_without_the_baseline_does_not_prevent_the_split() -> None:
    made = blocks(0.01, 0.01)[:5]
    estimate = log_ratio(Samples(made), Metric.TPS, 0, 1)
    assert estimate is not None
    alone = Block(number=6, trials={1: windows_of(1, 100.0, 100.0)})
    assert noise_parts(estimate, [*made, alone], 1) == noise_parts(estimate, made, 1)
