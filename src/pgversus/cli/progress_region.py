"""The part of a terminal that is rewritten, below the lines that stay.

rich's own live display, drawn when it is asked to be and at no other moment.
"""

from collections.abc import Callable

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

Lines = Callable[[int, int], list[Text]]
"""What the region holds, for so many columns and at most so many lines."""


class Region(Live):
    """A region that keeps its place when the terminal is made narrower, and never hides the cursor."""

    def __init__(self, console: Console, lines: Lines) -> None:
        self._picture = _Picture(lines)
        super().__init__(self._picture, console=console, auto_refresh=False, transient=True, redirect_stdout=False)

    def start(self, refresh: bool = False) -> None:  # noqa: FBT001, FBT002 - as rich has it
        """Begin with nothing on it."""
        super().start(refresh)
        # At one redraw a second nothing flickers, and a cursor that was hidden would stay so if we were killed.
        self.console.show_cursor(True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """What is printed, with the region taken away before it and drawn behind it."""
        wrapped = self._picture.lines_wrapped_at(self.console.size.width)
        return [_taking_away(wrapped), *super().process_renderables(renderables)]


class _Picture:
    """What the region shows at the moment in which it is drawn."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._widths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # The last column stays free: a line that ends in it is wrapped by some terminals.
        width, height = options.size.width - 1, options.size.height
        lines = self._lines(max(1, width), height)[:height]
        self._widths = [line.cell_len for line in lines]
        yield Text("\n", no_wrap=True, overflow="ignore", end="").join(lines)

    def lines_wrapped_at(self, width: int) -> int:
        """How many lines more the picture takes since the terminal has been made narrower, as most of them wrap."""
        return sum(max(0, -(-drawn // max(1, width)) - 1) for drawn in self._widths)


def _taking_away(lines: int) -> Control:
    """Erase the line that the cursor is on and those above it."""
    step = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
    return Control(*(step * lines))
