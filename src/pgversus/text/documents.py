"""JSON documents: removes secrets, limits nesting."""

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pgversus.text.redaction import (
    code_without_secrets,
    command_without_secrets,
    may_hold_secrets,
    value_without_secrets,
)
from pgversus.text.secrets import is_secret

Hide = Callable[[str], str]
_LARGEST_FILE = 10_000_000
# Larger files contain rows, which cannot be guessed from a hash.
_PAIRS = frozenset({"levels", "settings", "variables"})
"""Keys of lists of (name, value) pairs."""
_WITH_NAMES = _PAIRS | {"program"}


def document_without_secrets(text: str, hide: Hide = code_without_secrets) -> str:
    """Return the JSON document without secrets; unchanged if nothing is hidden.

    hide: applied to every text.
    """
    if not may_hold_secrets(text):
        return text
    value = json.loads(text)
    hidden = parts_without_secrets(value, hide)
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False)


def parts_without_secrets(value: Any, hide: Hide = code_without_secrets) -> Any:
    """Hide secrets in parsed JSON. One Python call per level, so that documents can be as deep as Python's stack."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return list(map(partial(parts_without_secrets, hide=hide), value))
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        found[hide(key)] = (
            _named(key, one, hide) if key in _WITH_NAMES or isinstance(one, str) else parts_without_secrets(one, hide)
        )
    return found | _of_names(value, found, hide)


def hidden_sha256(content: bytes) -> str | None:
    """Return the SHA-256 of a file's text without its secrets; None if it has none.

    It is stored instead of the file's own hash, from which a password could be guessed, and which would change with the
    password although the question is the same.
    """
    if len(content) > _LARGEST_FILE:
        return None
    text = content.decode(errors="surrogateescape")
    hidden = code_without_secrets(text)
    return None if hidden == text else _sha256(hidden)


def _of_names(table: Mapping[str, Any], found: Mapping[str, Any], hide: Hide) -> dict[str, Any]:
    """Return the values of a table that are hidden because of its other keys."""
    name, value, values = table.get("name"), table.get("value"), table.get("values")
    hidden: dict[str, Any] = {}
    if isinstance(name, str) and isinstance(value, str):
        hidden["value"] = _value(name, value, hide)
    # The name of a statement that has values of its parameters says what it reads.
    if isinstance(name, str) and isinstance(values, list) and _are_texts(values) and "value_class" not in table:
        hidden["values"] = [_value(name, one, hide) for one in values]
    if isinstance(table.get("hidden_sha256"), str):
        hidden |= {"sha256": table["hidden_sha256"], "hidden_sha256": None}
    elif "sha256" in table and isinstance(text := table.get("text"), str) and found["text"] != text:
        # Stored by earlier versions.
        hidden["sha256"] = _sha256(found["text"])
    return hidden


def _named(key: str, value: Any, hide: Hide) -> Any:
    """Return the value of a key, hidden as the key requires."""
    if isinstance(value, str):
        return _example(value, hide) if key == "example" else _value(key, value, hide)
    if key == "program" and _are_texts(value):
        return list(command_without_secrets(value))
    if key in _PAIRS and isinstance(value, list) and all(map(_is_pair, value)):
        return [[hide(name), _value(name, one, hide)] for name, one in value]
    return parts_without_secrets(value, hide)


def _value(name: str, value: str, hide: Hide) -> str:
    return value_without_secrets(name, value) if is_secret(name) else hide(value)


def _example(text: str, hide: Hide) -> str:
    """Return a plan from a server, which is a document in itself, without secrets."""
    try:
        return document_without_secrets(text, hide)
    except ValueError:
        return hide(text)


def _is_pair(value: Any) -> bool:
    return _are_texts(value) and len(value) == 2  # noqa: PLR2004 - a name and its value


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def is_nested_deeper(document: Any, levels: int) -> bool:
    """Return whether lists and mappings are nested more than this many levels deep."""
    inside = [document]
    for _ in range(levels):
        inside = [
            child
            for item in inside
            for child in (item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ())
        ]
        if not inside:
            return False
    return True
