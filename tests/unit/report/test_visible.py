"""What a terminal or a page would obey in somebody's text is shown instead."""

import io

import pytest
from rich.table import Table

from pgversus.report.console import SafeConsole
from pgversus.report.markdown import escaped
from pgversus.report.visible import visible

OBEYED = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u061c", "\u200e", "\u200f", "\u2028", "\u2029"]
OBEYED += [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\ud800", "\udfff"]
KEPT = "\n\t"


@pytest.mark.parametrize("character", [one for one in OBEYED if one not in KEPT], ids=ascii)
def test_a_character_that_would_be_obeyed_is_shown(character: str) -> None:
    shown = visible(f"a{character}b")
    assert shown.isprintable()
    assert visible(shown) == shown
    assert escaped(f"a{character}b").isprintable()
    file = io.StringIO()
    SafeConsole(file=file, force_terminal=True, color_system=None).print(f"a{character}b")
    assert character not in file.getvalue().replace("\n", "")


def test_what_is_written_in_any_language_stays_as_it_is() -> None:
    text = "日本語 é ß \u05d0\u05d1 \u0627\u0644 🙂 µ\n\tx"
    assert visible(text) == text
    assert visible("a\r\nb") == "a\nb"


@pytest.mark.parametrize("text", ["[red]x", "[/]", "[/red]", "[link=http://x/]y[/link]", ":smile:", "[@click=x]y"])
def test_brackets_in_a_text_are_no_mark_up(text: str) -> None:
    file = io.StringIO()
    table = Table(text, box=None)
    table.add_row(text)
    console = SafeConsole(file=file, force_terminal=True, width=200, highlight=False)
    console.print(table)
    console.print(text)
    assert file.getvalue().count(text) == 3
    assert "\x1b]8" not in file.getvalue()
