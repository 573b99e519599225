"""Quantities of a study file, read by the parsers that flags have."""

import re
from collections.abc import Callable
from typing import TypeVar

from pgversus.errors import StudyError
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems

Value = TypeVar("Value")


def quantity(path: Path, text: str | None, parse: Callable[[str, str], Value], problems: Problems) -> Value | None:
    """Return the parsed value; None when there is none, or when it is a problem now."""
    if text is None:
        return None
    key = str(path[-1])
    try:
        return parse(text, key)
    except StudyError as error:
        # The parser speaks of flags: `budget 15m` there is `budget = "15m"` here.
        error.to_do = re.sub(rf"{key} (\S+)", rf'{key} = "\1"', error.to_do)
        problems.add(path, error)
        return None
