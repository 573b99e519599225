"""Texts that fit one line of a terminal, whatever is in them and whatever it can show."""

from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pgversus.text.redaction import visible

Spell = Callable[[str], str]
"""Writes a text in characters that a terminal has, on one line."""
Piece = tuple[str, str]
"""Text, and the style that it is shown in."""

_ELLIPSIS = "…"
_WITHOUT = str.maketrans({"▲": "^", "▼": "v", "±": "+/-", _ELLIPSIS: "~"})
"""Marks of ours where a terminal may not have them."""


def spelling(encoding: str) -> Spell:
    """How texts are written on a terminal of this encoding."""
    return _one_line if encoding.lower().startswith("utf") else partial(_encoded, encoding)


def shortened(text: str, width: int, spell: Spell) -> str:
    """Both ends of a text that is too wide: names that belong together often differ at their end alone."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    # No character is narrower than a column but for those that stand on another.
    head, tail = set_cell_size(text[:width], room - room // 2), text[max(0, len(text) - room) :]
    while cell_len(tail) > room // 2:
        tail = tail[1:]
    return f"{head}{spell(_ELLIPSIS)}{tail}"


def line_of(pieces: Sequence[Piece], width: int, spell: Spell) -> Text:
    """A line of these pieces, of at most so many columns."""
    line = Text.assemble(*((spell(text), style) for text, style in pieces))
    if cell_len(line.plain) > width:
        line.truncate(max(0, width - 1), overflow="crop")
        line.append(spell(_ELLIPSIS))
    return line


def _one_line(text: str) -> str:
    return visible(text.replace("\n", " ").replace("\t", " "))


def _encoded(encoding: str, text: str) -> str:
    # As standard error does with what it cannot write, so that no line becomes longer than it was measured.
    return _one_line(text).translate(_WITHOUT).encode(encoding, "backslashreplace").decode(encoding)
