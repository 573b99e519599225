"""Names that appear only when their content is on disk, so that a crash leaves a complete file or none."""

import os
from pathlib import Path


def put_in_place(made: Path, place: Path) -> None:
    """Rename a file or directory once all of it is on disk: after a crash it is complete or absent."""
    for path in (made, *made.rglob("*")):
        if not path.is_symlink():
            sync_to_disk(path)
    made.rename(place)
    sync_to_disk(place.parent)


def sync_to_disk(path: Path) -> None:
    """Write a file, or the names in a directory, to disk; OSError if that fails."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
