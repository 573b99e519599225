"""The ends of strings, names and comments in SQL are found in linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.study.steps import statement_step
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.text.sql import Quotes, without_comments, without_quoted
from tests.bounded import processor_time

LONG = 100_000
SIMPLE = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""A reference expression, which takes quadratic time for unclosed parts."""


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT 'it''s; --' || 'x'", "SELECT  || "),
        ('"a;""b" c', " c"),
        ("$$ ; $$ x $a$ $$ $b$ $a$ y", " x  y"),
        ("a -- b\nc", "a \nc"),
        ("a /* b */ c /* d", "a  c /* d"),
        ("a /* b /* c */ d */ e */ f", "a  e */ f"),
        ("a /* b /* c */ d", "a /* b  d"),
        ("a /*/ b */ c", "a  c"),
        ("'open", "'open"),
        ("$a$ open $b$", "$a$ open $b$"),
    ],
)
def test_quoted_parts_are_removed_and_unclosed_ones_remain(text: str, rest: str) -> None:
    assert without_quoted(text) == rest


def test_a_comment_inside_a_string_is_removed() -> None:
    assert without_comments("'a -- b\n' /* c */ d", " ") == "'a  \n'   d"


def test_ends_can_be_requested_in_any_order() -> None:
    quotes = Quotes("/* a */ /* b */ -- c\n$x$ d $x$")
    assert [quotes.end("$x$", 24), quotes.end("/*", 10), quotes.end("/*", 2), quotes.end("--", 18)] == [30, 15, 7, 20]
    assert quotes.end("/*", 20) is None


@given(st.text("a$'\"-/*\n ", max_size=30))
def test_the_result_matches_the_reference_expression(text: str) -> None:
    # The results differ for doubled quotes that are not closed, which is not valid SQL, and for nested comments.
    if "''" not in text and text.count("/*") <= 1:
        assert without_quoted(text) == SIMPLE.sub("", text)


@pytest.mark.parametrize(
    "piece", ["/*", "$a", "$a$", "'", '"', "''", "--", "/* */", "a/*\n", "\n", " \\sleep", ";\n\\x\n"]
)
def test_a_long_text_is_read_quickly(piece: str) -> None:
    text = piece * (LONG // len(piece))
    many = "".join(f"${number}$ " for number in range(LONG // 5))
    with processor_time():
        for script in (text, f"SELECT 1{text}", many):
            load = PgbenchWorkload(scripts=(Script(name="x", text=script),))
            assert load.is_one_statement in (True, False)
            assert load.pauses in (True, False)
            assert without_comments(script) is not None
            statement_step(f"SELECT 1 {script.replace(chr(92), '')}", "operation")
