"""Two results side by side for a terminal or a pipe."""

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.report.sentences import percent_of_confidence
from pgversus.report.side_by_side.put import Agreement, SideBySide
from pgversus.report.side_by_side.section import SideBySideSection, SideText, side_by_side_section
from pgversus.report.terminal import STYLES, print_parts, table
from pgversus.text.translation import tell

_COLOURS = {
    Agreement.AGREE: "cyan",
    Agreement.LARGER_IN_A: "yellow",
    Agreement.LARGER_IN_B: "yellow",
    Agreement.HIGHER_IN_A: "yellow",
    Agreement.HIGHER_IN_B: "yellow",
    Agreement.OPPOSITE: "red",
    Agreement.OPEN: "dim",
    Agreement.NOT_JUDGED: "dim",
}


def print_side_by_side(found: SideBySide, console: Console, columns: int | None = None) -> None:
    """Print all of it; console and columns: as of print_answer."""
    section = side_by_side_section(found)
    parts: list[RenderableType] = [Text(section.title, style="bold")]
    parts += [Text(f"{name}: {words}") for name, words in section.sources]
    if section.rows:
        parts += [Text(""), _ratios(section), Text(""), _values(section)]
    parts += [Text(""), *(Text(sentence) for sentence in section.sentences)]
    parts += [Text(tell("not alike: {note}", note=note)) for note in section.notes]
    parts += [
        Text(tell("not comparable: {place}: {reason}", place=one.place, reason=one.reason))
        for one in section.not_comparable
    ]
    print_parts(parts, console, columns)


def _ratios(section: SideBySideSection) -> Table:
    confidence = percent_of_confidence()
    shown = table("", "A", confidence, "", "B", confidence, "", tell("B over A"), tell("A and B"), tell("not alike"))
    for row in section.rows:
        agreement = Text(row.words, style=_COLOURS[row.agreement])
        shown.add_row(Text(row.place), *_cells(row.a), *_cells(row.b), Text(row.quotient), agreement, Text(row.around))
    return shown


def _cells(side: SideText) -> list[RenderableType]:
    return [side.change, Text(side.interval), Text(side.verdict_word, style=STYLES[side.verdict])]


def _values(section: SideBySideSection) -> Table:
    """Each beside its own baseline: those of A and of B are two tables that happen to share their rows."""
    heads = [tell("A baseline"), tell("A contender"), tell("B baseline"), tell("B contender")]
    shown = table(tell("values, not to be compared between A and B"), "", *heads, tell("blocks"))
    for row in section.rows:
        a, b = row.a, row.b
        levels = (a.baseline_level, a.contender_level, b.baseline_level, b.contender_level)
        shown.add_row(Text(row.place), row.metric, *levels, f"{a.blocks} / {b.blocks}")
    return shown
