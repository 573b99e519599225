"""Texts of users as blocks of code, which nothing in them can end; and what is unfolded by who wants to see it."""

import html
import re

from pgversus.text.redaction import visible

_TICKS = re.compile("`+")
_LEAST = 3


def fenced(text: str, language: str = "") -> str:
    """A block of code: its fences are longer than any run of backticks in it."""
    shown = visible(text).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(_LEAST, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def folded(summary: str, content: str) -> str:
    """Content behind a line that unfolds it. summary: plain text; content: Markdown."""
    line = html.escape(" ".join(visible(summary).split()), quote=False)
    return f"<details><summary>{line}</summary>\n\n{content}\n\n</details>"
