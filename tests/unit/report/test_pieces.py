"""Text that is made piece by piece is the text that would be made at once."""

import csv
import io
import json
import math
from typing import Any

import pytest

from pgversus.report.csv_tables import csv_lines
from pgversus.report.json_pieces import json_pieces
from pgversus.report.tidy import TidyTable

FLOATS = [1 / 3, -0.0, 1e-05, 1.5e-7, 5e-324, 1e16, 1e22, 1.7976931348623157e308, 8192.0, 2.0**63]


@pytest.mark.parametrize("items", [[], [1], [{"a": [], "b": {}, "c": {"d": None}}, '±\n"', [True, 2]]])
def test_json_in_pieces_is_what_the_standard_library_would_write(items: list[Any]) -> None:
    plain: dict[str, Any] = {"first": "±", "none": None, "many": items, "last": {"deep": [1, {"x": []}]}}
    streamed = {**plain, "many": iter(items)}
    assert "".join(json_pieces(streamed)) == json.dumps(plain, indent=2) + "\n"


def test_numbers_are_the_same_when_they_are_read_back() -> None:
    assert json.loads("".join(json_pieces({"all": FLOATS})))["all"] == FLOATS
    assert json.loads("".join(json_pieces({"none": math.nan})))["none"] is None
    table = TidyTable(
        types={"text": str, **{f"c{number}": float for number in range(len(FLOATS))}}, rows=iter([["x", *FLOATS]])
    )
    _, (text, *cells) = csv.reader(csv_lines(table))
    assert text == "x"
    assert [float(cell) for cell in cells] == FLOATS


def test_cells_without_a_float_stay_what_they_are() -> None:
    table = TidyTable(types={"a": str, "b": float, "c": int}, rows=iter([["1,5", None, 7], ['"', 0.5, None]]))
    assert list(csv_lines(table)) == ["a,b,c\n", '"1,5",,7\n', '"""",0.5,\n']


def test_a_carriage_return_in_a_cell_ends_no_row() -> None:
    table = TidyTable(types={"a": str, "b": int}, rows=iter([["one\rtwo", 1], ["three\r\nfour", 2]]))
    text = "".join(csv_lines(table))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [["a", "b"], ["one\rtwo", "1"], ["three\r\nfour", "2"]]
    assert text == 'a,b\n"one\rtwo",1\n"three\r\nfour",2\n'
