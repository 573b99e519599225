"""Results folders: checks, contents, lock, and the results of attributions in subfolders."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from filelock import Timeout

from pgversus.errors import StoreError
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, private_lock

SCHEMA_VERSION = 3
FILE_NAME = "results.sqlite"


def check_folder(folder: Path, *, may_hold_results: bool = False) -> None:
    """Raise StoreError if results cannot be written to this folder, or it already holds results; create nothing.

    Called before anything is downloaded or loaded, so that nothing is measured in vain.
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
            "this folder already holds results",
            slug="store-not-empty",
            where=str(folder),
            found=FILE_NAME,
            expected="a new folder",
            to_do="specify a different one with --results, or omit the option",
        )
    if not can_write:
        raise unwritable(folder, f"{nearest} is not a directory that this user can write to")
    if links:
        # The folder may come from another user.
        raise unwritable(folder, f"{links[0]} in it is a symbolic link, so results would be written elsewhere")


def _written(folder: Path) -> Iterator[Path]:
    """Yield the paths that a run writes directly into a results folder."""
    yield from (folder / f"{FILE_NAME}{end}" for end in ("", "-wal", "-shm", "-journal", ".part"))
    yield from (folder / name for name in ("lock", *FollowUp, "confirmation", "transaction-logs"))
    yield from folder.glob("*arm-*.log")


def holds_results(folder: Path) -> bool:
    """Return whether there is a results file in this folder."""
    return (folder / FILE_NAME).exists()


def move_away(folder: Path, mark: str) -> Path | None:
    """Rename a folder that holds results; return its new path, or None if it holds none. StoreError if that fails."""
    if not holds_results(folder):
        return None
    aside = folder.with_name(f"{folder.name}-until-{mark}")
    try:
        return folder.rename(aside)
    except OSError as error:
        raise unwritable(folder, error.strerror or error) from error


def unwritable(folder: Path, why: object) -> StoreError:
    """Return the error for a folder that cannot be written."""
    return StoreError(
        "results could not be written",
        slug="store-unwritable",
        where=str(folder),
        found=str(why),
        expected="a writable folder",
        to_do="free disk space or correct the permissions, or specify a different folder with --results; finished "
        "blocks are stored",
    )


def unreadable(folder: Path, why: object) -> StoreError:
    """Return the error for results that are missing, damaged or of an unknown format."""
    return StoreError(
        "results could not be read",
        slug="store-unreadable",
        where=str(folder),
        found=str(why),
        expected=f"a results folder of pgversus: {FILE_NAME} with schema version {SCHEMA_VERSION}",
        to_do="specify a folder that pgversus reported as its results; if only the schema version differs, use the "
        "version of pgversus that wrote it",
    )


_LOCK_NAME = "lock"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock a results folder for one run, creating it if it is missing; StoreError if it is in use or not writable.

    If no results were stored, everything created here is removed again. The lock file stays next to results: if it
    were removed after its release, a run that waits for it would hold a lock on nothing.
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
        # Not after results were moved away: the folder of this name then belongs to the next run.
        if was_empty and not holds_results(folder):
            # Before the release, so that no other run can acquire it in between.
            (folder / _LOCK_NAME).unlink(missing_ok=True)
            _remove_empty(made)
        lock.release()


def _missing(folder: Path) -> list[Path]:
    """Return the folder and its parents that do not exist yet, innermost first."""
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
        to_do="wait for it to finish, or specify a different folder with --results",
    )


def confirmation_folder(results: Path) -> Path:
    """Return the folder with the confirmation of the findings of an upgrade check."""
    return results / "confirmation"


NOT_ATTRIBUTED = "not_attributed"
"""The fact with the reasons for attributions that were not measured, by number of context and arm (`3-1`)."""
_NAME = re.compile(r"context-([1-9][0-9]{0,8})-arm-([1-9][0-9]{0,8})")


class FollowUp(StrEnum):
    """Studies that a verdict leads to, stored beneath the results that it comes from; the values name folders."""

    ATTRIBUTIONS = "attributions"
    SIDE_EFFECTS = "side-effects"


def followed_up(results: Path, kind: FollowUp) -> dict[int, list[int]]:
    """Return the contenders with results of this follow-up, by context."""
    found: dict[int, list[int]] = {}
    for folder in (results / kind).glob("context-*-arm-*"):
        parts = _NAME.fullmatch(folder.name)
        # A link could lead anywhere, even back to this folder.
        if parts is not None and not folder.is_symlink() and holds_results(folder):
            found.setdefault(int(parts[1]), []).append(int(parts[2]))
    return found


def follow_up_folder(results: Path, kind: FollowUp, context: int, contender: int) -> Path:
    """Return the folder with the results of a follow-up for one contender of one context."""
    return results / kind / f"context-{context}-arm-{contender}"
