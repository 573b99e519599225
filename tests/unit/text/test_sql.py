"""Where strings, names and comments of SQL end, in time that grows with the text alone."""

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
"""The same as one expression, whose time grows with the square of what is never closed."""


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("SELECT 'it''s; --' || 'x'", "SELECT  || "),
        ('"a;""b" c', " c"),
        ("$$ ; $$ x $a$ $$ $b$ $a$ y", " x  y"),
        ("a -- b\nc", "a \nc"),
        ("a /* b */ c /* d", "a  c /* d"),
        ("'open", "'open"),
        ("$a$ open $b$", "$a$ open $b$"),
    ],
)
def test_what_is_quoted_is_taken_out_and_what_is_never_closed_stays(text: str, rest: str) -> None:
    assert without_quoted(text) == rest


def test_a_comment_inside_of_a_string_is_taken_out_as_well() -> None:
    assert without_comments("'a -- b\n' /* c */ d", " ") == "'a  \n'   d"


def test_an_end_may_be_asked_for_in_any_order() -> None:
    quotes = Quotes("/* a */ /* b */ -- c\n$x$ d $x$")
    assert [quotes.end("$x$", 24), quotes.end("/*", 10), quotes.end("/*", 2), quotes.end("--", 18)] == [30, 15, 7, 20]
    assert quotes.end("/*", 20) is None


@given(st.text("a$'\"-/*\n ", max_size=30))
def test_what_is_left_is_what_the_expression_leaves(text: str) -> None:
    # Where quotes are doubled and then never closed the two part ways, and SQL has no meaning.
    if "''" not in text:
        assert without_quoted(text) == SIMPLE.sub("", text)


@pytest.mark.parametrize(
    "piece", ["/*", "$a", "$a$", "'", '"', "''", "--", "/* */", "a/*\n", "\n", " \\sleep", ";\n\\x\n"]
)
def test_a_long_text_takes_no_time(piece: str) -> None:
    text = piece * (LONG // len(piece))
    many = "".join(f"${number}$ " for number in range(LONG // 5))
    with processor_time():
        for script in (text, f"SELECT 1{text}", many):
            load = PgbenchWorkload(scripts=(Script(name="x", text=script),))
            assert load.is_one_statement in (True, False)
            assert load.pauses in (True, False)
            assert without_comments(script) is not None
            statement_step(f"SELECT 1 {script.replace(chr(92), '')}", "operation")
