"""Strings, quoted names and comments in SQL: their starts and ends.

Scripts are untrusted, so a text is read in linear time. A regular expression that searches for the end of an unclosed
part would read the rest of the text again at every possible start.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator

COMMENT = r"--|/\*"
"""A regular expression for the start of a comment."""
QUOTE = rf"\b[eE]'|['\"]|\$\w*\$|{COMMENT}"
"""A regular expression for the start of a string, a quoted name or a comment."""
NAME = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
"""A regular expression for a name, with or without quotes."""

_COMMENT, _QUOTE = re.compile(COMMENT), re.compile(QUOTE)
_REST_OF_STRING = re.compile(r"(?:[^']++|'')*+'")
_REST_OF_ESCAPED = re.compile(r"(?:[^'\\]++|\\.|'')*+'", re.DOTALL)
# Overlapping matches: a dollar sign may end one tag and start another.
_MARK = re.compile(r"(?=(\$\w*\$|[\"\n]))")
_MARK_OF_COMMENT = re.compile(r"/\*|\*/")


class Quotes:
    """The ends of the quoted parts of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._marks: dict[str, list[int]] | None = None
        """Positions of each closing mark, computed at the first use."""
        self._comments: dict[int, int | None] = {}
        """Ends of comments, by the position after `/*`."""

    def end(self, opening: str, after: int) -> int | None:
        """Return the end of an opened part; None if it is not closed.

        opening: as matched by QUOTE. after: the position after it.
        """
        match opening:
            case "'" | "e'" | "E'":
                rest = (_REST_OF_STRING if opening == "'" else _REST_OF_ESCAPED).match(self._text, after)
                return rest.end() if rest else None
            case "--":
                # The line feed does not belong to the comment.
                end = self._behind("\n", after)
                return len(self._text) if end is None else end - 1
            case "/*":
                return self._behind_comment(after)
            case _:
                return self._behind(opening, after)

    def _behind_comment(self, after: int) -> int | None:
        """Return the end of a comment, which may contain other comments. Their ends are stored as well."""
        if after not in self._comments:
            opened = [after]
            for found in _MARK_OF_COMMENT.finditer(self._text, after):
                if found[0] == "/*":
                    opened.append(found.end())
                else:
                    self._comments[opened.pop()] = found.end()
                if not opened:
                    break
            self._comments |= dict.fromkeys(opened)
        return self._comments[after]

    def _behind(self, mark: str, after: int) -> int | None:
        if self._marks is None:
            self._marks = {}
            for found in _MARK.finditer(self._text):
                self._marks.setdefault(found[1], []).append(found.start())
        places = self._marks.get(mark, [])
        number = bisect_left(places, after)
        return places[number] + len(mark) if number < len(places) else None


def without_comments(text: str, instead: str = "") -> str:
    """Return the text with each comment replaced, including text inside strings that looks like a comment."""
    return _without(text, _COMMENT, instead)


def with_blank_comments(text: str) -> str:
    """Return the text with a space for each comment; strings and quoted names stay as they are."""
    pieces, done = [], 0
    for begin, end in quoted_parts(text):
        if text.startswith(("--", "/*"), begin):
            pieces += [text[done:begin], " "]
            done = end
    return "".join([*pieces, text[done:]])


def quoted_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each string, quoted name, function body and comment."""
    return _parts(text, _QUOTE)


def without_quoted(text: str) -> str:
    """Return the text without strings, quoted names, function bodies and comments."""
    return _without(text, _QUOTE, "")


def without_literals(text: str) -> str:
    """Return the text with `?` for each string and quoted name, and a space for each comment."""
    return _without(text, _QUOTE, "?", " ")


_PARENTHESES = re.compile(r"[()\[\]]")


def outermost(text: str) -> str:
    """Return the text with the contents of all parentheses and brackets removed. text: without quoted parts."""
    pieces, depth, done = [], 0, 0
    for mark in _PARENTHESES.finditer(text):
        if mark[0] in "([":
            if depth == 0:
                pieces.append(text[done : mark.end()])
            depth += 1
        elif depth > 0:
            depth -= 1
            done = mark.start()
    return "".join([*pieces, text[done:] if depth == 0 else ""])


def _without(text: str, opening: re.Pattern[str], instead: str, of_comment: str | None = None) -> str:
    pieces, done = [], 0
    for begin, end in _parts(text, opening):
        is_comment = of_comment is not None and text.startswith(("--", "/*"), begin)
        pieces += [text[done:begin], of_comment if is_comment and of_comment is not None else instead]
        done = end
    return "".join([*pieces, text[done:]])


def _parts(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each quoted part; unclosed parts are skipped."""
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
    """Return the text as a quoted string on one line, with quotes and backslashes escaped."""
    return f"'{text.translate(_ESCAPED)}'"


def quoted_name(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def unquoted_name(name: str) -> str:
    """Return the name that an identifier, with or without quotes, stands for."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
