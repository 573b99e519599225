"""Finds secret values by their names: their starts and ends in a text.

All patterns take linear time, whatever the text.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple
from urllib.parse import unquote

HIDDEN = "..."
"""Replaces hidden text."""
MARK, COLON = "\ue000", "\ue001"
"""Temporary placeholders for hidden text, and for colons in URIs, so that neither is misread by later steps."""
KEYS = "api", "private", "client", "server", "access"
PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
PORT = re.compile(r":(?:[0-9]{3,5}|\*):")
"""The port in a line of a password file."""

_SECRET = re.compile(
    r"pass(?:word|wd|phrase|file|code)|pwd|secret|token|credential|[_.-]pass(?![a-z])"
    rf"|(?:{'|'.join(KEYS)})[_-]?key",
    re.IGNORECASE,
)
_NO_SECRETS = frozenset(
    {
        "krb_server_keyfile",
        "password_encryption",
        "password_required",
        "ssl_passphrase_command_supports_reload",
    }
)
"""Names in PostgreSQL that only look like names of secrets."""
_USER = re.compile(r"(?i)(?:pg)?user(?:name)?")

_RUN = re.compile(r"(?:\\.|[^\s\\]|\\\Z)*", re.DOTALL)
_POINT = re.compile(
    rf"(?P<excerpt>^[ \t]*LINE [0-9]+: \.\.\.)|(?P<port>{PORT.pattern})|{_SECRET.pattern}|user|{PERCENT.pattern}",
    re.IGNORECASE | re.MULTILINE,
)
"""Positions at which a value may have to be hidden."""
_REST_OF_NAME = re.compile(r"[\w.%-]*")
_ASSIGNED = re.compile(
    r"""(?:\\?["'])?\s*(?:(?P<colon>:(?![:=]))|:=|=>|==?|(?<=\s)[Tt][Oo](?=\s+(?:\\?["']|[EeUu]&?'|\$\w*\$)))\s*"""
)
_SPACE = re.compile(r"\s+")
_OPENS = re.compile(r"""\\?["']|[EeUu]&?'|\$\w*\$""")
_QUOTED = re.compile(r"(?:[EeUu]&?)?(\\?[\"'])|(\$\w*\$)")
_PSQL_VARIABLE = re.compile(r"""\s+:(?:'\w+'|"\w+"|\w)""")
_OF_OPTION = re.compile(r"\s+(?=[^\s-])")
_PSQL_SET, _SET_CONFIG = re.compile(r"\\set(?:env)?[ \t]+\Z"), re.compile(r"set_config\s*\(\s*'\Z", re.IGNORECASE)
_NEXT_ARGUMENT, _NEXT_WORD = re.compile(r"'\s*,\s*"), re.compile(r"[ \t]+(?=\S)")
_SET, _TO = (
    re.compile(r"\bset\s+(?:(?:session|local)\s+)?\Z", re.IGNORECASE),
    re.compile(r"\s+to\s+(?=\S)", re.IGNORECASE),
)
_LOOK_BACK = 30
_FIELDS = re.compile(r"(?:(?:\\.|[^\s:\\'\"])+:){2}(?=[^\s:])")
"""Database and user in a line of a password file, after host and port."""

_BEHIND = r"[\s,;)\]}\"'&#|<>]|::|\Z"
_ENDS = re.compile(_BEHIND)
_OPENS_INSIDE = re.compile(rf"[\"'](?!{_BEHIND})")
_STOPS = {(quote, escapes): re.compile(rf"[\\{quote}]" if escapes else quote) for quote in "\"'" for escapes in (0, 1)}
_ESCAPED_END = {quote: re.compile(rf"(?<!\\)\\{quote}(?={_BEHIND})") for quote in "\"'"}
_QUOTES = {quote: re.compile(rf"(?<![\\{quote}]){quote}+") for quote in "\"'"}
_SHELL_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")*""", re.DOTALL)


class RedactionExtent(Enum):
    """The amount of text to hide with a secret value."""

    LINE = auto()
    """The rest of the line in which it ends: for texts of unknown format."""
    WORD = auto()
    """Everything after its name: in one argument of a command, white space and quotes do not end a value."""
    ARGUMENT = auto()
    """Like WORD, unless the argument consists of several words itself."""
    VALUE = auto()
    """Only the value: for SQL, commands and connection strings, whose syntax defines its end."""


_CALLS = (
    (_PSQL_SET, _NEXT_WORD, RedactionExtent.LINE),
    (_SET_CONFIG, _NEXT_ARGUMENT, RedactionExtent.VALUE),
    (_SET, _TO, RedactionExtent.VALUE),
)
"""Text before a name, text between the name and its value, and the extent of the value."""


def is_secret(name: str) -> bool:
    """Return whether a value with this name is a secret."""
    return _SECRET.search(name) is not None and name.lower() not in _NO_SECRETS


def is_user(name: str) -> bool:
    """Return whether a value with this name is a user."""
    return _USER.fullmatch(name) is not None


