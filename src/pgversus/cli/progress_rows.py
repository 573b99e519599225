"""Verdicts so far: a row for each contender of the contexts begun, as many of them as there is room for."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pgversus.engine.progress import Look, TimeEstimate
from pgversus.records.trials import Block, Phase
from pgversus.report.charts.theme import SIGNS
from pgversus.report.methodology import window_length
from pgversus.report.terminal import STYLES
from pgversus.report.verdicts import verdict_word
from pgversus.stats.analysis import InterimResult
from pgversus.stats.confidence import FARTHEST, Verdict
from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.study import Context
from pgversus.study.workload import Operation
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, _, ngettext
from pgversus.text.units import change, duration, latency, percent

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


_WIDEST = math.log(2)
"""Half the widest interval that is shown, as a log-ratio: ±100 %. Beyond it, as after 2 blocks, it says nothing."""
_STEPS = {
    Phase.START: N_("block {block}: starting {arm}"),
    Phase.WARM_UP: N_("block {block}: warming up {arm}"),
    Phase.MEASURE: N_("block {block}: measuring {arm}, window {window}/{windows}"),
}


def beginning_words(comparison: Comparison) -> str:
    """What will be done of a context, and for how long at most."""
    design = comparison.design
    return _(
        "{arms} arms, blocks of {work} per arm, {limit}",
        work=_work_words(comparison),
        arms=len(comparison.arms),
        limit=_limit_words(design),
    )


def step_words(comparison: Comparison, block: int, arm: int, phase: Phase, round_number: int) -> str:
    """What runs now, without the context."""
    label = comparison.arms[arm].label
    if isinstance(comparison.workload, Operation):
        return _("block {block}: running the operation on {arm}", block=block, arm=label)
    windows = comparison.design.rounds
    return _(_STEPS[phase], block=block, arm=label, window=round_number, windows=windows)


def interim_words(look: Look) -> str:
    """How a contender stands, in one line for a pipe: `+2.0 % ±1.1 % faster`."""
    interim = look.interim_result
    if interim.verdict is Verdict.INVALID:
        return verdict_word(Verdict.INVALID)
    if interim.log_ratio is None:
        return _("no blocks yet")
    parts = [ratio_words(interim)]
    if interim.verdict is not Verdict.UNDECIDED:
        parts.append(verdict_word(interim.verdict))
    elif look.seconds_left:
        parts.append(_("about {time} left", time=duration(look.seconds_left)))
    return " ".join(parts)


def block_words(block: Block, comparison: Comparison, looks: Mapping[int, Look]) -> str:
    """How all contenders of a block stand, in one line for a pipe, without the context."""
    arms = comparison.arms
    interim_result = "   ".join(f"{arms[arm].label} {interim_words(look)}" for arm, look in sorted(looks.items()))
    number = _("block {block}", block=block.number)
    return f"{number}  {interim_result}"


def ratio_words(interim: InterimResult) -> str:
    """`+2.0 % ±1.1 %`; without a half-width that says nothing, empty for what has no ratio."""
    if interim.log_ratio is None or interim.verdict is Verdict.INVALID or not abs(interim.log_ratio.point) < FARTHEST:
        return ""
    ratio = change(math.exp(interim.log_ratio.point))
    half = interim.interval.half_width
    return f"{ratio} ±{percent(math.expm1(half))}" if half <= _WIDEST else ratio


def verdict_words(verdict: Verdict, *, is_final: bool) -> str:
    """A verdict, which may not be known yet."""
    if verdict is Verdict.UNDECIDED and not is_final:
        return _("undecided so far")
    return verdict_word(verdict)


def blocks_words(number: int) -> str:
    """`4 blocks`."""
    return ngettext("{number} block", "{number} blocks", number)


def to_go_words(look: Look, *, is_fixed: bool) -> str:
    """What a contender may still take; empty once its verdict is known. is_fixed: whether that was given."""
    if look.interim_result.verdict is not Verdict.UNDECIDED or look.blocks_left == 0:
        return ""
    if look.blocks_left is None:
        return _("at most {time} to go", time=duration(look.seconds_left)) if look.seconds_left else ""
    if look.is_before_first_look:
        return ngettext("first check in {number} block", "first check in {number} blocks", look.blocks_left)
    if is_fixed:
        return ngettext("{number} block to go", "{number} blocks to go", look.blocks_left)
    return ngettext("about {number} block to go", "about {number} blocks to go", look.blocks_left)


def time_estimate_words(time_estimate: TimeEstimate, running_s: float) -> list[str]:
    """How far the study has come: contexts, time, and what is left. running_s: that the block of now has taken."""
    words = [contexts_words(time_estimate)] if time_estimate.contexts > 1 else []
    spent = duration(time_estimate.spent_s + running_s)
    if time_estimate.budget_s is None:
        words.append(_("{time} so far", time=spent))
    else:
        words.append(_("{time} of at most {budget}", time=spent, budget=duration(time_estimate.budget_s)))
    return [*words, *filter(None, [left_words(time_estimate, running_s)])]


def contexts_words(time_estimate: TimeEstimate) -> str:
    """How many contexts get no more blocks."""
    return _("{ended} of {total} contexts done", ended=time_estimate.ended, total=time_estimate.contexts)


def left_words(time_estimate: TimeEstimate, running_s: float) -> str:
    """How long it may still take; empty while nobody can tell."""
    if time_estimate.seconds_left is None:
        return ""
    left = duration(max(0.0, time_estimate.seconds_left - running_s))
    return _("at most {time} left", time=left) if time_estimate.is_at_most else _("about {time} left", time=left)


def with_context(context: Context, words: str) -> str:
    """The words behind the context that they are of."""
    return f"{context.label}  {words}" if context.label else words


def _work_words(comparison: Comparison) -> str:
    design, seconds = comparison.design, comparison.design.window_s
    if isinstance(comparison.workload, Operation):
        took = latency(seconds) if seconds < 1 else duration(seconds)
        return _("one repetition of about {time}", time=took)
    return ngettext(
        "{number} window of {time}", "{number} windows of {time}", design.rounds, time=window_length(design)
    )


def _limit_words(design: Design) -> str:
    if design.fixed_blocks is not None:
        return blocks_words(design.fixed_blocks)
    return _("until the verdict is known, at most {time}", time=duration(design.budget_s))


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
        return self.look.interim_result.verdict


class VerdictRows:
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
            rows = self._undecided if look.interim_result.verdict is Verdict.UNDECIDED else self._known
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
    interim = row.look.interim_result
    word = verdict_words(row.verdict, is_final=is_final)
    to_go = "" if is_final else to_go_words(row.look, is_fixed=row.is_fixed)
    return [
        spell(cell) for cell in (SIGNS[row.verdict], word, ratio_words(interim), blocks_words(interim.blocks), to_go)
    ]


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
