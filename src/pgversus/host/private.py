"""Files and directories that nobody but their owner reads, whatever the umask: passwords may be in them."""

import os
from pathlib import Path
from typing import IO

from filelock import FileLock

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600


def open_private(file: Path, mode: str) -> IO[bytes]:
    """Open a file in a mode of open() for bytes; a new one is private, and one that is there keeps its mode."""
    return open(file, f"{mode}b", opener=_private)


def write_private(file: Path, text: str) -> None:
    """Write a private file of our own in the place of what is there."""
    with open_private(file, "w") as private:
        os.fchmod(private.fileno(), PRIVATE_FILE)
        private.write(text.encode())


def private_lock(file: Path, *, blocking: bool = True) -> FileLock:
    """A lock whose file is private."""
    return FileLock(file, mode=PRIVATE_FILE, blocking=blocking)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)
