"""Only foreign load reported by the host causes a round to be repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.stats.counters import difference, is_disturbed
from pgversus.study.counters import COUNTERS

READINGS = st.dictionaries(st.sampled_from(sorted(COUNTERS)), st.integers(min_value=0, max_value=2**53).map(float))


@given(READINGS, READINGS)
def test_first_reading_plus_growth_is_the_second_reading(before: dict[str, float], after: dict[str, float]) -> None:
    for name, growth in difference(before, after).items():
        assert growth >= 0
        assert before[name] + growth == after[name]


@given(READINGS)
def test_an_unchanged_counter_has_zero_growth(reading: dict[str, float]) -> None:
    assert difference(reading, reading) == dict.fromkeys(reading, 0)


def test_a_counter_that_decreased_is_omitted() -> None:
    assert difference({"wal_bytes": 10, "deadlocks": 1}, {"wal_bytes": 9, "deadlocks": 3}) == {"deadlocks": 2}


def test_a_counter_missing_in_one_reading_is_omitted() -> None:
    assert difference({"wal_bytes": 10}, {"deadlocks": 3}) == {}


def test_every_description_is_one_unique_line() -> None:
    descriptions = [counter.description for counter in COUNTERS.values()]
    assert len(set(descriptions)) == len(descriptions)
    assert all(text and "\n" not in text and len(text) < 100 for text in descriptions)


OURS = {
    "server_cpu_user_s": 0.7,
    "server_cpu_system_s": 0.2,
    "client_cpu_s": 0.1,
    "client_cpu_user_s": 0.05,
    "host_cpu_s": 1.0,
    "host_cpu_user_s": 0.75,
    "host_steal_s": 0.0,
}


def test_a_quiet_host_is_not_disturbed() -> None:
    assert not is_disturbed(OURS, 1.0, 2)


@pytest.mark.parametrize(
    ("name", "too_much", "bearable"), [("host_cpu_user_s", 0.96, 0.94), ("host_steal_s", 0.11, 0.09)]
)
def test_foreign_load_beyond_the_limit_is_a_disturbance(name: str, too_much: float, bearable: float) -> None:
    assert is_disturbed(OURS | {name: too_much}, 1.0, 2)
    assert not is_disturbed(OURS | {name: bearable}, 1.0, 2)
    assert not is_disturbed(OURS | {name: too_much}, 2.0, 2)


def test_missing_counters_are_not_a_disturbance() -> None:
    assert not is_disturbed({}, 1.0, 2)
    assert not is_disturbed({"host_cpu_user_s": 2.0}, 1.0, 2), "it may all have been ours"


def test_kernel_threads_are_not_counted_as_foreign() -> None:
    # The kernel encrypts and writes back data of a server; no process of the server is charged for it.
    assert not is_disturbed(OURS | {"host_cpu_s": 2.0}, 1.0, 2)


def test_a_few_clock_ticks_in_a_short_window_are_not_a_disturbance() -> None:
    assert not is_disturbed(OURS | {"host_cpu_user_s": 0.79, "host_steal_s": 0.04}, 0.05, 2)
    assert is_disturbed(OURS | {"host_steal_s": 0.06}, 0.05, 2)
