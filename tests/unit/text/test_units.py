import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.text.translation import Language, use_language
from pgversus.text.units import (
    WindowLength,
    change,
    changes,
    duration,
    latency,
    parse_duration,
    parse_pin,
    parse_precision,
    parse_processors,
    parse_share,
    parse_size,
    parse_window,
    percent,
    percent_above,
    plus_minus,
    ratio_texts,
    significant,
    size,
)

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
def test_numbers_have_the_requested_significant_digits(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(999, "999 bytes"), (999_499, "999 kB"), (999_999, "1 MB"), (999_999_999, "1 GB"), (999_999_999_999, "1 TB")],
)
def test_a_size_has_the_unit_that_suits_the_rounded_number(number: float, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.07, "7.0 %"), (0.14, "14.0 %"), (0.0701, "7.1 %"), (1.1, "110 %"), (1.101, "111 %")]
)
def test_a_bound_in_percent_is_rounded_up_only_if_necessary(share: float, text: str) -> None:
    assert percent_above(share) == text


def test_thousands_are_separated_as_usual_in_the_language() -> None:
    with use_language(Language.JAPANESE):
        assert (significant(1234567, 4), latency(0.9996), latency(1234.5)) == ("1,235,000", "1 秒", "1,230 秒")


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
def test_latencies_have_a_suitable_unit(seconds: float, text: str) -> None:
    assert latency(seconds) == text


@given(st.floats(1e-6, 1000))
def test_a_latency_round_trips_within_rounding(seconds: float) -> None:
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
def test_durations_have_at_most_two_units(seconds: float, text: str) -> None:
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
        (0.00004, "0.004 %", "+0.004 %"),
        (-0.00004, "-0.004 %", "-0.004 %"),
        (0.000004, "0.0 %", "+0.0 %"),
        (0, "0.0 %", "+0.0 %"),
    ],
)
def test_shares_are_formatted_as_percent(share: float, text: str, signed_text: str) -> None:
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
def test_small_ratios_are_percent_and_large_ones_factors(ratio: float, text: str) -> None:
    assert change(ratio) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.98, 1.03, "+1.0 % [-2.0 %, +3.0 %]"),
        (0.99, 2.4, "1.01x [0.99x, 2.4x]"),
        (0.4, 1.9, "+1.0 % [-60.0 %, +90.0 %]"),
        (0.001, 200.0, "+1.0 % "),
        (None, 1.0, "+1.0 % "),
        (1.0, None, "+1.0 % "),
        (None, None, "+1.0 % "),
    ],
)
def test_a_ratio_and_its_bounds_have_the_same_form(low: float | None, high: float | None, text: str) -> None:
    shown = ratio_texts(1.01, low, high)
    assert f"{shown.value} {shown.interval}" == text


def test_bounds_that_are_far_apart_have_the_same_form_as_the_ratio() -> None:
    assert changes(2.81, 1.75, 4.51) == ("2.81x", "1.75x", "4.51x")
    assert changes(1.2, 0.0001, 1.9) == ("+20.0 %", "-99.9900 %", "+90.0 %")
    assert changes(1.0, 0.001, 200.0) == ("1x", "0.001x", "200x")


def test_one_form_can_be_required_for_several_ratios() -> None:
    assert ratio_texts(1.5, 1.4, 1.6, as_factors=True) == ("1.5x", "1.4x", "1.6x")
    assert ratio_texts(1.9, 1.4, 2.5, as_factors=False) == ("+90.0 %", "+40.0 %", "+150 %")


@given(st.floats(0.01, 100))
def test_a_ratio_round_trips_within_rounding(ratio: float) -> None:
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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7200), ("1.5h", 5400), (" 2 m ", 120), ("0.5", 0.5)],
)
def test_durations_are_parsed_to_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "5d", "m", "1h30m", "1e3", "1,5", "inf", "nan", ".5", "5."])
def test_texts_that_are_not_durations_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_duration(text, "--budget")
    assert caught.value.slug == "study-bad-duration"
    assert caught.value.where == f"--budget {text}"
    assert parse_duration(caught.value.to_do.removeprefix("--budget "), "--budget") == 900


@given(st.integers(1, 720), st.sampled_from([("", 1), ("s", 1), ("m", 60), ("h", 3600)]))
def test_every_duration_unit_is_converted_to_seconds(count: int, unit: tuple[str, int]) -> None:
    assert parse_duration(f"{count}{unit[0]}", "--budget") == count * unit[1]


