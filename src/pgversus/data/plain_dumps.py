r"""The commands of a dump in plain text, one by one, and the rows that follow a COPY.

psql is not used: if a server rejects a table, psql reads its rows as SQL, up to the next semicolon, and loses the
commands that follow. It would also execute commands such as `\!` in them. Text stays in bytes: a dump says itself in
which encoding it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from pgversus.errors import DatasetError

_CONNECT = re.compile(rb"\\c(?:onnect)?\b")
_COPY = re.compile(rb"COPY\s.*\sFROM\s+stdin\s*;$", re.IGNORECASE | re.DOTALL)
_END_OF_ROWS = b"\\."
_MARK = re.compile(
    rb"--[^\n]*|/\*|\b[eE]'|['\"();]|\$(?:[A-Za-z_\x80-\xff][\w\x80-\xff]*)?\$|\b(?:begin|case|end)\b", re.IGNORECASE
)
_ROUTINE = re.compile(rb"CREATE\s+(?:OR\s+REPLACE\s+)?(?:FUNCTION|PROCEDURE)\b", re.IGNORECASE)
"""Beginning of a command that may have a body of SQL with semicolons: BEGIN ATOMIC ... END."""
_BEFORE = re.compile(rb"(?:\s++|--[^\n]*+|/\*.*?\*/)*+", re.DOTALL)
"""White space and comments before a command."""
_IN_QUOTES = {b"'": re.compile(rb"''|'"), b"e'": re.compile(rb"\\.|''|'", re.DOTALL), b'"': re.compile(rb'"')}
"""What may end a string or a quoted name, by its opening."""
_IN_COMMENT = re.compile(rb"/\*|\*/")


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedCommand:
    """One command of a dump."""

    line: int
    """Number of the line on which it begins."""
    text: bytes
    """Without the comments before it."""
    rows: Iterator[bytes] | None = None
    """The lines of rows after a COPY, which must be read before the next command; None for another command."""


def commands_of(lines: IO[bytes], where: str) -> Iterator[DumpedCommand]:
    """Yield the commands of a dump. where: its path, for messages.

    DatasetError if it connects to another database, or ends in the middle of a command or of rows.
    """
    numbered, waiting, first = enumerate(lines, 1), _Text(), 1
    for number, line in numbered:
        if waiting.is_blank:
            if line.startswith(b"\\"):
                # \restrict and \unrestrict concern psql only.
                if _CONNECT.match(line):
                    raise _several_databases(where)
                continue
            waiting, first = _Text(), number
        waiting.add(line)
        while (text := waiting.next_command()) is not None:
            before = _BEFORE.match(text)
            skipped = 0 if before is None else before.end()
            begin, command = first + text.count(b"\n", 0, skipped), text[skipped:]
            first += text.count(b"\n")
            if _COPY.match(command):
                rows = _rows(numbered, where)
                yield DumpedCommand(line=begin, text=command, rows=rows)
                # A rejected COPY has read none.
                for _unread in rows:
                    pass
                waiting = _Text()
            else:
                yield DumpedCommand(line=begin, text=command)
    if not waiting.is_blank:
        raise _incomplete(where, f"a command without an end, from line {first}")


def _rows(numbered: Iterator[tuple[int, bytes]], where: str) -> Iterator[bytes]:
    for _number, line in numbered:
        if line.rstrip(b"\r\n") == _END_OF_ROWS:
            return
        yield line
    raise _incomplete(where, "rows without an end")


class _Text:
    """Lines that have been read, up to the end of a command. Each byte is looked at once.

    Like psql, it counts parentheses, and BEGIN, CASE and END in commands that create routines.
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._position = 0
        self._parentheses = self._bodies = self._comments = 0
        self._opening = b""
        """The quote or the dollars of an unclosed part."""

    @property
    def is_blank(self) -> bool:
        """Whether there is only white space and comments."""
        before = _BEFORE.match(self._text)
        return not self._opening and not self._comments and before is not None and before.end() == len(self._text)

    def add(self, line: bytes) -> None:
        self._text += line

    def next_command(self) -> bytes | None:
        """Return the text up to the next semicolon outside quotes, comments, parentheses and bodies; None without."""
        while self._is_outside():
            found = _MARK.search(self._text, self._position)
            if found is None:
                self._position = len(self._text)
                return None
            mark, self._position = found[0], found.end()
            # Otherwise, it would keep the text from being changed.
            del found
            if mark == b";" and not (self._parentheses or self._bodies):
                command = bytes(self._text[: self._position])
                del self._text[: self._position]
                self._position = self._parentheses = self._bodies = 0
                return command
            self._count(mark)
        return None

    def _count(self, mark: bytes) -> None:
        match mark.lower():
            case b"(":
                self._parentheses += 1
            case b")":
                self._parentheses = max(0, self._parentheses - 1)
            case b"/*":
                self._comments = 1
            case b"begin" | b"case" | b"end" as word:
                if not self._parentheses and self._creates_routine():
                    self._bodies = _bodies(self._bodies, word)
            case b"'" | b"e'" | b'"' as quote:
                self._opening = quote
            case _:
                # Tags are case-sensitive.
                self._opening = mark if mark.startswith(b"$") else b""

    def _creates_routine(self) -> bool:
        before = _BEFORE.match(self._text)
        return before is not None and _ROUTINE.match(self._text, before.end()) is not None

    def _is_outside(self) -> bool:
        """Move to the end of an unclosed part; return whether it is closed now, or there is none."""
        if self._comments:
            return self._has_left_comment()
        if self._opening.startswith(b"$"):
            end = self._text.find(self._opening, self._position)
            self._position = max(self._position, len(self._text) - len(self._opening)) if end < 0 else end
            if end >= 0:
                self._position += len(self._opening)
                self._opening = b""
        elif self._opening:
            for found in _IN_QUOTES[self._opening].finditer(self._text, self._position):
                self._position = found.end()
                if found[0] in (b"'", b'"'):
                    self._opening = b""
                    break
            else:
                self._position = len(self._text)
        return not self._opening

    def _has_left_comment(self) -> bool:
        for found in _IN_COMMENT.finditer(self._text, self._position):
            self._position = found.end()
            self._comments += 1 if found[0] == b"/*" else -1
            if not self._comments:
                return True
        self._position = len(self._text)
        return False


def _bodies(depth: int, word: bytes) -> int:
    """Return the new number of open bodies; a CASE outside of a body is the expression of a default."""
    if word == b"end":
        return max(0, depth - 1)
    return depth + 1 if depth or word == b"begin" else depth


def _incomplete(where: str, found: str) -> DatasetError:
    return DatasetError(
        "the dump is incomplete",
        slug="dataset-load-failed",
        where=where,
        found=found,
        expected="a complete dump",
        to_do="create it again: pg_dump -Fc -f app.dump DATABASE",
    )


def _several_databases(where: str) -> DatasetError:
    return DatasetError(
        "the dump connects to a different database",
        slug="dataset-load-failed",
        where=where,
        found="the command \\connect",
        expected="a dump of one database, without --create",
        to_do="create a dump of one database: pg_dump -Fc -f app.dump DATABASE",
    )
