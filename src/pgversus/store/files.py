"""Results folders: whether one can be written, what is in it, and the errors that both sides share."""

import os
from collections.abc import Iterator
from pathlib import Path

from pgversus.errors import StoreError

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


def put_aside(folder: Path, mark: str) -> Path | None:
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