def end_of_run(text: str, start: int) -> int:
    """Return the position of the next white space without a backslash, or the end of the text."""
    run = _RUN.match(text, start)
    return run.end() if run else start


def end_of_line(text: str, start: int) -> int:
    """Return the position of the next line feed, or the end of the text."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


class _Value(NamedTuple):
    """The value that belongs to a name."""

    begin: int
    extent: RedactionExtent
    is_shell: bool = False
    """Whether it may use shell quoting, where a word may continue after a quote."""


class SecretValues:
    """The secret values of one text, found from start to end."""

    def __init__(self, text: str, extent: RedactionExtent, *, users: bool) -> None:
        self._text = text
        self._extent = extent
        self._users = users
        self._line = self._comment = (0, -1)
        self._prose = (0, -1, 0)
        self._gaps = {-1: -1}

    def hidden(self) -> Iterator[str]:
        """Yield the text in pieces, without secret values."""
        text, done, searched = self._text, 0, 0
        while (point := _POINT.search(text, searched)) is not None:
            if point["excerpt"]:
                begin, end = self._of_excerpt(point)
            elif point["port"]:
                begin, end = self._of_password_file(point)
            else:
                begin, end = self._of_name(point, done)
            if begin < end:
                yield text[done:begin] + MARK
                done = end
            # This is always beyond the first character of the match.
            searched = end
        yield text[done:]

    def _of_excerpt(self, point: re.Match[str]) -> tuple[int, int]:
        """Return the statement excerpt of an error, which may start inside a literal or after the name of a secret."""
        end = self._line_end(point.end())
        if any(self._text.find(quote, point.end(), end) >= 0 for quote in "'$"):
            return point.end() - len(HIDDEN), end
        return point.end(), point.end()

    def _of_password_file(self, point: re.Match[str]) -> tuple[int, int]:
        """Return the last field of host:port:database:user:password."""
        host = self._text[max(0, point.start() - 1) : point.start()]
        fields = _FIELDS.match(self._text, point.end())
        if fields is None or not host or host.isspace() or host in "\"'":
            return point.end() - 1, point.end() - 1
        if self._is_hidden(fields.end()):
            return fields.end(), fields.end()
        return fields.end(), self._line_end(fields.end())

    def _of_name(self, point: re.Match[str], done: int) -> tuple[int, int]:
        text, start = self._text, point.start()
        while start > done and (text[start - 1].isalnum() or text[start - 1] in "_.%-"):
            start -= 1
        rest = _REST_OF_NAME.match(text, point.end())
        end = rest.end() if rest else point.end()
        name = unquote(text[start:end])
        secret = is_secret(name.lstrip("-"))
        if not secret and not (self._users and is_user(name)):
            return end, end
        value = self._value(start, end, name, secret=secret)
        if value is None or text.startswith(MARK, value.begin) or self._is_hidden(value.begin):
            # Continue after the name, because the assigned text may be a name as well.
            return end, end
        if secret and self._extent is RedactionExtent.ARGUMENT:
            self._extent = RedactionExtent.VALUE if _SPACE.search(text, 0, start) else RedactionExtent.WORD
        return value.begin, max(end, self._end_of_value(value, secret=secret))

    def _is_hidden(self, position: int) -> bool:
        """Return whether the value is already hidden in the stored text."""
        after = position + len(HIDDEN)
        return self._text.startswith(HIDDEN, position) and _ENDS.match(self._text, after) is not None

    def _value(self, start: int, end: int, name: str, *, secret: bool) -> _Value | None:
        """Return the value assigned to a name, or following it in the syntax of SQL, psql or options."""
        text, extent = self._text, RedactionExtent.VALUE
        is_variable = self._extent is RedactionExtent.VALUE and _PSQL_VARIABLE.match(text, end) is not None
        if not is_variable and (assigned := _ASSIGNED.match(text, end)):
            # Values in prose may contain spaces: `password: correct horse`.
            is_prose = assigned["colon"] is not None or self._is_in_comment(start)
            is_shell = text.startswith("=", assigned.end() - 1)
            return _Value(assigned.end(), RedactionExtent.LINE if is_prose else extent, is_shell)
        before = text[max(0, start - _LOOK_BACK) : start]
        for place, gap, reach in _CALLS:
            if place.search(before) and (found := gap.match(text, end)):
                return _Value(found.end(), reach)
        if not before.endswith("/") and (value := self._behind_gap(end, before)):
            return value._replace(is_shell=name.startswith("--"))
        if name.lower() == "password" and not before.endswith((":", "'", '"', "/")) and _OPENS.match(text, end):
            return _Value(end, extent)
        if secret and name.startswith("--") and not name.startswith("--no-"):
            option = _OF_OPTION.match(text, end)
            return None if option is None else _Value(option.end(), extent, is_shell=True)
        return None

    def _behind_gap(self, end: int, before: str) -> _Value | None:
        """Return a quoted text after a name, white space and comments."""
        text = self._text
        begin = end + 1 if before.endswith('"') and text.startswith('"', end) else end
        position = self._end_of_gap(begin)
        if position < 0:
            return _Value(begin, RedactionExtent.WORD)
        return _Value(position, RedactionExtent.VALUE) if position > begin and _OPENS.match(text, position) else None

    def _end_of_gap(self, begin: int) -> int:
        """Return the end of white space and comments; -1 for an unclosed comment. Each piece is read once."""
        text, position = self._text, begin
        passed: list[int] = []
        while position not in self._gaps:
            passed.append(position)
            if space := _SPACE.match(text, position):
                position = space.end()
            elif text.startswith("--", position):
                position = self._line_end(position)
            elif text.startswith("/*", position):
                position = self._comment_end(position)
            else:
                self._gaps[position] = position
        end = self._gaps[position]
        self._gaps |= dict.fromkeys(passed, end)
        return end

    def _end_of_value(self, value: _Value, *, secret: bool) -> int:
        extents = (self._extent, value.extent)
        if secret and RedactionExtent.WORD in extents:
            return len(self._text)
        is_line = RedactionExtent.LINE in extents
        quoted = _QUOTED.match(self._text, value.begin)
        if quoted is not None:
            end = self._end_of_quoted(quoted, is_line=is_line, is_shell=value.is_shell)
        elif secret and not is_line:
            end = self._end_of_bare(value.begin)
        else:
            end = value.begin
        if secret and is_line:
            return self._line_end(end)
        # Extended so that the value is recognized as hidden when the text is read again.
        return end if secret and _ENDS.match(self._text, end) else end_of_run(self._text, end)

    def _end_of_bare(self, begin: int) -> int:
        """Return the end of the run; if it contains an opening quote, the end of the quoted text as well."""
        end = end_of_run(self._text, begin)
        if _OPENS_INSIDE.search(self._text, begin, end):
            return max(self._line_end(begin), self._end_of_shell_word(begin))
        return end

    def _end_of_quoted(self, opening: re.Match[str], *, is_line: bool, is_shell: bool) -> int:
        """Return the position after the closing quote, the last one of all syntaxes; by default the end of the text.

        A backslash escapes a quote in a connection string, but not in SQL. In a shell a word may continue after a
        quote. A connection string inside SQL has its quotes doubled.
        """
        text, begin = self._text, opening.end()
        if opening[2]:
            end = text.find(opening[2], begin)
            return len(text) if end < 0 else end + len(opening[2])
        quote = opening[1]
        if quote.startswith("\\"):
            escaped = _ESCAPED_END[quote[1]].search(text, begin)
            return len(text) if escaped is None else escaped.end()
        ends = [self._closing(begin, quote, escapes=escapes) for escapes in (0, 1)]
        if is_shell and not is_line:
            ends.append(self._end_of_shell_word(opening.start()))
        if not is_line and text.startswith(quote, begin):
            ends.append(self._closing_doubled(begin + 1, quote))
        return max(ends)

    def _closing(self, begin: int, quote: str, *, escapes: int) -> int:
        text, position = self._text, begin
        while (stop := _STOPS[quote, escapes].search(text, position)) is not None:
            after = stop.end()
            if stop[0] == "\\" or text.startswith(quote, after):
                position = after + 1
            elif _ENDS.match(text, after):
                return after
            else:
                position = after
        return len(text)

    def _closing_doubled(self, begin: int, quote: str) -> int:
        """Return the end in quoted text, where inner quotes are doubled and escaped inner quotes are fourfold."""
        for run in _QUOTES[quote].finditer(self._text, begin):
            if len(run[0]) % 4 and _ENDS.match(self._text, run.end()):
                return run.end()
        return begin

    def _end_of_shell_word(self, begin: int) -> int:
        """Return the end of a shell word; the end of the text if a quote is not closed."""
        word = _SHELL_WORD.match(self._text, begin)
        end = word.end() if word else begin
        return len(self._text) if self._text[end : end + 1] in ("'", '"', "\\") else end

    def _is_in_comment(self, position: int) -> bool:
        """Return whether an SQL comment starts before the position in its line."""
        if not self._prose[0] <= position <= self._prose[1]:
            begin, end = self._text.rfind("\n", 0, position) + 1, self._line_end(position)
            comment = self._text.find("-- ", begin, end)
            self._prose = (begin, end, end if comment < 0 else comment)
        return self._prose[2] < position

    def _line_end(self, position: int) -> int:
        # Cached, because a line with many names would be searched for each of them.
        if not self._line[0] <= position <= self._line[1]:
            self._line = (position, end_of_line(self._text, position))
        return self._line[1]

    def _comment_end(self, position: int) -> int:
        """Return the end of the comment at this position; -1 if it is not closed. Cached like line ends."""
        if not self._comment[0] <= position + 2 <= self._comment[1]:
            end = self._text.find("*/", position + 2)
            self._comment = (position + 2, len(self._text) + 2 if end < 0 else end)
        return self._comment[1] + 2 if self._comment[1] < len(self._text) else -1
