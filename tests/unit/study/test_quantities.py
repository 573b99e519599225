import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.quantities import (
    WindowLength,
    parse_duration,
    parse_pin,
    parse_processors,
    parse_share,
    parse_size,
    parse_window,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7200), ("1.5h", 5400), (" 2 m ", 120), ("0.5", 0.5)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text, "--budget") == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5", "5d", "m", "1h30m", "1e3", "1,5", "inf", "nan", ".5", "5."])
def test_anything_else_is_no_length_of_time(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_duration(text, "--budget")
    assert caught.value.slug == "study-bad-duration"
    assert caught.value.where == f"--budget {text}"
    assert parse_duration(caught.value.to_do.removeprefix("--budget "), "--budget") == 900


@given(st.integers(1, 720), st.sampled_from([("", 1), ("s", 1), ("m", 60), ("h", 3600)]))
def test_every_unit_is_a_number_of_seconds(count: int, unit: tuple[str, int]) -> None:
    assert parse_duration(f"{count}{unit[0]}", "--budget") == count * unit[1]


@pytest.mark.parametrize("text", ["721h", "999999999h", "2592001"])
def test_more_than_thirty_days_is_no_budget(text: str) -> None:
    with pytest.raises(StudyError):
        parse_duration(text, "--budget")


@pytest.mark.parametrize(
    ("text", "share"), [("2%", 0.02), ("2", 0.02), ("0.5%", 0.005), ("100", 1.0), (" 3 % ", 0.03), ("1", 0.01)]
)
def test_shares_are_percent_with_or_without_the_sign(text: str, share: float) -> None:
    assert parse_share(text, "--margin") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "0", "0%", "-2", "101", "100.1%", "two", "%", "2%%", "1e1", "nan"])
def test_anything_else_is_no_margin(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_share(text, "--margin")
    assert caught.value.slug == "study-bad-margin"


@pytest.mark.parametrize(
    ("text", "meant"), [("0.02", "--margin 0.02% or --margin 2%"), ("0.5", "--margin 0.5% or --margin 50%")]
)
def test_a_fraction_is_asked_back_as_percent(text: str, meant: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_share(text, "--margin")
    assert caught.value.to_do == meant


@given(st.text() | st.from_regex(r"\s?\d{0,30}\.?\d{0,5}\s?(s|m|min|h|%)?"))
def test_garbage_is_a_study_error_or_a_positive_number_and_nothing_else(text: str) -> None:
    try:
        seconds = parse_duration(text, "--budget")
    except StudyError as error:
        assert error.found == f'"{text}"'  # noqa: PT017 - the other branch is no failure
    else:
        assert 0 < seconds < math.inf
    try:
        share = parse_share(text, "--margin")
    except StudyError as error:
        assert error.found == f'"{text}"'  # noqa: PT017 - the other branch is no failure
    else:
        assert 0 < share <= 1


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("500MB", 500_000_000), (" 1.5 gb ", 1_500_000_000), ("20kB", 20_000), ("2TB", 2 * 10**12)],
)
def test_sizes_are_bytes_in_powers_of_ten(text: str, size: int) -> None:
    assert parse_size(text, "SIZE") == size


@pytest.mark.parametrize("text", ["", "5", "GB", "-1GB", "5 GiB", "5GBs", "1e3MB", "inf"])
def test_anything_else_is_no_size(text: str) -> None:
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
def test_a_window_is_a_length_of_time_or_a_number_of_transactions(text: str, length: WindowLength) -> None:
    assert parse_window(text, "--window") == length


@pytest.mark.parametrize("text", ["4ms", "0ms", "1500ms", "0tx", "-1tx", "1.5tx", "0.5", "1.5s"])
def test_windows_that_cannot_be_measured_are_refused(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_window(text, "--window")
    assert caught.value.slug in ("study-bad-window", "study-bad-duration")
    parse_window(caught.value.to_do.split()[-1], "--window")


@pytest.mark.parametrize(
    ("text", "found"), [("0", (0,)), ("2,0", (0, 2)), ("0-3", (0, 1, 2, 3)), ("1-2,2,7", (1, 2, 7))]
)
def test_processors_are_listed_by_number(text: str, found: tuple[int, ...]) -> None:
    assert parse_processors(text, "--pin") == found
    assert parse_pin(text, "--pin") == text


@pytest.mark.parametrize("text", ["", "a", "-1", "0,", "3-1", "0 1", "on"])
def test_anything_else_is_no_list_of_processors(text: str) -> None:
    for parse in (parse_processors, parse_pin):
        with pytest.raises(StudyError) as caught:
            parse(text, "--pin")
        assert caught.value.slug == "study-bad-pin"
    assert [parse_pin(one, "--pin") for one in ("auto", "off")] == ["auto", "off"]
