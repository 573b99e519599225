"""Where PostgreSQL's expressions open and close: parentheses and quotes, as text. Pure.

Each text is gone through once, however deep its parentheses stand inside each other.
"""

import re
from collections.abc import Callable, Mapping, Sequence

_STRING = re.compile(r"('(?:[^']++|'')*+')")
_QUOTED = re.compile(r"'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"|[()\[\]]")
_NOWHERE = -1
"""In place of a parenthesis, for what stands in none."""


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


def bare(text: str) -> str:
    """The text without parentheses around the whole, and without white space around it."""
    begin, end, _ = _inside(text, 0, len(text), _Brackets(text, "").ends)
    return text[begin:end]


def split_outside(text: str, word: str) -> list[str]:
    """The parts between occurrences of `word` that stand in no parenthesis and no quotes."""
    if word not in text:
        return [text]
    places = _Brackets(text, word).places.get(_NOWHERE, [])
    return [text[begin:end] for begin, end in _between(0, len(text), places, word)]


def split_inside(text: str, word: str) -> list[str]:
    """The same of bare parts, those that stood in parentheses as a whole split in their turn."""
    brackets = _Brackets(text, word)
    parts = []
    left = [(0, len(text), brackets.places.get(_NOWHERE, []))]
    while left:
        begin, end, places = left.pop()
        begin, end, bracket = _inside(text, begin, end, brackets.ends)
        if bracket != _NOWHERE:
            places = brackets.places.get(bracket, [])
        if places:
            left += [(*bounds, []) for bounds in reversed(_between(begin, end, places, word))]
        else:
            parts.append(text[begin:end])
    return parts


class _Brackets:
    """The parentheses of a text, and where a word stands in it outside of quotes."""

    def __init__(self, text: str, word: str) -> None:
        """word: empty for none."""
        self.ends: dict[int, int] = {}
        """Of each parenthesis that is closed, by its place, where what it closes ends."""
        self.places: dict[int, list[int]] = {}
        """Of the word, by the parenthesis in which it stands."""
        opened, position = [_NOWHERE], 0
        marks = [(match.start(), match.end(), match[0]) for match in _QUOTED.finditer(text)]
        for start, end, mark in [*marks, (len(text), len(text), "")]:
            while word and (found := text.find(word, position, start)) >= 0:
                self.places.setdefault(opened[-1], []).append(found)
                position = found + len(word)
            position = end
            if mark in ("(", "["):
                opened.append(start)
            elif mark in (")", "]") and len(opened) > 1:
                self.ends[opened.pop()] = end


def _inside(text: str, begin: int, end: int, ends: Mapping[int, int]) -> tuple[int, int, int]:
    """Where a part begins and ends without what stands around the whole of it, and the last parenthesis around it."""
    bracket = _NOWHERE
    while True:
        while begin < end and text[begin].isspace():
            begin += 1
        while begin < end and text[end - 1].isspace():
            end -= 1
        if not text.startswith("(", begin) or ends.get(begin) != end or text[end - 1] != ")":
            return begin, end, bracket
        bracket, begin, end = begin, begin + 1, end - 1


def _between(begin: int, end: int, places: Sequence[int], word: str) -> list[tuple[int, int]]:
    return list(zip([begin, *(place + len(word) for place in places)], [*places, end], strict=True))
