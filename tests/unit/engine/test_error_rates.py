"""Simulated percentiles, operations, cold caches and attributions. Full size: make bench-error-rates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.error_rates import ATTRIBUTED, KINDS, attributed, holds
from benchmarks.simulated_host import HOSTS, HostSpeed
from benchmarks.simulated_loads import queued
from benchmarks.simulated_study import finished_context
from pgversus.stats.effects import log_ratio

pytestmark = pytest.mark.slow

STUDIES = 12


@pytest.mark.parametrize("name", sorted(KINDS))
def test_each_kind_of_load_has_the_effect_that_it_claims_to_have(name: str) -> None:
    kind = KINDS[name]
    metric = kind.shown or kind.design.metric
    found = []
    for seed in range(STUDIES):
        state = finished_context("quiet", (1.3,), replace(kind.design, fixed_blocks=4), seed, host_type=kind.host_type)
        ratio = log_ratio(state.samples, metric, 0, 1)
        assert ratio is not None
        found.append(ratio.point)
    truth = math.log(1.3) if metric.more_is_better else -math.log(1.3)
    error = float(np.std(found, ddof=1)) / math.sqrt(STUDIES)
    assert 0 < error < 0.04
    assert abs(float(np.mean(found)) - truth) < 4 * error


@pytest.mark.parametrize("name", sorted(ATTRIBUTED))
def test_an_attribution_usually_includes_its_true_value_but_not_that_of_other_effects(name: str) -> None:
    found = [attributed(name, "quiet", 8, seed) for seed in range(STUDIES)]
    plans, rest = ATTRIBUTED[name]
    assert sum(not holds(one, plans, rest) for one in found) <= STUDIES * 0.05 + 3 * math.sqrt(STUDIES * 0.05 * 0.95)
    assert not any(holds(one, plans * 1.1, rest) or holds(one, plans, rest * 1.1) for one in found)


def test_a_queue_serves_one_request_after_the_other() -> None:
    rng = np.random.default_rng(1)
    service_s, gaps_s = rng.exponential(0.8, 500), rng.exponential(1.0, 500)
    free_at = arrival = 0.0
    expected = []
    for service, gap in zip(service_s, gaps_s, strict=True):
        arrival += gap
        free_at = max(free_at, arrival) + service
        expected.append(free_at - arrival)
    assert queued(service_s, gaps_s) == pytest.approx(expected)


def test_the_moment_of_an_amount_of_work_is_the_inverse_of_the_work_at_a_moment() -> None:
    speed = HostSpeed(np.random.default_rng(1), HOSTS["rough"])
    for at_s in (0.0, 0.004, 0.01, 1.2345, 80.0):
        assert speed.moment_of(speed.work(at_s)) == pytest.approx(at_s, abs=1e-9)
