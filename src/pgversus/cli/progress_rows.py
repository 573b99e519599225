"""Verdicts so far: a row for each contender of the contexts begun, as many of them as there is room for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.cells import cell_len, set_cell_size

from pgversus.cli.progress_texts import Piece, Spell, shortened
from pgversus.cli.progress_words import blocks_words, ratio_words, to_go_words, verdict_words
from pgversus.engine.progress import Look
from pgversus.report.charts.theme import SIGNS
from pgversus.report.terminal import STYLES
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import Comparison
from pgversus.study.study import Context

_GAP = "  "
_LEAST_NAME = 12
"""Columns of a name that tell most contenders apart; for more of it nothing else is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A contender, and how it stood when it was last looked at."""

    name: str
    look: Look
    is_fixed: bool
    """Whether its number of blocks was given."""

    @property
    def verdict(self) -> Verdict:
        """So far."""
        return self.look.standing.verdict


class Rows:
    """All contenders that have been looked at; those that moved last come last."""

    def __init__(self) -> None:
        self._undecided: dict[tuple[int, int], Row] = {}
        self._known: dict[tuple[int, int], Row] = {}

    def __len__(self) -> int:
        return len(self._undecided) + len(self._known)

    def move(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """Take a look at contenders of a context."""
        # The first of them as the last, so that they stand in their order.
        for arm, look in sorted(looks.items(), reverse=True):
            key = (context.number, arm)
            self._undecided.pop(key, None)
            self._known.pop(key, None)
            rows = self._undecided if look.standing.verdict is Verdict.UNDECIDED else self._known
            name = _GAP.join(filter(None, (comparison.arms[arm].label, context.label)))
            rows[key] = Row(name=name, look=look, is_fixed=comparison.design.fixed_blocks is not None)

    def first(self, most: int) -> list[Row]:
        """So many: the undecided before the others, and of each kind those that moved last."""
        return list(islice(self._ranked(), most))

    def _ranked(self) -> Iterator[Row]:
        yield from reversed(self._undecided.values())
        yield from reversed(self._known.values())


def row_lines(rows: Sequence[Row], width: int, spell: Spell, *, is_final: bool) -> list[list[Piece]]:
    """The pieces of a line for each row, aligned; where they would be too wide the least telling columns are left out.

    width: in columns. is_final: whether nothing will change any more.
    """
    names = [spell(row.name) for row in rows]
    longest = max(map(cell_len, names), default=0)
    least = min(longest, max(_LEAST_NAME, width // 3))
    columns, room = _fitting([_cells(row, spell, is_final=is_final) for row in rows], width, least)
    name_width = max(1, min(longest, room))
    return [
        [(set_cell_size(shortened(name, name_width, spell), name_width), ""), *_beside(row.verdict, cells)]
        for row, name, cells in zip(rows, names, zip(*columns, strict=True), strict=False)
    ]


def _fitting(rows: Sequence[Sequence[str]], width: int, least: int) -> tuple[list[list[str]], int]:
    """The cells of each column of the widest form in which so much is left for the names, and what is left.

    rows: mark, word, ratio, blocks, to go. Cells are as wide as their column.
    """
    columns: list[list[str]] = []
    room = 0
    for form in _FORMS:
        columns = [_column(cells) for cells in zip(*(form(*row) for row in rows), strict=True)]
        room = width - sum(cell_len(column[0]) for column in columns)
        if room >= least:
            break
    return columns, room


def _column(cells: Sequence[str]) -> list[str]:
    """As wide as the widest of them, behind a gap; an empty column has no gap either."""
    widest = max(map(cell_len, cells))
    return [_GAP + set_cell_size(cell, widest) if widest else "" for cell in cells]


def _cells(row: Row, spell: Spell, *, is_final: bool) -> list[str]:
    stands = row.look.standing
    word = verdict_words(row.verdict, is_final=is_final)
    to_go = "" if is_final else to_go_words(row.look, is_fixed=row.is_fixed)
    return [spell(cell) for cell in (SIGNS[row.verdict], word, ratio_words(stands), blocks_words(stands.blocks), to_go)]


def _beside(verdict: Verdict, cells: Sequence[str]) -> Iterator[Piece]:
    for number, cell in enumerate(cells):
        yield cell, "" if number else STYLES[verdict]


_FORMS: tuple[Callable[[str, str, str, str, str], tuple[str, ...]], ...] = (
    lambda mark, word, ratio, blocks, to_go: (f"{mark} {word}", ratio, blocks, to_go),
    lambda mark, word, ratio, blocks, _to_go: (f"{mark} {word}", ratio, blocks),
    lambda mark, word, ratio, _blocks, _to_go: (f"{mark} {word}", ratio),
    lambda mark, _word, ratio, _blocks, _to_go: (mark, ratio),
    lambda mark, _word, _ratio, _blocks, _to_go: (mark,),
)
"""What is shown beside a name, from the widest on."""
