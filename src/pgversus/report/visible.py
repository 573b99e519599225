"""Texts of others, made safe to show: a title, a path, an error's words may hold what a terminal would obey."""

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""All control characters but line feed and tab, those that turn the direction of writing, those that end a line where
nobody expects it, and halves of characters, which no file can hold."""


def visible(text: str) -> str:
    r"""The same text with `\x1b` for an escape, and so on; idempotent. Lines of Windows end like any other."""
    return _CONTROLS.sub(_spelled, text.replace("\r\n", "\n"))


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}"  # noqa: PLR2004 - two digits hold it
