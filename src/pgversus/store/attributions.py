"""Where it is kept what plans account for: results of their own, beneath those that they explain."""

from pathlib import Path

NOT_ATTRIBUTED = "not_attributed"
"""The fact that says, by number of context and arm (`3-1`), why it was not measured."""


def attribution_folder(results: Path, context: int, contender: int) -> Path:
    """Of one contender of one context."""
    return results / "attributions" / f"context-{context}-arm-{contender}"
