"""Mutations of valid inputs: each function returns another input, determined by the given Random."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

CONTROLS = (
    *("\0", "\x07", "\b", "\r", "\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;file:///etc/passwd\x1b\\", "\x7f", "\x9b31m"),
    *("\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\u2029", "\u0085", "\ufeff", "\u200b"),
)
"""Characters that a terminal obeys, or that change the order or the lines of a text."""
NUMBERS = (
    *("0", "-0", "-1", "00", "0.0", "1e-400", "1e308", "1e999", "-1e999", "5e-324", "NaN", "Infinity", "0x10"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "9" * 400, "9" * 5000),
)
TOKENS = (
    *("null", "true", "[]", "{}", '""', '"\\ud800"', '"\\u0000"', '"\\u001b[31m"', "[" * 600, '{"a":' * 600),
    *("'", '"', "''", '"""', "\\", "`", "$$", "--", "/*", "*/", ";", "#", "=", ",", "%s", "{0}", "[bold]", "../", "~"),
    *("\n", "\t", " ", "\r\n", "\u3042", "\U0001f600", "e\u0301", "password=secret", "postgresql://u:p@h/d?x=%00"),
)
_WORST = (*CONTROLS, *NUMBERS, *TOKENS)
_LONG = 20_000
_LONGEST = 100_000
"""Limit for changed texts: longer ones take more time without finding more."""
_PAGE_BYTES = 4096
_CHANGES = (1, 1, 1, 2, 3)
"""Numbers of changes to an input, mostly one, so that the rest of the input is read as well."""
_PLACE = "PLACE OF A TOKEN"
OTHERS = ("-1", "0", "null", "true", "[]", "{}", '""', '"\\ud800"', "1e999", "1e300", "-7", "9" * 400, "NaN")
"""JSON values that replace values of other types."""


def changed_bytes(data: bytes, other: bytes, rng: Random) -> bytes:
    """Return the data with some bytes or pages changed, lost, repeated, or taken from another input."""
    changed = bytearray(data)
    for _ in range(rng.choice(_CHANGES)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(9):
            case 0:
                del changed[at:]
            case 1:
                page = at // _PAGE_BYTES * _PAGE_BYTES
                first = bytes(changed[:_PAGE_BYTES])
                changed[page : page + _PAGE_BYTES] = rng.choice([bytes(_PAGE_BYTES), first, rng.randbytes(_PAGE_BYTES)])
            case 2 | 3:
                changed[at] = rng.randrange(256)
            case 4:
                changed[at] ^= 1 << rng.randrange(8)
            case 5:
                changed[at:at] = _piece(other, rng)
            case 6:
                changed[at:] = other[rng.randrange(len(other) + 1) :]
            case _:
                # In a text, another digit or letter.
                changed[at : at + 1] = rng.choice([b"0", b"9", b"-", b"e", b"x", b'"', b"[", b"\xff"])
    return bytes(changed)


def changed_text(text: str, other: str, rng: Random) -> str:
    """Return the text with characters, words or lines lost, repeated, exchanged, or replaced by extreme ones."""
    for _ in range(rng.choice(_CHANGES)):
        separator = rng.choice(["", "\n", " "])
        parts = text.split(separator) if separator else list(text)
        if not parts:
            break
        at = rng.randrange(len(parts))
        match rng.randrange(8):
            case 0:
                del parts[at : at + rng.choice([1, 1, 5, 200, len(parts)])]
            case 1:
                parts[at:at] = parts[at : at + 5] * rng.choice([1, 2, 100])
            case 2:
                parts[at] = rng.choice(parts)
            case 3:
                parts[at] = rng.choice(other.split(separator) if separator else list(other or " "))
            case 4:
                parts[at] = separator.join([parts[at], rng.choice(_WORST)])
            case 5 if rng.random() < 0.1:
                parts[at] = (rng.choice([*_WORST, "x", "(", "[", " "]) * _LONG)[:_LONG]
            case _:
                parts[at] = rng.choice(_WORST)
        text = separator.join(parts)[:_LONGEST]
    return text


def changed_numbers(text: str, rng: Random) -> str:
    """Return the text with one run of digits replaced by another one or by an extreme number."""
    pieces = _with_digits_apart(text)
    places = [place for place, piece in enumerate(pieces) if piece[:1].isdigit()]
    for _ in range(rng.choice(_CHANGES)):
        if places:
            pieces[rng.choice(places)] = rng.choice([rng.choice(NUMBERS), pieces[rng.choice(places)]])
    return "".join(pieces)


def changed_value(value: Any, rng: Random) -> Any:
    """Return a JSON value in which a nested value is replaced, removed, nested, or marked for replacement by a token.

    The argument itself may be modified.
    """
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        if rng.random() < 0.1:
            del value[key]
        elif isinstance(value, dict) and rng.random() < 0.05:
            value[rng.choice(_WORST)] = value.pop(key)
        else:
            value[key] = changed_value(value[key], rng)
        return value
    if isinstance(value, str) and rng.random() < 0.4:
        return changed_text(value, "", rng)
    return rng.choice(
        [_PLACE, _PLACE, value, [value, value], {"a": value}, -1, 0, 10**9, "x", _nested(value, rng), *CONTROLS[4:7]]
    )


def changed_json(text: str, rng: Random) -> str:
    """Return a document with some values changed, as JSON or as text that a program might accept as JSON."""
    document = json.loads(text)
    for _ in range(rng.choice(_CHANGES)):
        document = changed_value(document, rng)
    return json.dumps(document).replace(f'"{_PLACE}"', rng.choice(OTHERS))


def changed_document(text: str, other: str, rng: Random) -> bytes:
    """Return a JSON document with changed values, characters or bytes."""
    match rng.randrange(4):
        case 0:
            return changed_bytes(text.encode(), other.encode(), rng)
        case 1:
            return changed_text(text, other, rng).encode(errors="surrogatepass")
        case _:
            return changed_json(text, rng).encode(errors="surrogatepass")


def one_of(rng: Random, corpus: Sequence[str], change: Callable[[str, str, Random], str] = changed_text) -> str:
    """Return a changed text of the corpus, or, one time in twenty, an unchanged one."""
    text, other = rng.choice(corpus), rng.choice(corpus)
    return text if rng.random() < 0.05 else change(text, other, rng)


def _piece(data: bytes, rng: Random) -> bytes:
    begin = rng.randrange(len(data) + 1)
    return data[begin : begin + rng.choice([1, 20, 500])]


def _nested(value: Any, rng: Random) -> Any:
    for _ in range(rng.choice([3, 30, 300])):
        value = [value] if rng.random() < 0.5 else {"a": value}
    return value


def _with_digits_apart(text: str) -> list[str]:
    """Return the text in pieces: runs of digits and the text between them."""
    pieces = [""]
    for character in text:
        if pieces[-1][-1:].isdigit() == character.isdigit():
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces
