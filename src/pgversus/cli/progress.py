"""Progress display of a comparison: a region that is redrawn on a terminal, plain lines in a pipe.

Everything goes to standard error. Nothing is drawn inside a window of load: the client shares the host with the
servers, and a spinner would be additional load. The region is drawn when a step begins, before its first window, and
at most once a second.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from pgversus.cli.live_page import HostLine, LivePage
from pgversus.cli.progress_rows import (
    Piece,
    VerdictRows,
    block_text,
    contexts_text,
    line_of,
    row_lines,
    spelling,
    start_text,
    step_text,
    time_estimate_parts,
    time_left_text,
    with_context,
)
from pgversus.engine.progress import Look, Progress, TimeEstimate
from pgversus.records.trials import Block, Phase
from pgversus.study.comparison import Comparison
from pgversus.study.study import Context
from pgversus.text.redaction import message_without_secrets
from pgversus.text.translation import Language, _, ngettext, use_language
from pgversus.text.units import duration

Lines = Callable[[int, int], list[Text]]
"""Returns the content of the region for a number of columns and a maximum number of lines."""


class Region(Live):
    """A live region that stays in place when the terminal becomes narrower, and never hides the cursor."""

    def __init__(self, console: Console, lines: Lines) -> None:
        self._picture = _Picture(lines)
        super().__init__(self._picture, console=console, auto_refresh=False, transient=True, redirect_stdout=False)

    def start(self, refresh: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of rich
        """Start with an empty region."""
        super().start(refresh)
        # Nothing flickers at one redraw a second, and a hidden cursor would stay hidden if the process were killed.
        self.console.show_cursor(True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Return the printed lines, preceded by the erasure of the region and followed by its redraw."""
        wrapped = self._picture.lines_wrapped_at(self.console.size.width)
        return [_taking_away(wrapped), *super().process_renderables(renderables)]


class _Picture:
    """The content of the region, computed when it is drawn."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._widths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The last column stays free, because some terminals wrap a line that ends in it.
        width, height = options.size.width - 1, options.size.height
        lines = self._lines(max(1, width), height)[:height]
        self._widths = [line.cell_len for line in lines]
        yield Text("\n", no_wrap=True, overflow="ignore", end="").join(lines)

    def lines_wrapped_at(self, width: int) -> int:
        """Return the number of additional lines that the picture takes at this width, as most terminals wrap."""
        return sum(max(0, -(-drawn // max(1, width)) - 1) for drawn in self._widths)


def _taking_away(lines: int) -> Control:
    """Erase the cursor's line and this many lines above it."""
    step = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
    return Control(*(step * lines))


_MEGABYTE = 1e6
_EVERY_S = 1.0
_EVERY_S_UNMEASURED = 0.25
# The display may be updated more often while nothing is measured.
_FIRST = {(None, Phase.START), (Phase.START, Phase.WARM_UP)}
# Steps that are always drawn when they begin: they may take long, and the limit of one redraw a second could hide them.
_MOST_ROWS = 20
# As many as can be taken in at a glance.
_PAGE_EVERY_S = 2.0


