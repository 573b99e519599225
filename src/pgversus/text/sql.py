"""Strings, quoted names and comments in a text of SQL: where each begins and ends.

Scripts come from anybody, so a text is read in time that grows with its length alone. A regular expression that looks
for the end of what is never closed would read the rest of the text again at every place where one may begin.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

COMMENT = r"--|/\*"
"""What begins a comment, as a regular expression."""
QUOTE = rf"\b[eE]'|['\"]|\$\w*\$|{COMMENT}"
"""The same of a string, a quoted name or a comment."""

_COMMENT, _QUOTE = re.compile(COMMENT), re.compile(QUOTE)
_REST_OF_STRING = re.compile(r"(?:[^']++|'')*+'")
_REST_OF_ESCAPED = re.compile(r"(?:[^'\\]++|\\.|'')*+'", re.DOTALL)
# What stands behind a dollar may be the end of one tag and the beginning of another.
_MARK = re.compile(r"(?=(\$\w*\$|\*/|[\"\n]))")


class Quotes:
    """The ends of the quoted parts of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks: dict[str, list[int]] | None = None
        """Where each mark stands that closes something; made when it is first asked for."""

    def end(self, opening: str, after: int) -> int | None:
        """Return the end of the part that was opened, None where it is never closed.

        opening: as QUOTE matches it. after: the position behind it.
        """
        match opening:
            case "'" | "e'" | "E'":
                rest = (_REST_OF_STRING if opening == "'" else _REST_OF_ESCAPED).match(self._text, after)
                return rest.end() if rest else None
            case "--":
                # The line feed is not part of it.
                end = self._behind("\n", after)
                return len(self._text) if end is None else end - 1
            case "/*":
                return self._behind("*/", after)
            case _:
                return self._behind(opening, after)

    def _behind(self, mark: str, after: int) -> int | None:
        if self._marks is None:
            self._marks = {}
            for found in _MARK.finditer(self._text):
                self._marks.setdefault(found[1], []).append(found.start())
        places = self._marks.get(mark, [])
        number = bisect_left(places, after)
        return places[number] + len(mark) if number < len(places) else None


def without_comments(text: str, instead: str = "") -> str:
    """Return the text with each comment replaced, also with what only looks like one inside a string."""
    return _without(text, _COMMENT, instead)


def without_quoted(text: str) -> str:
    """Return the text without its strings, quoted names, bodies of functions and comments."""
    return _without(text, _QUOTE, "")


def _without(text: str, opening: re.Pattern[str], instead: str) -> str:
    pieces, done = [], 0
    for begin, end in _parts(text, opening):
        pieces += [text[done:begin], instead]
        done = end
    return "".join([*pieces, text[done:]])


def _parts(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where each quoted part begins and ends; what is never closed is not one."""
    quotes, position = Quotes(text), 0
    while (found := opening.search(text, position)) is not None:
        end = quotes.end(found[0], found.end())
        if end is None:
            position = found.start() + 1
        else:
            yield found.start(), end
            position = end


_ESCAPED = str.maketrans({"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r"})


def quoted(text: str) -> str:
    """The text on one line, with what quotes and backslashes it has protected."""
    return f"'{text.translate(_ESCAPED)}'"
