"""How values of a study file are shown in messages."""

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Any

from pgversus.text.redaction import value_without_secrets, without_secrets

_LONGEST = 60
_LARGEST = 2**63


def shown(value: Any) -> str:
    """The value as TOML has it, on one line, shortened; a table or a list by its kind; never a password."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(_shortened(without_secrets(value)), ensure_ascii=False)
    if isinstance(value, int | float):
        # Python refuses to write down integers of thousands of digits.
        return str(value) if abs(value) < _LARGEST or isinstance(value, float) else "a number beyond 64 bits"
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return _kind(value)


def shown_value(name: str, value: Any) -> str:
    """The same of the value of a key, whose name may be that of a secret."""
    return shown(value_without_secrets(name, value) if isinstance(value, str) else value)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, Mapping) else "nothing"


def as_toml(value: Any) -> str:
    """The value as it can be written into a study file; text, numbers, booleans, lists and tables of them."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{as_key(key)} = {as_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return shown(value)


def as_key(name: str) -> str:
    """The name as a TOML key: in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
