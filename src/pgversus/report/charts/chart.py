"""A chart as data: what a browser or a converter draws, and the same as a table for who cannot see it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.text.redaction import visible

_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture. All its texts are plain and in the language in which it was made."""

    name: str
    """Of its file and its place in a page: letters, digits, `._-` alone."""
    title: str
    description: str
    """What it shows and how to read it, for who cannot see it."""
    specification: dict[str, Any]
    """In Vega-Lite, as wide as its container; its colours are names of the theme (theme.py)."""
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The numbers that are drawn, as text."""


def chart_name(*words: str) -> str:
    """A name made of these, whatever is in them, and short enough for a file; what tells it apart comes first."""
    text = "-".join(word for word in words if word)
    plain_text = "".join(character if character.isalnum() or character in "._-" else "_" for character in text)
    return plain_text.encode()[:_LONGEST_NAME].decode(errors="ignore")


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as a chart's own data, with the texts of others made visible."""
    import altair as alt  # noqa: PLC0415 - the third of a second is for who wants charts

    shown = [{key: visible(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]
    return alt.Data(values=shown)  # type: ignore[no-untyped-call]


def plain(text: str) -> str:
    """Without what Vega takes for the beginning of an escape, where it reads a title as one."""
    return visible(text).replace("\\", "/")


def quoted(text: str) -> str:
    """A text inside an expression of Vega's."""
    # JSON's escapes are those of its expressions.
    return json.dumps(visible(text), ensure_ascii=False)


def told_by_value(pairs: Sequence[tuple[float, str]]) -> str:
    """An expression that labels each of these values of an axis, and nothing else."""
    cases = "".join(f"abs(datum.value - {value!r}) < 1e-9 * {value!r} ? {quoted(text)} : " for value, text in pairs)
    return f"{cases}''"
