"""Where it is kept what plans account for: results of their own, beneath those that they explain."""

import re
from pathlib import Path

from pgversus.store.files import holds_results

NOT_ATTRIBUTED = "not_attributed"
"""The fact that says, by number of context and arm (`3-1`), why it was not measured."""
_FOLDER = "attributions"
_NAME = re.compile(r"context-([1-9][0-9]{0,8})-arm-([1-9][0-9]{0,8})")


def attributed_contexts(results: Path) -> dict[int, list[int]]:
    """By context the contenders of which something is kept."""
    found: dict[int, list[int]] = {}
    for folder in (results / _FOLDER).glob("context-*-arm-*"):
        parts = _NAME.fullmatch(folder.name)
        # A link could lead anywhere, and back to where it stands.
        if parts is not None and not folder.is_symlink() and holds_results(folder):
            found.setdefault(int(parts[1]), []).append(int(parts[2]))
    return found


def attribution_folder(results: Path, context: int, contender: int) -> Path:
    """Of one contender of one context."""
    return results / _FOLDER / f"context-{context}-arm-{contender}"
