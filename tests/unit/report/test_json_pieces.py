"""Text produced in pieces equals text produced at once."""

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.report.json_document import json_pieces
from pgversus.report.tidy_tables import TidyTable, csv_lines, trial_table, verdict_table
from tests.builders import answer, study_answer
from tests.unit.report.cases import steady

FLOATS = [1 / 3, -0.0, 1e-05, 1.5e-7, 5e-324, 1e16, 1e22, 1.7976931348623157e308, 8192.0, 2.0**63]


@pytest.mark.parametrize("items", [[], [1], [{"a": [], "b": {}, "c": {"d": None}}, '±\n"', [True, 2]]])
def test_json_in_pieces_equals_that_of_the_standard_library(items: list[Any]) -> None:
    plain: dict[str, Any] = {"first": "±", "none": None, "many": items, "last": {"deep": [1, {"x": []}]}}
    streamed = {**plain, "many": iter(items)}
    assert "".join(json_pieces(streamed)) == json.dumps(plain, indent=2) + "\n"


def test_numbers_survive_a_round_trip() -> None:
    assert json.loads("".join(json_pieces({"all": FLOATS})))["all"] == FLOATS
    assert json.loads("".join(json_pieces({"none": math.nan})))["none"] is None
    table = TidyTable(
        types={"text": str, **{f"c{number}": float for number in range(len(FLOATS))}}, rows=iter([["x", *FLOATS]])
    )
    _, (text, *cells) = csv.reader(csv_lines(table))
    assert text == "x"
    assert [float(cell) for cell in cells] == FLOATS


def test_cells_other_than_floats_are_unchanged() -> None:
    table = TidyTable(types={"a": str, "b": float, "c": int}, rows=iter([["1,5", None, 7], ['"', 0.5, None]]))
    assert list(csv_lines(table)) == ["a,b,c\n", '"1,5",,7\n', '"""",0.5,\n']


def test_a_carriage_return_in_a_cell_does_not_end_the_row() -> None:
    table = TidyTable(types={"a": str, "b": int}, rows=iter([["one\rtwo", 1], ["three\r\nfour", 2]]))
    text = "".join(csv_lines(table))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], ["one\rtwo", "1"], ["three\r\nfour", "2"]]
    assert text == 'a,b\n"one\rtwo",1\n"three\r\nfour",2\n'


def test_a_factor_may_have_the_name_of_a_column() -> None:
    whole = study_answer([answer(steady(1.1))])
    (one,) = whole.answers
    levels = (*one.context.levels, ("blocks", "3"), ("block", "4"))
    named = replace(whole, answers=(replace(one, context=replace(one.context, levels=levels)),))
    for table in (verdict_table, trial_table):
        head, *rows = csv.reader(csv_lines(table(named)))
        assert {len(row) for row in rows} == {len(head)}
        assert head[1:3] in (["factor: blocks", "block"], ["blocks", "factor: block"])
        assert {(*row[1:3],) for row in rows} == {("3", "4")}
        assert set(table(whole).columns) <= {*head}


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("+1 of us", "'+1 of us"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("-1", "-1"),
        ("+1.5e-3", "+1.5e-3"),
        ("17+cassert", "17+cassert"),
        ("", ""),
    ],
)
def test_a_formula_is_escaped_and_a_number_is_not(text: str, cell: str) -> None:
    table = TidyTable(types={text or "x": str, "b": float, "c": int}, rows=iter([[text, -0.5, -7]]))
    heads, row = csv.reader(io.StringIO("".join(csv_lines(table)), newline=""))
    assert heads == [cell or "x", "b", "c"]
    assert row == [cell, "-0.5", "-7"]


@given(st.text())
def test_no_text_starts_like_a_formula(text: str) -> None:
    table = TidyTable(types={"a": str}, rows=iter([[text]]))
    *_, row = csv.reader(io.StringIO("".join(csv_lines(table)), newline=""))
    found = row[0] if row else ""
    assert not found.startswith(("=", "@", "\t", "\r"))
    assert found.removeprefix("'") == text.removeprefix("'")
