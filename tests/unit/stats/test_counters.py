from hypothesis import given
from hypothesis import strategies as st

from pgversus.stats.counters import difference
from pgversus.study.counters import COUNTERS, CounterUnit

READINGS = st.dictionaries(st.sampled_from(sorted(COUNTERS)), st.integers(min_value=0, max_value=2**53).map(float))
UNITS = {"bytes": CounterUnit.BYTES, "s": CounterUnit.SECONDS}


@given(READINGS, READINGS)
def test_growth_added_to_the_first_reading_is_the_second(before: dict[str, float], after: dict[str, float]) -> None:
    for name, growth in difference(before, after).items():
        assert growth >= 0
        assert before[name] + growth == after[name]


@given(READINGS)
def test_a_counter_that_stands_still_has_grown_by_zero_and_is_there(reading: dict[str, float]) -> None:
    assert difference(reading, reading) == dict.fromkeys(reading, 0)


def test_a_counter_that_went_backwards_is_absent() -> None:
    assert difference({"wal_bytes": 10, "deadlocks": 1}, {"wal_bytes": 9, "deadlocks": 3}) == {"deadlocks": 2}


def test_a_counter_that_is_missing_on_one_side_is_absent() -> None:
    assert difference({"wal_bytes": 10}, {"deadlocks": 3}) == {}


def test_every_name_carries_its_unit() -> None:
    for name, counter in COUNTERS.items():
        assert counter.unit is UNITS.get(name.rpartition("_")[2], CounterUnit.COUNT), name


def test_every_description_is_one_line_of_its_own() -> None:
    descriptions = [counter.description for counter in COUNTERS.values()]
    assert len(set(descriptions)) == len(descriptions)
    assert all(text and "\n" not in text and len(text) < 100 for text in descriptions)
