"""Text in single quotes, as postgresql.conf and the commands of psql have it."""

_ESCAPED = str.maketrans({"\\": "\\\\", "'": "''", "\n": "\\n", "\r": "\\r"})


def quoted(text: str) -> str:
    """The text on one line, with what quotes and backslashes it has protected."""
    return f"'{text.translate(_ESCAPED)}'"
