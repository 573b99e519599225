import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.records.trials import Block, trial_of
from pgversus.study.metrics import Metric, StepTime
from pgversus.study.workload import Step
from tests.builders import operation_block, rate_block, vacuum, window

OPERATION = vacuum(Step(name="dump", program=("pg_dump", "-f", "db.sql")))
LATENCIES = st.lists(st.integers(1, 10**7), min_size=1, max_size=30)


@given(st.lists(LATENCIES, min_size=1, max_size=5))
def test_a_trial_is_the_sum_of_its_windows(groups: list[list[int]]) -> None:
    whole = trial_of(0, [window(group, seconds=2.0, failed=1) for group in groups])
    latencies = np.array([latency for group in groups for latency in group])
    assert whole.transactions == latencies.size
    assert whole.seconds == 2.0 * len(groups)
    assert whole.failed == len(groups)
    assert whole.tps == pytest.approx(latencies.size / (2.0 * len(groups)))
    assert whole.latency_mean_s == pytest.approx(latencies.mean() / 1e6)
    assert whole.latency_max_s == pytest.approx(latencies.max() / 1e6)
    assert whole.histogram.total == latencies.size


def test_a_stalled_window_is_weighted_by_its_time() -> None:
    whole = trial_of(0, [window([1000] * 100, seconds=1.0), window([1000] * 10, seconds=9.0)])
    assert whole.tps == pytest.approx(11.0)


def test_a_block_has_an_arm_only_with_its_trial() -> None:
    block = rate_block(1, 100.0, None, 90.0)
    assert block.has(0)
    assert block.has(0, 2)
    assert not block.has(1)
    assert not block.has(0, 1)
    assert not Block(number=2, trials={}).has(0)


def test_an_operation_has_times_and_no_quantities_of_loads() -> None:
    whole = operation_block(1, OPERATION, (1.5, 0.25)).trials[0]
    reported = {metric: whole.value(metric) for metric in Metric}
    assert {metric for metric, value in reported.items() if value is not None} == {Metric.TIME}
    assert whole.value(Metric.TIME) == 1.75
    assert [whole.value(StepTime(name)) for name in (OPERATION.steps[0].name, "dump", "other")] == [1.5, 0.25, None]


def test_a_load_has_no_time() -> None:
    whole = trial_of(0, [window([1000])])
    assert whole.value(Metric.TIME) is None
    assert whole.value(StepTime("vacuum")) is None
