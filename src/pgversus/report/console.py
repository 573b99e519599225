"""The console that reports are printed on, and the styles that they share."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from pgversus.report.answer_table import AnswerTable
from pgversus.stats.confidence import Verdict
from pgversus.text.redaction import visible

STYLES = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.EQUIVALENT: "cyan",
    Verdict.UNDECIDED: "yellow",
    Verdict.INVALID: "red bold",
}
WIDEST = 10_000
"""Width of a console on which no table is cut."""


class SafeConsole(Console):
    """A console that makes control characters visible; rich removes bells and carriage returns, but not escapes."""

    def __init__(self, **options: Any) -> None:
        """Accept the options of rich, without mark-up: brackets in a text could otherwise form links or errors."""
        super().__init__(**options, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield segments with control characters made visible; control sequences of rich are unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


_WIDE, _NARROW = (0, 2, 0, 0), (0, 1, 0, 0)
# Space around the cells of a table: above, to the right, below, to the left.


def print_parts(parts: Sequence[RenderableType], console: Console, columns: int | None) -> None:
    """Print tables at full width, since a cut table loses values, and wrap sentences on a terminal.

    The columns of a table that is too wide for the terminal are closer together. In a pipe each sentence is on one
    line, for programs.
    """
    for part in parts:
        if isinstance(part, Table) and columns is not None and console.measure(part).maximum > columns:
            part.padding = _NARROW
        if isinstance(part, Table) or columns is None:
            console.print(part, soft_wrap=True)
        else:
            console.print(part, width=columns)


def terminal_table(first: str, *heads: str) -> Table:
    """Return an empty table in the common style: names left-aligned, numbers right-aligned, no lines."""
    empty = Table(box=None, pad_edge=False, padding=_WIDE, header_style="bold", show_edge=False)
    empty.add_column(Text(first), no_wrap=True)
    for head in heads:
        empty.add_column(Text(head), justify="right", no_wrap=True)
    return empty


def answer_parts(tables: Iterable[AnswerTable]) -> Iterator[RenderableType]:
    """Yield the tables that are the answer, each with its title and notes, followed by an empty line."""
    for table in tables:
        yield Text(table.title, style="bold")
        yield _answer_table(table)
        yield from map(Text, table.notes)
        yield Text("")


def _answer_table(found: AnswerTable) -> Table:
    """Return the table of an upgrade check or a timeline."""
    order = [*range(1, len(found.heads)), 0] if found.has_long_names else range(len(found.heads))
    shown = terminal_table(*(found.heads[place] for place in order))
    for column, place in zip(shown.columns, order, strict=True):
        column.justify = "left" if place < found.names else "right"
    for row in found.rows:
        shown.add_row(*(Text(row[place]) for place in order))
    return shown
