"""Interim verdicts: one row per contender of each started context, as many as fit."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pgversus.engine.progress import Look, TimeEstimate
from pgversus.records.trials import Block, Phase
from pgversus.report.console import STYLES
from pgversus.report.verdicts import SIGNS, verdict_word
from pgversus.report.windows import window_length
from pgversus.stats.analysis import InterimResult
from pgversus.stats.confidence import FARTHEST, Verdict
from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.study import Context
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, _, ngettext
from pgversus.text.units import change, duration, latency, percent

Spell = Callable[[str], str]
"""Converts a text to one line of characters that the terminal can display."""
Piece = tuple[str, str]
"""A text and its style."""

_ELLIPSIS = "…"
_WITHOUT = str.maketrans({"▲": "^", "▼": "v", "±": "+/-", _ELLIPSIS: "~"})
"""Replacements for marks that a terminal may lack."""


def spelling(encoding: str) -> Spell:
    """Return the conversion for a terminal with this encoding."""
    return _one_line if encoding.lower().startswith("utf") else partial(_encoded, encoding)


def shortened(text: str, width: int, spell: Spell) -> str:
    """Shorten a text in the middle if it is too wide: related names often differ only at the end."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    # Every character takes a column or more, except combining ones.
    head, tail = set_cell_size(text[:width], room - room // 2), text[max(0, len(text) - room) :]
    while cell_len(tail) > room // 2:
        tail = tail[1:]
    return f"{head}{spell(_ELLIPSIS)}{tail}"


def line_of(pieces: Sequence[Piece], width: int, spell: Spell) -> Text:
    """Join the pieces into a line of at most `width` columns."""
    line = Text.assemble(*((spell(text), style) for text, style in pieces))
    if cell_len(line.plain) > width:
        line.truncate(max(0, width - 1), overflow="crop")
        line.append(spell(_ELLIPSIS))
    return line


def _one_line(text: str) -> str:
    return visible(text.replace("\n", " ").replace("\t", " "))


def _encoded(encoding: str, text: str) -> str:
    # Encode as standard error does, so that the measured width of a line stays correct.
    return _one_line(text).translate(_WITHOUT).encode(encoding, "backslashreplace").decode(encoding)


_WIDEST = math.log(2)
"""Largest half-width that is shown, as a log-ratio: ±100 %. A wider interval, as after 2 blocks, is uninformative."""
_STEPS = {
    Phase.START: N_("block {block}: starting {arm}"),
    Phase.WARM_UP: N_("block {block}: warming up {arm}"),
    Phase.MEASURE: N_("block {block}: measuring {arm}, window {window}/{windows}"),
}


def start_text(comparison: Comparison) -> str:
    """Return what will be measured in a context, and the maximum time."""
    design = comparison.design
    return _(
        "{arms} arms, blocks of {work} per arm, {limit}",
        work=_work_text(comparison),
        arms=len(comparison.arms),
        limit=_limit_text(design),
    )


def step_text(comparison: Comparison, block: int, arm: int, phase: Phase, round_number: int) -> str:
    """Return the current step, without the context."""
    label = comparison.arms[arm].label
    if comparison.workload.runs_once and phase is Phase.MEASURE:
        return _("block {block}: running the operation on {arm}", block=block, arm=label)
    windows = comparison.design.rounds
    return _(_STEPS[phase], block=block, arm=label, window=round_number, windows=windows)


def interim_text(look: Look) -> str:
    """Return the interim verdict on a contender, for a pipe: `+2.0 % ±1.1 % faster`."""
    interim = look.interim_result
    if interim.verdict is Verdict.INVALID:
        return verdict_word(Verdict.INVALID)
    if interim.log_ratio is None:
        return _("no blocks yet")
    parts = [interim_ratio_text(interim)]
    if interim.verdict is not Verdict.UNDECIDED:
        parts.append(verdict_word(interim.verdict))
    if look.seconds_left:
        time = duration(look.seconds_left)
        is_known = look.blocks_left is not None
        parts.append(_("about {time} left", time=time) if is_known else _("at most {time} left", time=time))
    return " ".join(parts)


def block_text(block: Block, comparison: Comparison, looks: Mapping[int, Look]) -> str:
    """Return the interim verdicts after a block in one line for a pipe, without the context."""
    arms = comparison.arms
    interim_result = "   ".join(f"{arms[arm].label} {interim_text(look)}" for arm, look in sorted(looks.items()))
    number = _("block {block}", block=block.number)
    return f"{number}  {interim_result}"


def interim_ratio_text(interim: InterimResult) -> str:
    """Return `+2.0 % ±1.1 %`; without the half-width if it is uninformative, empty without a ratio."""
    if interim.log_ratio is None or interim.verdict is Verdict.INVALID or not abs(interim.log_ratio.point) < FARTHEST:
        return ""
    ratio = change(math.exp(interim.log_ratio.point))
    half = interim.interval.half_width
    return f"{ratio} ±{percent(math.expm1(half))}" if half <= _WIDEST else ratio


def verdict_text(verdict: Verdict, *, is_final: bool) -> str:
    """Return a verdict, final or interim."""
    if verdict is Verdict.UNDECIDED and not is_final:
        return _("undecided so far")
    return verdict_word(verdict)


def blocks_text(number: int) -> str:
    """Return `4 blocks`."""
    return ngettext("{number} block", "{number} blocks", number)


def blocks_left_text(look: Look, *, is_fixed: bool) -> str:
    """Return the remaining blocks or time of a contender; empty once it needs no more.

    is_fixed: whether the number of blocks is fixed.
    """
    if look.blocks_left == 0:
        return ""
    if look.blocks_left is None:
        return _("at most {time} to go", time=duration(look.seconds_left)) if look.seconds_left else ""
    if look.is_before_first_look:
        return ngettext("first check in {number} block", "first check in {number} blocks", look.blocks_left)
    if is_fixed:
        return ngettext("{number} block to go", "{number} blocks to go", look.blocks_left)
    return ngettext("about {number} block to go", "about {number} blocks to go", look.blocks_left)


def time_estimate_parts(time_estimate: TimeEstimate, running_s: float) -> list[str]:
    """Return the progress of the study: contexts, time spent, time left. running_s: age of the current block."""
    words = [contexts_text(time_estimate)] if time_estimate.contexts > 1 else []
    spent = duration(time_estimate.spent_s + running_s)
    if time_estimate.budget_s is None:
        words.append(_("{time} so far", time=spent))
    else:
        words.append(_("{time} of at most {budget}", time=spent, budget=duration(time_estimate.budget_s)))
    return [*words, *filter(None, [time_left_text(time_estimate, running_s)])]


def contexts_text(time_estimate: TimeEstimate) -> str:
    """Return the number of completed contexts."""
    return _("{ended} of {total} contexts done", ended=time_estimate.ended, total=time_estimate.contexts)


def time_left_text(time_estimate: TimeEstimate, running_s: float) -> str:
    """Return the estimated time left; empty while unknown."""
    if time_estimate.seconds_left is None:
        return ""
    left = duration(max(0.0, time_estimate.seconds_left - running_s))
    return _("at most {time} left", time=left) if time_estimate.is_at_most else _("about {time} left", time=left)


def with_context(context: Context, words: str) -> str:
    """Return the text, preceded by the label of its context."""
    return f"{context.label}  {words}" if context.label else words


def _work_text(comparison: Comparison) -> str:
    design, seconds = comparison.design, comparison.design.window_s
    if comparison.workload.runs_once:
        took = latency(seconds) if seconds < 1 else duration(seconds)
        return _("one repetition of about {time}", time=took)
    return ngettext(
        "{number} window of {time}", "{number} windows of {time}", design.rounds, time=window_length(design)
    )


def _limit_text(design: Design) -> str:
    if design.stopping_rule.looks_once:
        return blocks_text(design.stopping_rule.last_look)
    if design.precision is None:
        return _("until the verdict is known, at most {time}", time=duration(design.budget_s))
    return _(
        "until the interval is ±{precision} or narrower, at most {time}",
        precision=percent(design.precision),
        time=duration(design.budget_s),
    )


_GAP = "  "
_LEAST_NAME = 12
"""Columns of a name that distinguish most contenders; longer names do not displace other columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A contender with its latest interim result."""

    name: str
    look: Look
    is_fixed: bool
    """Whether the number of blocks is fixed."""

    @property
    def verdict(self) -> Verdict:
        """The interim verdict."""
        return self.look.interim_result.verdict


class VerdictRows:
    """All contenders with an interim result, the most recently updated last."""

    def __init__(self) -> None:
        self._undecided: dict[tuple[int, int], Row] = {}
        self._known: dict[tuple[int, int], Row] = {}

    def __len__(self) -> int:
        return len(self._undecided) + len(self._known)

    def move(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """Update the contenders of a context."""
        # Reversed, because the latest comes first when shown.
        for arm, look in sorted(looks.items(), reverse=True):
            key = (context.number, arm)
            self._undecided.pop(key, None)
            self._known.pop(key, None)
            rows = self._undecided if look.interim_result.verdict is Verdict.UNDECIDED else self._known
            name = _GAP.join(filter(None, (comparison.arms[arm].label, context.label)))
            rows[key] = Row(name=name, look=look, is_fixed=comparison.design.stopping_rule.looks_once)

    def first(self, most: int) -> list[Row]:
        """Return at most `most` rows: undecided ones first, the most recently updated first within each kind."""
        return list(islice(chain(reversed(self._undecided.values()), reversed(self._known.values())), most))


def row_lines(rows: Sequence[Row], width: int, spell: Spell, *, is_final: bool) -> list[list[Piece]]:
    """Return the pieces of one aligned line per row; the least informative columns are omitted if it is too wide.

    width: width in columns. is_final: whether the verdicts are final.
    """
    names = [spell(row.name) for row in rows]
    longest = max(map(cell_len, names), default=0)
    least = min(longest, max(_LEAST_NAME, width // 3))
    columns, room = _fitting([_cells(row, spell, is_final=is_final) for row in rows], width, least)
    name_width = max(1, min(longest, room))
    return [
        [(set_cell_size(shortened(name, name_width, spell), name_width), ""), *_styled_cells(row.verdict, cells)]
        for row, name, cells in zip(rows, names, zip(*columns, strict=True), strict=False)
    ]


def row_texts(row: Row, *, is_final: bool) -> tuple[str, str, str, str, str]:
    """Return mark, verdict, ratio, blocks and remaining blocks of a row; what does not apply is empty."""
    interim = row.look.interim_result
    word = verdict_text(row.verdict, is_final=is_final)
    to_go = "" if is_final else blocks_left_text(row.look, is_fixed=row.is_fixed)
    return SIGNS[row.verdict], word, interim_ratio_text(interim), blocks_text(interim.blocks), to_go


def _fitting(rows: Sequence[Sequence[str]], width: int, least: int) -> tuple[list[list[str]], int]:
    """Return the columns of the widest form that leaves at least `least` columns for names, and the remaining width.

    rows: mark, verdict, ratio, blocks, to go. Cells are padded to the width of their column.
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
    """Pad cells to the widest one, after a gap; an empty column has no gap."""
    widest = max(map(cell_len, cells))
    return [_GAP + set_cell_size(cell, widest) if widest else "" for cell in cells]


def _cells(row: Row, spell: Spell, *, is_final: bool) -> list[str]:
    return [spell(text) for text in row_texts(row, is_final=is_final)]


def _styled_cells(verdict: Verdict, cells: Sequence[str]) -> Iterator[Piece]:
    for number, cell in enumerate(cells):
        yield cell, "" if number else STYLES[verdict]


_FORMS: tuple[Callable[[str, str, str, str, str], tuple[str, ...]], ...] = (
    lambda mark, word, ratio, blocks, to_go: (f"{mark} {word}", ratio, blocks, to_go),
    lambda mark, word, ratio, blocks, _to_go: (f"{mark} {word}", ratio, blocks),
    lambda mark, word, ratio, _blocks, _to_go: (f"{mark} {word}", ratio),
    lambda mark, _word, ratio, _blocks, _to_go: (mark, ratio),
    lambda mark, _word, _ratio, _blocks, _to_go: (mark,),
)
"""Forms of the columns after a name, the widest first."""
