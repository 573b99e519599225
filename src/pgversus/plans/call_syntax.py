"""Calls in the syntax of the SQL standard, as EXPLAIN prints them since 14, as the plain calls that 13 prints.

`TRIM(BOTH FROM t.a)` becomes `btrim(t.a)`, and `(t.b AT TIME ZONE 'UTC'::text)` becomes `timezone('UTC'::text, t.b)`;
also POSITION, OVERLAY, SUBSTRING and OVERLAPS. EXTRACT is a different function than date_part, which older majors call,
and stays. Since 14, implicit casts of the arguments are not printed, so no casts of them are compared.
"""

import re
from collections.abc import Callable

from pgversus.plans.expressions import closing, enclosing, split_outside

_STANDARD = re.compile(r"\b(TRIM|POSITION|OVERLAY|SUBSTRING)\(")
_PLAIN = re.compile(r"(?:(?<![\w$\".])(?:btrim|ltrim|rtrim|timezone)|\"(?:position|overlay|substring|overlaps)\")\(")
_AT_TIME_ZONE, _OVERLAPS = " AT TIME ZONE ", " OVERLAPS "
_TRIMS = {"BOTH": "btrim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_QUOTED = re.compile(r"'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"")
_CAST = re.compile(r"::[a-z][\w .]*(?:\([\d,]+\))?(?:\[\])?")
_SEPARATORS = {
    "OVERLAY": (" PLACING ", " FROM ", " FOR "),
    "SUBSTRING": (" FROM ", " FOR ", " SIMILAR ", " ESCAPE "),
}


def as_plain_calls(text: str) -> str:
    """Return an expression with plain calls of these functions."""
    if _AT_TIME_ZONE in text:
        text = _without_operators(text, _AT_TIME_ZONE)
    if _OVERLAPS in text:
        text = _without_operators(text, _OVERLAPS)
    for calls, change in ((_STANDARD, _plain), (_PLAIN, _without_casts)):
        if calls.search(text):
            text = _changed(text, calls, change)
    return text


def _without_operators(text: str, operator: str) -> str:
    # The innermost ones come first; each is in parentheses of its own.
    while (bounds := enclosing(text, operator)) is not None:
        begin, end = bounds
        left, right = split_outside(text[begin + 1 : end - 1], operator)
        if operator == _AT_TIME_ZONE:
            call = f"timezone({right}, {left})"
        else:
            call = f'"overlaps"({_without_pair(left)}, {_without_pair(right)})'
        text = f"{text[:begin]}{call}{text[end:]}"
    return text


def _changed(text: str, calls: re.Pattern[str], change: Callable[[str, str], str]) -> str:
    """Return a text with other calls. change: returns a call from the beginning of one and its arguments."""
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    for call in reversed(list(calls.finditer(text))):
        # A quoted name of a function begins at its quote.
        if any(begin < call.start() < end for begin, end in quoted):
            continue
        # Calls inside of it have been replaced before.
        end = closing(text, call.end() - 1)
        text = f"{text[: call.start()]}{change(call[0], text[call.end() : end - 1])}{text[end:]}"
    return text


def _plain(beginning: str, arguments: str) -> str:
    keyword = beginning[:-1]
    if keyword == "TRIM":
        side, _, rest = arguments.partition(" ")
        characters, *value = split_outside(f" {rest}", " FROM ")
        known = [*value, characters.strip()] if value else [rest]
        return f"{_TRIMS.get(side, 'btrim')}({', '.join(filter(None, known))})"
    if keyword == "POSITION":
        return f'"position"({", ".join(map(_without_pair, reversed(split_outside(arguments, " IN "))))})'
    parts = [arguments]
    for separator in _SEPARATORS[keyword]:
        parts = [piece for part in parts for piece in split_outside(part, separator)]
    return f'"{keyword.lower()}"({", ".join(parts)})'


def _without_casts(beginning: str, arguments: str) -> str:
    return f"{beginning}{', '.join(map(_without_cast, split_outside(arguments, ', ')))})"


def _without_cast(argument: str) -> str:
    """Return an argument without the cast around it; a literal with a type stays."""
    if not argument.startswith("("):
        return argument
    end = closing(argument, 0)
    return _without_pair(argument[:end]) if _CAST.fullmatch(argument, end) else argument


def _without_pair(text: str) -> str:
    """Return the text in a pair of parentheses."""
    return text.strip()[1:-1]
