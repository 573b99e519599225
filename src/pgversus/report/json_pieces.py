"""A document as indented JSON, piece by piece: that of a large study is never in memory whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import to_json

_STEP = "  "


def json_pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Pieces that together are the JSON text of the document, in ASCII, with a line feed at its end.

    A value that is an iterator becomes an array; each of its items is made, written and forgotten.
    """
    separator = "{"
    for name, value in document.items():
        yield f"{separator}\n{_STEP}{_text(name, 1)}: "
        if isinstance(value, Iterator):
            yield from _array(value)
        else:
            yield _text(value, 1)
        separator = ","
    yield "\n}\n"


def _array(items: Iterator[Any]) -> Iterator[str]:
    separator = "["
    for item in items:
        yield f"{separator}\n{_STEP * 2}{_text(item, 2)}"
        separator = ","
    yield "[]" if separator == "[" else f"\n{_STEP}]"


def _text(value: Any, depth: int) -> str:
    # json.dumps would take several times as long, since it indents in Python.
    text = to_json(value, indent=len(_STEP), ensure_ascii=True, inf_nan_mode="null").decode()
    # No line feed of a string is among them: JSON escapes those.
    return text.replace("\n", f"\n{_STEP * depth}")
