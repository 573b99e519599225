import re

import pytest

from pgversus.statements.literals import literal, logged_values, parameters_in, with_casts, with_lists, with_literals


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$1 = '5'", ("5",)),
        ("$1 = '5', $2 = NULL, $3 = 'it''s'", ("5", None, "it's")),
        ("$1 = 'a, $2 = ''b''', $2 = 'NULL'", ("a, $2 = 'b'", "NULL")),
        ("$1 = 'two\nlines'", ("two\nlines",)),
        ("$1 = ''", ("",)),
        ("", ()),
    ],
)
def test_logged_values_are_read(text: str, values: tuple[str | None, ...]) -> None:
    assert logged_values(text) == values


@pytest.mark.parametrize(
    "text",
    ["$1 = 'cut off...'", "$2 = '5'", "$1 = '5', $3 = '6'", "$1 = 5", "$1 = 'open", "$1 = '5' and more", "anything"],
)
def test_incomplete_values_are_not_read(text: str) -> None:
    assert logged_values(text) is None


@pytest.mark.parametrize(
    ("text", "highest"),
    [
        ("SELECT $1, $2", 2),
        ("SELECT '$3', \"$4\", $$ $5 $$, $tag$ $6 $tag$ /* $7 */ -- $8", 0),
        ("SELECT a$1 FROM t", 0),
        ("SELECT E'\\'$1', $2", 2),
        ("SELECT 1", 0),
    ],
)
def test_parameters_are_counted_outside_of_quotes(text: str, highest: int) -> None:
    assert parameters_in(text) == highest


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("5", "'5'"),
        (None, "NULL"),
        ("it's", "'it''s'"),
        ("a\\b'", " E'a\\\\b'''"),
        ("; DROP TABLE t", "'; DROP TABLE t'"),
    ],
)
def test_a_value_becomes_one_literal(value: str | None, text: str) -> None:
    assert literal(value) == text


def test_literals_take_the_places_of_parameters() -> None:
    text = "SELECT '$1' FROM t WHERE a = $2 AND b = $1 AND c LIKE E'\\\\' || $10"
    values = ("1", "two", *[None] * 7, "ten")
    assert with_literals(text, values) == "SELECT '$1' FROM t WHERE a = 'two' AND b = '1' AND c LIKE E'\\\\' || 'ten'"


@pytest.mark.parametrize(
    ("text", "cast"),
    [
        ("SELECT now() - interval $1", "SELECT now() - $1::interval"),
        ("SELECT TIMESTAMP WITH TIME ZONE $2, date  $1", "SELECT $2::TIMESTAMP WITH TIME ZONE, $1::date"),
        ("SELECT timestamp(3) $1, jsonb $2", "SELECT $1::timestamp(3), $2::jsonb"),
        ("SELECT EXTRACT($1 FROM day), a", "SELECT date_part($1, day), a"),
        # Not the name of a type, and not a parameter.
        ("SELECT date, $1 FROM t WHERE update $2", "SELECT date, $1 FROM t WHERE update $2"),
        ("SELECT 'interval $1', $1", "SELECT 'interval $1', $1"),
        ("SELECT extract(day FROM $1)", "SELECT extract(day FROM $1)"),
    ],
)
def test_parameters_after_the_name_of_a_type_are_cast(text: str, cast: str) -> None:
    assert with_casts(text) == cast


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        (
            "a IN ($1 /*, ... */) AND b = $2",
            f"a IN ($1, {', '.join(f'${n}' for n in range(3, 12))} /*, ... */) AND b = $2",
        ),
        ("a = ANY (ARRAY[$1 /*, ... */])", f"a = ANY (ARRAY[{', '.join(f'${n}' for n in range(1, 11))} /*, ... */])"),
        ("a IN ($1, $2 /*, ... */)", "a IN ($1, $2 /*, ... */)"),
        ("'($1 /*, ... */)' = $1", "'($1 /*, ... */)' = $1"),
        ("$1 /*, ... */", "$1 /*, ... */"),
    ],
)
def test_lists_of_unknown_length_have_ten_parameters(text: str, listed: str) -> None:
    assert with_lists(text) == listed
    assert with_lists(listed) == listed


def test_two_lists_have_different_parameters() -> None:
    text = with_lists("a IN ($1 /*, ... */) AND b IN ($2 /*, ... */)")
    assert sorted(map(int, re.findall(r"\$(\d+)", text))) == list(range(1, 21))
