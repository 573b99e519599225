"""Directories that runs use and somebody may want to remove: shared locks, which end with their process."""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def in_use(directories: Iterable[Path]) -> Iterator[None]:
    """While this lasts, nobody gets hold of these with `unused`; OSError when one is no longer there."""
    with ExitStack() as stack:
        for directory in directories:
            stack.enter_context(_locked(directory, fcntl.LOCK_SH))
        yield


@contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """Whether nobody uses it; while this lasts, nobody begins to."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(directory, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except BlockingIOError:
            is_free = False
        else:
            is_free = True
        yield is_free


@contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(file, how)
        # What was removed while we waited is still locked, and no use to anybody.
        if not os.path.samestat(os.fstat(file), directory.stat()):
            raise FileNotFoundError(directory)
        yield
    finally:
        os.close(file)