@pytest.mark.parametrize("text", ["721h", "999999999h", "2592001"])
def test_more_than_thirty_days_is_rejected(text: str) -> None:
    with pytest.raises(StudyError):
        parse_duration(text, "--budget")


@pytest.mark.parametrize(
    ("text", "share"), [("2%", 0.02), ("2", 0.02), ("0.5%", 0.005), ("100", 1.0), (" 3 % ", 0.03), ("1", 0.01)]
)
def test_shares_are_parsed_with_or_without_percent_sign(text: str, share: float) -> None:
    assert parse_share(text, "--margin") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "0", "0%", "-2", "101", "100.1%", "two", "%", "2%%", "1e1", "nan"])
def test_texts_that_are_not_margins_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_share(text, "--margin")
    assert caught.value.slug == "study-bad-margin"
    with pytest.raises(StudyError, match="invalid precision") as caught:
        parse_precision(text, "--precision")
    assert caught.value.slug == "study-bad-precision"


@pytest.mark.parametrize(
    ("text", "meant"), [("0.02", "--margin 0.02% or --margin 2%"), ("0.5", "--margin 0.5% or --margin 50%")]
)
def test_a_fraction_is_rejected_with_a_percent_suggestion(text: str, meant: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_share(text, "--margin")
    assert caught.value.to_do == meant


@given(st.text() | st.from_regex(r"\s?\d{0,30}\.?\d{0,5}\s?(s|m|min|h|%)?"))
def test_any_text_is_a_positive_number_or_a_study_error(text: str) -> None:
    try:
        seconds = parse_duration(text, "--budget")
    except StudyError as error:
        assert error.found == f'"{text}"'  # noqa: PT017 - the other branch does not fail
    else:
        assert 0 < seconds < math.inf
    try:
        share = parse_share(text, "--margin")
    except StudyError as error:
        assert error.found == f'"{text}"'  # noqa: PT017 - the other branch does not fail
    else:
        assert 0 < share <= 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("500MB", 500_000_000), (" 1.5 gb ", 1_500_000_000), ("20kB", 20_000), ("2TB", 2 * 10**12)],
)
def test_sizes_are_parsed_in_powers_of_ten(text: str, size: int) -> None:
    assert parse_size(text, "SIZE") == size


@pytest.mark.parametrize("text", ["", "5", "GB", "-1GB", "5 GiB", "5GBs", "1e3MB", "inf"])
def test_texts_that_are_not_sizes_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_size(text, "SIZE")
    assert caught.value.slug == "study-bad-size"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("50ms", WindowLength(seconds=0.05)),
        (" 5 ms ", WindowLength(seconds=0.005)),
        ("999ms", WindowLength(seconds=0.999)),
        ("2000ms", WindowLength(seconds=2.0)),
        ("2s", WindowLength(seconds=2.0)),
        ("1", WindowLength(seconds=1.0)),
        ("1m", WindowLength(seconds=60.0)),
        ("20tx", WindowLength(transactions=20)),
    ],
)
def test_a_window_is_a_duration_or_a_number_of_transactions(text: str, length: WindowLength) -> None:
    assert parse_window(text, "--window") == length


@pytest.mark.parametrize("text", ["4ms", "0ms", "1500ms", "0tx", "-1tx", "1.5tx", "0.5", "1.5s"])
def test_invalid_windows_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_window(text, "--window")
    assert caught.value.slug in ("study-bad-window", "study-bad-duration")
    parse_window(caught.value.to_do.split()[-1], "--window")


@pytest.mark.parametrize(
    ("text", "found"), [("0", (0,)), ("2,0", (0, 2)), ("0-3", (0, 1, 2, 3)), ("1-2,2,7", (1, 2, 7))]
)
def test_cpu_lists_are_parsed(text: str, found: tuple[int, ...]) -> None:
    assert parse_processors(text, "--pin") == found
    assert parse_pin(text, "--pin") == text


@pytest.mark.parametrize("text", ["", "a", "-1", "0,", "3-1", "0,3-1", "0 1", "on"])
def test_texts_that_are_not_cpu_lists_are_rejected(text: str) -> None:
    for parse in (parse_processors, parse_pin):
        with pytest.raises(StudyError) as caught:
            parse(text, "--pin")
        assert caught.value.slug == "study-bad-pin"
    assert [parse_pin(one, "--pin") for one in ("auto", "off")] == ["auto", "off"]
