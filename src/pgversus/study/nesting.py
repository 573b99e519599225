"""How deep lists and tables stand inside each other: whatever walks a document may then call itself."""

from collections.abc import Mapping
from typing import Any


def is_nested_deeper(document: Any, levels: int) -> bool:
    """Return whether values stand inside lists and mappings more than so many levels deep."""
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
