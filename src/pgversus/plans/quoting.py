"""Where PostgreSQL's expressions open and close: parentheses and quotes, as text. Pure."""

import re
from collections.abc import Callable

_STRING = re.compile(r"('(?:[^']|'')*')")
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[()\[\]]")


def outside_strings(text: str, change: Callable[[str], str]) -> str:
    """The text with what is in no string literal changed."""
    if "'" not in text:
        return change(text)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(_STRING.split(text)))


def closing(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`; the end of the text where none does."""
    depth = 0
    for match in _QUOTED.finditer(text, start):
        mark = match[0]
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
            if depth <= 0:
                return match.end()
    return len(text)


def split_outside(text: str, word: str) -> list[str]:
    """The parts between occurrences of `word` that stand in no parenthesis and no quotes."""
    if word not in text:
        return [text]
    parts, depth, begin, position = [], 0, 0, 0
    marks = [(match.start(), match.end(), match[0]) for match in _QUOTED.finditer(text)]
    for start, end, mark in [*marks, (len(text), len(text), "")]:
        while depth == 0 and (found := text.find(word, position, start)) >= 0:
            parts.append(text[begin:found])
            begin = position = found + len(word)
        position = max(position, end)
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
    return [*parts, text[begin:]]