class TerminalProgress(Progress):
    """Reports progress on a console."""

    def __init__(
        self,
        console: Console,
        *,
        language: Language = Language.ENGLISH,
        page: LivePage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """language: of the progress messages only. page: to be updated between blocks."""
        self._console = console
        self._language = language
        self._clock = clock
        # A build log may force colors, but nothing in it can be redrawn.
        is_forced = "FORCE_COLOR" in os.environ and not console.file.isatty()
        self._is_live = console.is_terminal and console.is_interactive and not is_forced
        self._spell = spelling(console.encoding)
        self._region = Region(console, self._lines)
        self._page = page
        self._page_written_at = -_PAGE_EVERY_S
        self._drawn_at = -_EVERY_S
        self._now = ""
        self._rows = VerdictRows()
        self._time_estimate: Callable[[], TimeEstimate] | None = None
        self._block_began: float | None = None
        self._phase: Phase | None = None
        self._attributed = ""
        self._comparisons: dict[int, Comparison] = {}
        self._fetching = ""
        self._built: dict[str, int] = {}
        self._hosts: dict[str, tuple[str, float]] = {}
        # What each host of a fleet does, and since when.

    def __enter__(self) -> Self:
        if self._is_live:
            self._region.start()
        return self

    def __exit__(self, *_unused: object) -> None:
        self._write_page(is_over=True)
        self._now, self._time_estimate, self._rows = "", None, VerdictRows()
        self._hosts.clear()
        self._region.stop()

    def say(self, line: str) -> None:
        """Print a permanent line."""
        self._console.print(Text(message_without_secrets(line)), soft_wrap=True)

    def fetching(self, name: str, size: int) -> None:
        """Show a download in the region; in a pipe, print one line when it begins."""
        with use_language(self._language):
            if self._is_live:
                megabytes = f"{size / _MEGABYTE:.1f}"
                self._show(_("fetching {name}: {megabytes} MB", name=name, megabytes=megabytes), _EVERY_S_UNMEASURED)
            elif self._fetching != name:
                self._fetching = name
                self.say(_("fetching {name}", name=name))

    def building(self, name: str, done: int, total: int) -> None:
        """Show a build in the region; in a pipe, print a line at each tenth."""
        with use_language(self._language):
            words = _("building {name}: {done} of about {total} steps", name=name, done=done, total=total)
            if self._is_live:
                self._show(words, _EVERY_S_UNMEASURED)
            elif (tenth := 10 * done // max(1, total)) != self._built.get(name, 0):
                self._built[name] = tenth
                self.say(words)

    def at(self, sentence: str, /, **values: object) -> None:
        """Show an activity outside measurement in the region; nothing in a pipe."""
        self._phase = None
        with use_language(self._language):
            self._show(_(sentence, **values), _EVERY_S_UNMEASURED)

    def host(self, name: str, sentence: str, /, **values: object) -> None:
        """Show the host in the region; nothing in a pipe."""
        if not sentence:
            self._hosts.pop(name, None)
        else:
            with use_language(self._language):
                self._hosts[name] = _(sentence, **values), self._clock()
                self._show("", _EVERY_S)
        self._write_page()

    def resumed(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """Show the interim verdicts of an earlier run in the table; nothing in a pipe."""
        if not self._attributed:
            self._rows.move(context, comparison, looks)

    def attributing(self, words: str, number: int, total: int) -> None:
        """Switch to attribution: verdicts are final from here on, and the following blocks belong to another study."""
        with use_language(self._language):
            self._attributed = _(
                "effect of the plans of {contender}, {number} of {total}",
                contender=words,
                number=number,
                total=total,
            )
        self._time_estimate, self._block_began, self._phase, self._now = None, None, None, ""

    def begin_blocks(self, context: Context, comparison: Comparison) -> None:
        """Print what will be measured, and the maximum time."""
        self._comparisons[context.number] = comparison
        self._phase, self._now = None, ""
        with use_language(self._language):
            self.say(with_context(context, start_text(comparison)))

    def time_estimate(self, estimate: Callable[[], TimeEstimate]) -> None:
        """Set the function that estimates the time, called for each picture, or for each block's line in a pipe."""
        self._time_estimate, self._block_began = cache(estimate), None

    def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
        """Show the next step in the region before it begins."""
        if self._block_began is None:
            self._block_began = self._clock()
        if not self._is_live:
            return
        comparison = self._comparisons[context.number]
        if phase is Phase.WARM_UP and comparison.workload.runs_once:
            return
        with use_language(self._language):
            words = step_text(comparison, block, arm, phase, round_number)
            is_first = (self._phase, phase) in _FIRST
            self._phase = phase
            self._show("  ".join(filter(None, (words, context.label))), 0.0 if is_first else _EVERY_S)

    def doing(self, line: str) -> None:
        """Show the progress of a long operation in the region; nothing in a pipe."""
        self._show(line, _EVERY_S)

    def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
        """Report the interim verdict on each contender: on a terminal in the next picture, in a pipe as a line."""
        comparison = self._comparisons[context.number]
        self._now = ""
        with use_language(self._language):
            for failure in block.failures:
                words = _(
                    "block {block}: a trial of {arm} failed: {words}",
                    block=block.number,
                    arm=comparison.arms[failure.arm].label,
                    words=failure.message,
                )
                self.say(with_context(context, words))
            if not self._attributed:
                self._rows.move(context, comparison, looks)
            if not self._is_live:
                words = with_context(context, block_text(block, comparison, looks))
                self.say(f"{words}  ({self._times(elapsed_s)})")
        self._write_page()

    def _times(self, elapsed_s: float) -> str:
        """Return the elapsed time of a context, followed by the estimate for a study with several contexts."""
        time_estimate = self._time_estimate() if self._time_estimate is not None else None
        if time_estimate is None or time_estimate.contexts == 1:
            return duration(elapsed_s)
        return "; ".join(
            filter(None, (duration(elapsed_s), contexts_text(time_estimate), time_left_text(time_estimate, 0.0)))
        )

    def _write_page(self, *, is_over: bool = False) -> None:
        """Write the page, unless it was written a moment ago."""
        now = self._clock()
        if self._page is None or (now - self._page_written_at < _PAGE_EVERY_S and not is_over):
            return
        self._page_written_at = now
        hosts = [
            HostLine(name=name, activity=words, seconds=now - since)
            for name, (words, since) in sorted(self._hosts.items())
        ]
        with use_language(self._language):
            times = [] if self._time_estimate is None else time_estimate_parts(self._time_estimate(), 0.0)
            self._page.write(self._attributed, hosts, self._rows.first(len(self._rows)), times, is_over=is_over)

    def _show(self, words: str, every_s: float) -> None:
        """Set the current step, and redraw if the last picture is at least `every_s` seconds old."""
        self._now = message_without_secrets(words)
        if self._is_live and self._clock() - self._drawn_at >= every_s:
            self._drawn_at = self._clock()
            self._region.refresh()

    def _lines(self, width: int, height: int) -> list[Text]:
        """Return the region: the current step, interim verdicts and remaining time; the first have priority."""
        with use_language(self._language):
            now = [[(self._now, "bold")]] if self._now else []
            if self._attributed:
                now.insert(0, [(self._attributed, "")])
            now += self._host_rows()
            ending = [[(words, "dim")] for words in self._ending(width)]
            # One line is reserved for permanent output.
            room = height - 1 - len(now) - len(ending)
            lines = [*now, *self._table(width, room), *ending]
            return [line_of(pieces, width, self._spell) for pieces in lines[: max(1, height - 1)]]

    def _host_rows(self) -> list[list[Piece]]:
        """Return a line for each host of a fleet: its name, what it does, and for how long."""
        widest = max(map(cell_len, self._hosts), default=0)
        return [
            [
                (f"{name}{' ' * (widest - cell_len(name))}  ", "bold"),
                (f"{words}  {duration(self._clock() - since)}", ""),
            ]
            for name, (words, since) in sorted(self._hosts.items())[:_MOST_ROWS]
        ]

    def _ending(self, width: int) -> list[str]:
        """Return the progress of the study; if it is too wide, only its end with the remaining time."""
        if self._time_estimate is None:
            return []
        time_estimate = self._time_estimate()
        running_s = 0.0 if self._block_began is None else self._clock() - self._block_began
        if time_estimate.contexts == 1 and time_estimate.spent_s + running_s == 0:
            return []
        words = time_estimate_parts(time_estimate, running_s)
        endings = ["  ".join(words[first:]) for first in range(len(words))]
        return [next((ending for ending in endings if cell_len(ending) <= width), words[-1])]

    def _table(self, width: int, room: int) -> list[list[Piece]]:
        """Return the interim verdicts in at most `room` lines; empty if none fits."""
        most = min(_MOST_ROWS, room - 1)
        if most < 1 or not len(self._rows):
            return []
        rest = len(self._rows) - most
        is_final = bool(self._attributed)
        if rest > 0:
            # The line with the number of hidden rows replaces a row.
            most, rest = most - 1, rest + 1
        heading = _("verdicts") if is_final else _("verdicts so far (not final)")
        rows = row_lines(self._rows.first(most), width, self._spell, is_final=is_final)
        more = [[(ngettext("{number} more", "{number} more", rest), "dim")]] if rest > 0 else []
        return [[(heading, "dim")], *rows, *more]
