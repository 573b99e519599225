"""A table that is the answer to a study: statements of an upgrade check, or versions of a timeline."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """A table whose numbers are already text."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    names: int
    """Number of columns of text at the beginning of each row; numbers follow."""
    has_long_names: bool = False
    """Whether the texts of the first column are long; a terminal shows them last."""
    notes: list[str]
    """Sentences below it."""
