import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.report.units import change, change_interval, duration, latency, percent, plus_minus, significant

POSITIVE = st.floats(1e-3, 1e9)


def number(text: str) -> float:
    return float(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (1, 3, "1"),
        (1.234, 3, "1.23"),
        (12.34, 3, "12.3"),
        (123.4, 3, "123"),
        (1234, 3, "1 230"),
        (12345, 4, "12 340"),
        (1234567, 4, "1 235 000"),
        (999.6, 3, "1 000"),
        (0.01234, 3, "0.0123"),
        (0.00001234, 1, "0.00001"),
        (-1234, 3, "-1 230"),
    ],
)
def test_numbers_have_so_many_significant_digits(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@given(POSITIVE, st.integers(1, 6))
def test_rounding_stays_within_half_of_the_last_digit(value: float, digits: int) -> None:
    shown = number(significant(value, digits))
    last = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    assert abs(shown - value) <= max(last, 1e-6) * 0.5000001


@given(st.floats(-1e15, 1e15), st.integers(1, 6))
def test_no_number_has_an_exponent(value: float, digits: int) -> None:
    assert "e" not in significant(value, digits).lower()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00005, "50 µs"),
        (0.0001234, "123 µs"),
        (0.00123, "1.23 ms"),
        (0.1234, "123 ms"),
        (1.0, "1 s"),
        (12.345, "12.3 s"),
    ],
)
def test_latencies_have_the_unit_that_fits(seconds: float, text: str) -> None:
    assert latency(seconds) == text


@given(st.floats(1e-6, 1000))
def test_a_latency_reads_back_within_its_rounding(seconds: float) -> None:
    value, _, unit = latency(seconds).rpartition(" ")
    assert number(value) * {"µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit] == pytest.approx(seconds, rel=0.006)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (44.4, "44 s"),
        (59.7, "1 min"),
        (60, "1 min"),
        (616, "10 min 16 s"),
        (3599.7, "1 h"),
        (7500, "2 h 5 min"),
        (7199, "2 h"),
        (90000, "25 h"),
    ],
)
def test_spans_of_time_are_read_in_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "text", "signed_text"),
    [
        (0.031, "3.1 %", "+3.1 %"),
        (-0.031, "-3.1 %", "-3.1 %"),
        (0.0012, "0.12 %", "+0.12 %"),
        (0.123, "12.3 %", "+12.3 %"),
        (1.5, "150 %", "+150 %"),
        (0.9996, "100 %", "+100 %"),
        (0, "0.0 %", "+0.0 %"),
    ],
)
def test_shares_are_percent(share: float, text: str, signed_text: str) -> None:
    assert percent(share) == text
    assert percent(share, signed=True) == signed_text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.031, "+3.1 %"),
        (0.969, "-3.1 %"),
        (1.0, "+0.0 %"),
        (1.99, "+99.0 %"),
        (2.0, "2x"),
        (2.4, "2.4x"),
        (0.5, "-50.0 %"),
        (0.51, "-49.0 %"),
        (1234.0, "1 230x"),
    ],
)
def test_a_ratio_near_one_is_percent_and_a_large_one_a_factor(ratio: float, text: str) -> None:
    assert change(ratio) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.98, 1.03, "[-2.0 %, +3.0 %]"),
        (1.9, 2.4, "[1.9x, 2.4x]"),
        (0.4, 0.9, "[-60.0 %, -10.0 %]"),
        (0.001, 200.0, ""),
        (None, 1.0, ""),
        (1.0, None, ""),
        (None, None, ""),
    ],
)
def test_both_bounds_have_one_form(low: float | None, high: float | None, text: str) -> None:
    assert change_interval(low, high) == text


@given(st.floats(0.01, 100))
def test_a_ratio_reads_back_within_its_rounding(ratio: float) -> None:
    text = change(ratio)
    read = number(text[:-1]) if text.endswith("x") else 1 + number(text.removesuffix(" %")) / 100
    assert read == pytest.approx(ratio, rel=0.006)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (100.0, 97.0, 102.0, "±3.0 %"),
        (100.0, 99.0, 104.0, "±4.0 %"),
        (100.0, 50.0, 250.0, "±150 %"),
        (100.0, None, None, ""),
        (0.0, 0.0, 1.0, ""),
    ],
)
def test_plus_minus_is_the_larger_distance(value: float, low: float | None, high: float | None, text: str) -> None:
    assert plus_minus(value, low, high) == text
