"""Users and passwords taken out of texts that are kept or shown.

What is a password cannot always be told from what stands around it: where that is in doubt more is hidden, and never
less. Only connection URIs are left as readable as they can be, for they say what a study compares.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

_HIDDEN = "..."
_MARK, _COLON = "\ue000", "\ue001"
"""Stand for what was hidden, and for a colon in a URI, until all is done: neither is then taken for what it is not."""

_SCHEME = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]++://")
_RUN = re.compile(r"(?:\\.|\S)*", re.DOTALL)
_CLOSING = {quote: re.compile(rf"(?<![\\'\"]){quote}(?=[\s,;)\]}}#]|\Z)") for quote in "\"'"}
"""The end of a text in quotes: no quote that the text holds escaped, doubled, or as a shell has it."""
_KEYWORD = re.compile(r"[?&]([^=&?\s]*)=")
_SECRET = re.compile(
    r"pass(?:word|wd|phrase|file|code)|pwd|secret|token|credential|(?:api|private|client|server)_?key", re.IGNORECASE
)
_NAMED = re.compile(
    r"""(?<![\w.%-])
    (?: (?P<assigned>[\w.%-]++)(?:\\?["'])?\s*[=:]\s*
      | (?<!/)(?P<named>\w++)(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\n]*\n)++(?=\\?["']|[EeUu]&?'|\$)
      | (?<!/)(?P<joined>[Pp][Aa][Ss][Ss][Ww][Oo][Rr][Dd])(?='|\$)
    )""",
    re.VERBOSE,
)
"""A name and what begins its value: an assignment, or as SQL has it a text in quotes behind the name."""
_QUOTED = re.compile(r"(?:[EeUu]&?)?(\\?[\"'])|(\$\w*\$)")
_BEHIND = r"(?=[\s,;)\]}\"'&#]|\Z)"
_ENDS_OF_QUOTED = {
    quote: tuple(
        re.compile(
            rf"(?:{escape}{quote}{quote}|[^{quote}{escaping}]|{quote}(?!{_BEHIND}))*+{quote}{_BEHIND}", re.DOTALL
        )
        for escape, escaping in ((r"\\.|", r"\\"), ("", ""))
    )
    for quote in "\"'"
} | {f"\\{quote}": (re.compile(rf".*?(?<!\\)\\{quote}{_BEHIND}", re.DOTALL),) for quote in "\"'"}
"""By what opens it. A backslash protects a quote in a connection string, and does not in SQL: the later end counts."""
_USER = re.compile(r"(?i)(?:pg)?user(?:name)?")


def without_secrets(text: str) -> str:
    """The text without the users and passwords that may be in it: of URIs, connection strings, SQL and variables."""
    return _hidden(text, is_word=False)


def word_without_secrets(word: str) -> str:
    """The same of one argument of a command, in which white space and quotes end nothing."""
    return _hidden(word, is_word=True)


def _hidden(text: str, *, is_word: bool) -> str:
    text = text.replace(_MARK, "").replace(_COLON, "")
    text = "".join(_uris_hidden(text, is_word=is_word))
    return "".join(_values_hidden(text, is_word=is_word)).replace(_MARK, _HIDDEN).replace(_COLON, ":")


def _uris_hidden(text: str, *, is_word: bool) -> Iterator[str]:
    """The text in pieces, each URI without its user, its password and the values of its secret keywords."""
    done = 0
    while (scheme := _SCHEME.search(text, done)) is not None:
        end = len(text) if is_word else _end_of_uri(text, scheme.start(), scheme.end())
        yield text[done : scheme.end()]
        yield _uri_hidden(text[scheme.end() : end]).replace(":", _COLON)
        done = end
    yield text[done:]


def _end_of_uri(text: str, start: int, after: int) -> int:
    """Where the quote is that closes it, else the white space behind it."""
    quote = text[start - 1 : start]
    if quote in _CLOSING:
        line_end = _line_end(text, after)
        # In three of them each quote may be one of the text's own.
        is_open = text.endswith(quote * 3, 0, start)
        closing = None if is_open else _CLOSING[quote].search(text, after, line_end)
        return line_end if closing is None else closing.start()
    run = _RUN.match(text, after)
    return run.end() if run else after


def _uri_hidden(body: str) -> str:
    """What is behind the scheme; nothing of it where a user and a keyword cannot be told apart."""
    before, at, place = body.rpartition("@")
    if at and any(_is_hidden(found[1]) for found in _KEYWORD.finditer(before)):
        return _MARK
    pieces, done = [], 0
    while (found := _KEYWORD.search(place, done)) is not None:
        pieces.append(place[done : found.end()])
        done = found.end()
        if _is_hidden(found[1]):
            done += len(place[done:].partition("&")[0])
            pieces.append(_MARK)
    return "".join([*pieces, place[done:]])


def _values_hidden(text: str, *, is_word: bool) -> Iterator[str]:
    """The text in pieces, without values of secret names and what stands behind them in their line."""
    done = searched = 0
    while (found := _NAMED.search(text, searched)) is not None:
        name = unquote(found[found.lastindex or 0])
        if text.startswith(_MARK, found.end()) or not _is_hidden(name):
            # Behind it, not behind what it is assigned: that may be a name as well.
            searched = found.end(found.lastindex or 0)
            continue
        yield text[done : found.end()] + _MARK
        is_secret = _SECRET.search(name) is not None
        if is_word and is_secret:
            return
        done = searched = _end_of_value(text, found.end(), is_secret=is_secret)
    yield text[done:]


def _end_of_value(text: str, start: int, *, is_secret: bool) -> int:
    """Of a user behind the word; of a secret the end of the line in which it ends."""
    quoted = _QUOTED.match(text, start)
    end = start if quoted is None else _end_of_quoted(text, quoted)
    if is_secret:
        return _line_end(text, end)
    run = _RUN.match(text, end)
    return run.end() if run else end


def _end_of_quoted(text: str, opening: re.Match[str]) -> int:
    """Behind the quote that closes it; the end of the text where none does."""
    if opening[2]:
        end = text.find(opening[2], opening.end())
        return len(text) if end < 0 else end + len(opening[2])
    closings = [end.match(text, opening.end()) for end in _ENDS_OF_QUOTED[opening[1]]]
    return max(len(text) if closing is None else closing.end() for closing in closings)


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _is_hidden(name: str) -> bool:
    plain = unquote(name)
    return _SECRET.search(plain) is not None or _USER.fullmatch(plain) is not None
