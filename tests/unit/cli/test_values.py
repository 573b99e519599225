import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.cli.command import command_typed
from pgversus.cli.question import parse_variable
from pgversus.errors import StudyError


@pytest.mark.parametrize(
    ("text", "expected"), [("rows=1000", ("rows", "1000")), ("a=", ("a", "")), ("a=b=c", ("a", "b=c"))]
)
def test_a_variable_has_a_name_and_a_value(text: str, expected: tuple[str, str]) -> None:
    assert parse_variable(text) == expected


@pytest.mark.parametrize("text", ["", "rows", "=1", "=", "a b=1", "a-b=1"])
def test_a_variable_without_name_or_equals_sign_is_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_variable(text)
    assert caught.value.slug == "study-bad-variable"


@given(st.text())
def test_arbitrary_text_is_a_variable_or_a_study_error(text: str) -> None:
    try:
        name, value = parse_variable(text)
    except StudyError as error:
        assert error.found == f'"{text}"'  # noqa: PT017 - the other branch is not a failure
    else:
        assert f"{name}={value}" == text


def test_a_command_line_that_is_not_utf8_can_be_stored() -> None:
    assert command_typed(["compare", "--results", "r\udcff"]) == "pgversus compare --results 'r\ufffd'"
