import tomllib
from dataclasses import replace
from typing import Any

import pytest

from pgversus.study.file.document import Path, find_places

TEXT = """\
title = "x"
a."b c".d = { x = 1, y.z = [1, { q = 2 }] }
# a comment

[t.u]
k = [ # one
  1,

  2,
]
'single' = 1
[[rows]]
s = 1
[[rows]]
s = 2
[rows.inner]
v = 1
[[rows.deep]]
w = 1
[p]
"q\\u0041" = 1
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("title",), "line 1, title"),
        (("a",), "line 2, a"),
        (("a", "b c", "d", "x"), 'line 2, a."b c".d.x'),
        (("a", "b c", "d", "y", "z", 1, "q"), 'line 2, a."b c".d.y.z, item 2, q'),
        (("t", "u"), "line 5, [t.u]"),
        (("t", "u", "k"), "line 6, [t.u] k"),
        (("t", "u", "k", 1), "line 9, [t.u] k, item 2"),
        (("t", "u", "single"), "line 11, [t.u] single"),
        (("rows", 0, "s"), "line 13, [[rows]] s"),
        (("rows", 1, "s"), "line 15, [[rows]] s"),
        (("rows", 1, "inner", "v"), "line 17, [rows.inner] v"),
        (("rows", 1, "deep", 0, "w"), "line 19, [[rows.deep]] w"),
        (("p", "qA"), "line 21, [p] qA"),
        (("p", "nowhere"), "line 20, [p] nowhere"),
        (("nowhere",), "nowhere"),
        (("no", "where"), "[no] where"),
    ],
)
def test_every_key_and_item_has_a_place(path: Path, place: str) -> None:
    assert str(find_places(TEXT).of(path)) == place


def test_no_key_lacks_a_place() -> None:
    places = find_places(TEXT)
    missing = [path for path in _paths(tomllib.loads(TEXT), ()) if path not in places.found]
    assert not missing


def _paths(value: Any, at: Path) -> list[Path]:
    if isinstance(value, dict):
        return [path for key, item in value.items() for path in [(*at, key), *_paths(item, (*at, key))]]
    if isinstance(value, list):
        return [path for index, item in enumerate(value) for path in [(*at, index), *_paths(item, (*at, index))]]
    return []


def test_replaced_keys_are_located_in_the_profile() -> None:
    places = replace(find_places(TEXT), origins={("title",): ("rows", 0), ("x", "y"): ("t", "u")})
    assert str(places.of(("title", "s"))) == "line 13, [[rows]] s"
    assert str(places.of(("x", "y", "k"))) == "line 6, [t.u] k"
