"""Removes users and passwords from texts that are stored or shown.

The context of a text does not always show what is a password; in doubt, more is hidden rather than less. Exceptions are
connection URIs, which stay as readable as possible because they identify the compared servers, and SQL, commands and
connection strings, in which only the value is hidden because they are compared when a study is resumed.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from urllib.parse import unquote

from pgversus.errors import PgversusError, StudyFileError
from pgversus.text.secrets import (
    COLON,
    HIDDEN,
    KEYS,
    MARK,
    PERCENT,
    PORT,
    RedactionExtent,
    SecretValues,
    end_of_line,
    end_of_run,
    is_secret,
    is_user,
)

_HINTS = (
    *("pass", "pwd", "secret", "token", "credential", "://", "line "),
    *(f"{whose}{joint}key" for whose, joint in product(KEYS, ("", "_", "-"))),
)
_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]+://")
_CLOSING = {quote: re.compile(rf"(?<![\\'\"]){quote}(?=[\s,;)\]}}#]|\Z)") for quote in "\"'"}
"""The closing quote of a URI in quotes, as opposed to quotes that are escaped, doubled, or written for a shell."""
_KEYWORD = re.compile(r"[?&]([^=&?\s]*)=")
_SWITCH = re.compile(r"on|off|true|false|yes|no", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_OF_PASSWORD = re.compile(r"pass|pwd|secret", re.IGNORECASE)
_TAKES_CODE = re.compile(r"-[A-Za-z]*c")
"""The option before a text in another language, as in `sh -lc` and `psql -c`."""
_PARTS = "what", "where", "found", "expected", "to_do"


def without_secrets(text: str) -> str:
    """Return the text without users and passwords in URIs, connection strings, SQL and variables."""
    return _hidden(text, RedactionExtent.LINE, users=True)


def message_without_secrets(text: str) -> str:
    """Return the message of a server, a program or an error without passwords; the rejected user stays visible."""
    return _hidden(text, RedactionExtent.LINE)


def word_without_secrets(word: str) -> str:
    """Return one argument of a command without secrets; white space and quotes do not end a value."""
    return _hidden(word, RedactionExtent.WORD, users=True)


def code_without_secrets(text: str) -> str:
    """Return SQL, a shell command or a connection string without passwords and otherwise unchanged."""
    return _hidden(text, RedactionExtent.VALUE)


def value_without_secrets(name: str, value: str) -> str:
    """Return the value of a setting or variable without secrets; hidden as a whole if its name is that of a secret."""
    is_harmless = _SWITCH.fullmatch(value) or (_NUMBER.fullmatch(value) and not _OF_PASSWORD.search(name))
    if value and is_secret(name) and not is_harmless:
        return HIDDEN
    return code_without_secrets(value)


def holds_secret(name: str, value: str) -> bool:
    """Return whether a part of the value would be hidden."""
    return value_without_secrets(name, value) != value


def command_without_secrets(words: Sequence[str]) -> tuple[str, ...]:
    """Return a program and its arguments without secrets, still distinguishable from other commands."""
    found: list[str] = []
    before = ""
    for word in words:
        if _is_secret_option(before) and not word.startswith("-"):
            found.append(HIDDEN)
        else:
            is_code = _TAKES_CODE.fullmatch(before) and not _SCHEME.match(word)
            found.append(_hidden(word, RedactionExtent.VALUE if is_code else RedactionExtent.ARGUMENT))
        before = word
    return tuple(found)


def hide_in_error(error: PgversusError) -> None:
    """Hide secrets in all parts of an error, which may contain messages of a server or a program."""
    for part in _PARTS:
        setattr(error, part, message_without_secrets(getattr(error, part)))
    if isinstance(error, StudyFileError):
        for problem in error.problems:
            hide_in_error(problem)


def may_hold_secrets(text: str) -> bool:
    """Return whether the text may contain secrets other than users: a fast check that excludes most texts."""
    small = text.lower()
    if any(hint in small for hint in _HINTS):
        return True
    return PORT.search(text) is not None or ("%" in text and PERCENT.search(text) is not None)


def _hidden(text: str, extent: RedactionExtent, *, users: bool = False) -> str:
    """Hide secrets in a text. users: whether to hide values assigned to a user as well."""
    if not may_hold_secrets(text) and not (users and "user" in text.lower()):
        return text
    text = text.replace(MARK, "").replace(COLON, "")
    text = "".join(_uris_hidden(text, is_word=extent in (RedactionExtent.WORD, RedactionExtent.ARGUMENT)))
    return "".join(SecretValues(text, extent, users=users).hidden()).replace(MARK, HIDDEN).replace(COLON, ":")


def _is_secret_option(word: str) -> bool:
    """Return whether the value of an option is the next word."""
    return word.startswith("--") and not word.startswith("--no-") and "=" not in word and is_secret(word)


def _uris_hidden(text: str, *, is_word: bool) -> Iterator[str]:
    """Yield pieces of the text, with URIs without user, password and values of secret keywords."""
    done = 0
    while (scheme := _SCHEME.search(text, done)) is not None:
        end = len(text) if is_word else _end_of_uri(text, scheme.start(), scheme.end())
        yield text[done : scheme.end()]
        yield _uri_hidden(text[scheme.end() : end]).replace(":", COLON)
        done = end
    yield text[done:]


def _end_of_uri(text: str, start: int, after: int) -> int:
    """Return the position of the closing quote, or of the next white space if the URI is not quoted."""
    quote = text[start - 1 : start]
    if quote in _CLOSING:
        line_end = end_of_line(text, after)
        # Inside triple quotes, a single quote may be part of the text.
        is_open = text.endswith(quote * 3, 0, start)
        closing = None if is_open else _CLOSING[quote].search(text, after, line_end)
        return line_end if closing is None else closing.start()
    return end_of_run(text, after)


def _uri_hidden(body: str) -> str:
    """Return the part after the scheme without secrets; hidden as a whole if user and keyword are ambiguous."""
    before, at, place = body.rpartition("@")
    if at and any(_is_hidden(name) for name in _KEYWORD.findall(before)):
        return MARK
    # A literal "user", as in messages: postgresql://user@host.
    pieces, done = ["user@"] if before == "user" else [], 0
    while (found := _KEYWORD.search(place, done)) is not None:
        pieces.append(place[done : found.end()])
        done = found.end()
        if _is_hidden(found[1]):
            end = place.find("&", done)
            done = len(place) if end < 0 else end
            pieces.append(MARK)
    return "".join([*pieces, place[done:]])


def _is_hidden(keyword: str) -> bool:
    name = unquote(keyword)
    return is_secret(name) or is_user(name)


_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except line feed and tab, bidirectional controls, unusual line separators, and surrogates, which
cannot be written to a file."""


def visible(text: str) -> str:
    r"""Return the text with control characters written like `\x1b`; idempotent. Converts Windows line endings."""
    return _CONTROLS.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 - two digits hold it
