"""Counters are compared by blocks, per transaction if they grow with the load, and not if they are zero."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pgversus.records.trials import Block
from pgversus.stats.confidence import look_rule
from pgversus.stats.counters import CounterRatio, OneSidedCounter, counter_estimates, sure_ratios
from pgversus.study.counters import COUNTERS, REPORTED_BY_VACUUM
from pgversus.study.design import Design
from tests.builders import rate_block

RULE = look_rule(Design(), 1)


def arm_means(of: Sequence[Block], arm: int = 0) -> Mapping[str, float]:
    return counter_estimates(of, 2, RULE).arm_means[arm]


def ratios(of: Sequence[Block]) -> Mapping[str, CounterRatio]:
    return counter_estimates(of, 2, RULE).ratios[0]


def one_sided(of: Sequence[Block]) -> Mapping[str, OneSidedCounter]:
    return counter_estimates(of, 2, RULE).one_sided[0]


def blocks(*counters: Sequence[Mapping[str, float]]) -> list[Block]:
    """Return blocks with the counters of each arm; every trial has 100 transactions."""
    made = []
    for number, arms in enumerate(counters, 1):
        block = rate_block(number, *(1000.0 for _ in arms))
        trials = {arm: block.trials[arm]._replace(counters=found) for arm, found in enumerate(arms)}
        made.append(block._replace(trials=trials))
    return made


def test_counters_that_grow_with_the_load_are_per_transaction() -> None:
    found = arm_means(blocks(*[[{"wal_bytes": 5000.0, "server_memory_peak_bytes": 7e6}]] * 3))
    assert found == {"wal_bytes": 50.0, "server_memory_peak_bytes": 7e6}


def test_a_counter_missing_in_one_block_is_absent() -> None:
    assert arm_means(blocks([{"wal_bytes": 1.0}], [{}])) == {}
    assert arm_means([]) == {}


def test_the_interval_of_a_certain_ratio_excludes_one() -> None:
    swing = (1.0, 1.01, 0.99, 1.005, 0.995)
    found = ratios(
        blocks(
            *[
                [{"wal_bytes": 100.0 * s, "temp_bytes": 10.0}, {"wal_bytes": 200.0, "temp_bytes": 10.0 * s}]
                for s in swing
            ]
        )
    )
    wal, temp = found["wal_bytes"], found["temp_bytes"]
    assert wal.value == pytest.approx(2.0, rel=0.01)
    assert wal.is_sure
    assert wal.low is not None
    assert 1.9 < wal.low < wal.value
    assert not temp.is_sure
    assert list(sure_ratios(found)) == ["wal_bytes"]


def test_a_zero_counter_has_no_ratio() -> None:
    pair = [{"temp_bytes": 0.0, "wal_bytes": 1.0}, {"temp_bytes": 5.0, "wal_bytes": 1.0}]
    assert set(ratios(blocks(*[pair] * 4))) == {"wal_bytes"}
    assert ratios([]) == {}


def test_before_the_first_look_there_is_no_interval() -> None:
    pair = [{"wal_bytes": 1.0}, {"wal_bytes": 2.0}]
    found = ratios(blocks(*[pair] * 3))["wal_bytes"]
    assert (found.low, found.high, found.is_sure) == (None, None, False)


def test_a_block_without_an_arm_counts_only_for_the_other() -> None:
    pair = [{"wal_bytes": 100.0}, {"wal_bytes": 300.0}]
    whole = blocks(*[pair] * 4)
    lost = blocks([{"wal_bytes": 600.0}])[0]._replace(number=5)
    assert arm_means([*whole, lost]) == {"wal_bytes": 2.0}
    assert arm_means([*whole, lost], arm=1) == {"wal_bytes": 3.0}
    assert ratios([*whole, lost])["wal_bytes"].value == pytest.approx(3.0)
    assert ratios([lost]) == {}
    assert arm_means([lost], arm=1) == {}


def test_all_counters_together_use_a_stricter_rule_than_one() -> None:
    swing = (1.0, 1.15, 0.9, 1.1, 0.95, 1.05)
    found = ratios(blocks(*[[{"wal_bytes": 100.0}, {"wal_bytes": 150.0 * s}] for s in swing]))["wal_bytes"]
    assert found.low is not None
    assert found.low > 1
    assert not found.is_sure


@pytest.mark.parametrize("arm", [0, 1])
def test_a_one_sided_counter_has_no_ratio_and_becomes_certain(arm: int) -> None:
    def found(*values: float) -> tuple[bool, float, float] | None:
        pairs = [[{"temp_files": value if arm == side else 0.0} for side in (0, 1)] for value in values]
        result = one_sided(blocks(*pairs)).get("temp_files")
        return None if result is None else (result.is_sure, result.baseline, result.contender)

    expected = (0.12 * 1000, 0.0) if arm == 0 else (0.0, 0.12 * 1000)
    assert found(*[12_000.0] * 5) == (True, *expected)
    assert found(*[12_000.0] * 3) == (False, *expected), "before the first look"
    # One event per block may be chance, even if it is regular, and so may values that vary between blocks.
    assert found(1.0, 1.0, 1.0, 1.0, 1.0) == (False, *(value / 12_000 for value in expected))
    assert (found(100.0, 12_000.0, 30_000.0, 500.0, 9000.0) or (True,))[0] is False
    assert found(12_000.0, 0.0, 12_000.0, 12_000.0) is None


def test_a_counter_on_both_sides_or_missing_is_not_one_sided() -> None:
    both = [{"temp_files": 5.0}, {"temp_files": 5.0}]
    assert one_sided(blocks(*[both] * 5)) == {}
    assert one_sided(blocks(*[[{}, {"temp_files": 5.0}]] * 5)) == {}
    assert one_sided([]) == {}


def test_vacuum_counters_are_only_tested_if_reported() -> None:
    of_load = len(COUNTERS) - len(REPORTED_BY_VACUUM)
    n = 5
    # In between: certain among the counters of a load, but not among all counters.
    errors = sum(RULE.shared_by(quantities).critical_value(n) for quantities in (of_load, len(COUNTERS))) / 2
    steps = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / 1000
    logs = steps + errors * steps.std(ddof=1) / np.sqrt(n)
    load = blocks(*[[{"wal_bytes": 1.0}, {"wal_bytes": value}] for value in np.exp(logs).tolist()])
    assert ratios(load)["wal_bytes"].is_sure
    reported = {"vacuum_index_scans": 1.0}
    vacuum = blocks(*[[{"wal_bytes": 1.0} | reported, {"wal_bytes": value}] for value in np.exp(logs).tolist()])
    assert not ratios(vacuum)["wal_bytes"].is_sure


def test_counters_of_blocks_are_compared_in_bytes_if_the_blocks_differ_in_size() -> None:
    alike = [{"buffers_read": 400.0, "wal_records": 400.0}, {"buffers_read": 100.0, "wal_records": 100.0}]
    found = counter_estimates(blocks(*[alike] * 4), 2, RULE, (8192, 32768))
    assert [dict(means) for means in found.arm_means] == [
        {"buffers_read_bytes": 4 * 8192.0, "wal_records": 4.0},
        {"buffers_read_bytes": 32768.0, "wal_records": 1.0},
    ]
    assert {name: ratio.value for name, ratio in found.ratios[0].items()} == pytest.approx(
        {"buffers_read_bytes": 1.0, "wal_records": 0.25}
    )


@pytest.mark.parametrize("sizes", [(), (32768, 32768), (None, None)])
def test_counters_of_blocks_of_one_size_are_counts(sizes: tuple[int | None, ...]) -> None:
    pair = [{"buffers_read": 400.0}, {"buffers_read": 100.0}]
    assert counter_estimates(blocks(*[pair] * 4), 2, RULE, sizes).ratios[0]["buffers_read"].value == 0.25


def test_blocks_of_unknown_size_are_not_compared_with_others() -> None:
    pair = [{"buffers_read": 400.0, "buffers_hit": 0.0}, {"buffers_read": 100.0, "buffers_hit": 9.0}]
    found = counter_estimates(blocks(*[pair] * 4), 2, RULE, (8192, None))
    assert [dict(means) for means in found.arm_means] == [{"buffers_read_bytes": 32768.0, "buffers_hit_bytes": 0.0}, {}]
    assert (found.ratios[0], found.one_sided[0]) == ({}, {})


def test_bytes_on_one_side_count_as_events_of_its_own_block_size() -> None:
    # 256 blocks of 8 kB, but 64 of 32 kB, from which no mean is known precisely enough.
    pair = [{"temp_bytes": 0.0}, {"temp_bytes": 32 * 8192.0}]
    sure = [
        counter_estimates(blocks(*[pair] * 8), 2, RULE, (size, size)).one_sided[0]["temp_bytes"].is_sure
        for size in (8192, 32768)
    ]
    assert sure == [True, False]
