"""The results folder of a run: for this run alone, and what is done with earlier results in it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from pgversus.store.files import check_folder, holds_results, put_aside
from pgversus.store.lock import locked_folder
from pgversus.store.reading import StoredStudy, read_results


class EarlierResults(StrEnum):
    """What is done with results that are in the folder already."""

    REFUSE = "refuse"
    """They are an error."""
    GO_ON = "go on"
    """They are gone on with."""
    PUT_ASIDE = "put aside"
    """The folder is renamed, and a new one begun."""


@contextmanager
def results_folder(folder: Path, earlier: EarlierResults) -> Iterator[StoredStudy | None]:
    """The folder, locked until the end, and what is in it that is gone on with.

    StoreError when another run has it, when it cannot be written, and for results that are refused or unreadable.
    """
    check_folder(folder, may_hold_results=earlier is not EarlierResults.REFUSE)
    if earlier is EarlierResults.PUT_ASIDE:
        with locked_folder(folder):
            put_aside(folder, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    with locked_folder(folder):
        # Again: what was written in between is nobody's to overwrite.
        check_folder(folder, may_hold_results=earlier is EarlierResults.GO_ON)
        yield read_results(folder) if holds_results(folder) else None
