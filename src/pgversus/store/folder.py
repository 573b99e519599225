"""Results folders: whether one can be written, what is in it, its lock, the results of attributions beneath it."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import Timeout

from pgversus.errors import StoreError
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, private_lock

SCHEMA_VERSION = 3
FILE_NAME = "results.sqlite"


def check_folder(folder: Path, *, may_hold_results: bool = False) -> None:
    """StoreError when results could not be written to this folder, or when there are some already; makes nothing.

    Asked before anything is fetched or loaded, so that nothing is measured in vain.
    """
    try:
        is_taken = holds_results(folder)
        nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        can_write = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
        links = [path.name for path in _written(folder) if path.is_symlink()]
    except OSError as error:
        raise unwritable(folder, error.strerror or error) from error
    if is_taken and not may_hold_results:
        raise StoreError(
            "there are results in this folder already",
            slug="store-not-empty",
            where=str(folder),
            found=FILE_NAME,
            expected="a new folder",
            to_do="name another one with --results, or leave it out",
        )
    if not can_write:
        raise unwritable(folder, f"{nearest} is no directory that this user may write to")
    if links:
        # Somebody else may have made the folder.
        raise unwritable(folder, f"{links[0]} in it is a symbolic link: what is written would go elsewhere")


def _written(folder: Path) -> Iterator[Path]:
    """What a run writes directly into a results folder."""
    yield from (folder / f"{FILE_NAME}{end}" for end in ("", "-wal", "-shm", "-journal", ".part"))
    yield from (folder / name for name in ("lock", "attributions", "transaction-logs"))
    yield from folder.glob("*arm-*.log")


def holds_results(folder: Path) -> bool:
    """Whether there is a results file in this folder."""
    return (folder / FILE_NAME).exists()


def move_away(folder: Path, mark: str) -> Path | None:
    """Rename a folder that holds results; its new name, or None when it holds none. StoreError when it cannot be."""
    if not holds_results(folder):
        return None
    aside = folder.with_name(f"{folder.name}-until-{mark}")
    try:
        return folder.rename(aside)
    except OSError as error:
        raise unwritable(folder, error.strerror or error) from error


def unwritable(folder: Path, why: object) -> StoreError:
    """The error of a folder that cannot be written."""
    return StoreError(
        "results cannot be written",
        slug="store-unwritable",
        where=str(folder),
        found=str(why),
        expected="a folder that can be written",
        to_do="make room there, or name another folder with --results; blocks that were finished are kept",
    )


def unreadable(folder: Path, why: object) -> StoreError:
    """The error of results that are not there, are damaged, or have another form."""
    return StoreError(
        "results cannot be read",
        slug="store-unreadable",
        where=str(folder),
        found=str(why),
        expected=f"a results folder of pgversus: {FILE_NAME} with schema version {SCHEMA_VERSION}",
        to_do="name the folder that a comparison or a study said its results are in",
    )


_LOCK_NAME = "lock"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """This results folder for one run alone, made when missing; StoreError when another run has it, or it cannot be.

    Where nothing was kept, what was made here goes again. The lock file stays beside results: whoever waits at a lock
    file that is removed after its release holds a lock on nothing.
    """
    made = [] if holds_results(folder) else _missing(folder)
    lock = private_lock(folder / _LOCK_NAME)
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
            (folder / _LOCK_NAME).unlink(missing_ok=True)
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
