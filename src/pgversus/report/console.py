"""A console that shows control characters of texts instead of obeying them; colours and the cursor are rich's own."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pgversus.text.redaction import visible


class SafeConsole(Console):
    """rich itself takes away a bell or a carriage return, but lets an escape pass."""

    def __init__(self, **options: Any) -> None:
        """Take the options of rich; brackets in a text are no mark-up, which could name any link or be an error."""
        super().__init__(**options, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is printed, in pieces: text made visible, and rich's own control sequences as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
