"""Telling files apart by what is in them."""

import hashlib
from pathlib import Path


def file_sha256(file: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; OSError when it cannot be read."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
