"""The lock of a results folder: one run at a time, from before anything is read until after everything is kept."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import Timeout

from pgversus.errors import StoreError
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, private_lock
from pgversus.store.files import holds_results, unwritable

_NAME = "lock"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """This results folder for one run alone, made when missing; StoreError when another run has it, or it cannot be.

    Where nothing was kept, what was made here goes again. The lock file stays beside results: whoever waits at a lock
    file that is removed after its release holds a lock on nothing.
    """
    made = [] if holds_results(folder) else _missing(folder)
    lock = private_lock(folder / _NAME)
    try:
        make_directory(folder, PRIVATE_DIRECTORY)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise _in_use(folder) from error
    except OSError as error:
        _remove_empty(made)
        raise unwritable(folder, error.strerror or error) from error
    was_empty = not holds_results(folder)
    try:
        yield
    finally:
        # Not once results were put aside: what has this name by then belongs to the next run.
        if was_empty and not holds_results(folder):
            # Before the release, so that nobody can get hold of it in between.
            (folder / _NAME).unlink(missing_ok=True)
            _remove_empty(made)
        lock.release()


def _missing(folder: Path) -> list[Path]:
    """The folder and those above it that are not there yet, innermost first."""
    return [path for path in (folder, *folder.parents) if not path.exists()]


def _remove_empty(folders: Sequence[Path]) -> None:
    for path in folders:
        with suppress(OSError):
            path.rmdir()


def _in_use(folder: Path) -> StoreError:
    return StoreError(
        "another run of pgversus is writing to this folder",
        slug="store-in-use",
        where=str(folder),
        found="its lock is held",
        expected="one run at a time",
        to_do="wait for it, or name another folder with --results",
    )
