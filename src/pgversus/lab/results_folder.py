"""The results folder of a run: for this run alone, and what is done with earlier results in it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path

from pgversus.store.folder import check_folder, holds_results, locked_folder, put_aside
from pgversus.store.reading import StoredStudy, read_results


class EarlierResults(StrEnum):
    """What is done with results that are in the folder already."""

    REFUSE = "refuse"
    """They are an error."""
    GO_ON = "go on"
    """They are gone on with."""
    PUT_ASIDE = "put aside"
    """The folder is renamed once there is something to keep, and a new one begun."""


class HeldFolder:
    """A results folder that is locked for this run, and what is in it."""

    def __init__(self, folder: Path, earlier: EarlierResults, stack: ExitStack) -> None:
        """stack: gives up what is locked at its end."""
        self._folder = folder
        self._puts_aside = earlier is EarlierResults.PUT_ASIDE
        self._stack = stack
        self.earlier: StoredStudy | None = None
        """Results that are gone on with."""
        if earlier is EarlierResults.GO_ON and holds_results(folder):
            self.earlier = read_results(folder)

    @property
    def is_ours(self) -> bool:
        """Whether what is in the folder belongs to this run."""
        return not self._puts_aside

    def begin(self) -> Path | None:
        """Put aside what is there and is not gone on with, and lock the folder that takes its place.

        Its new name, or None where nothing was there. StoreError when it cannot be renamed, or another run was faster.
        """
        aside = put_aside(self._folder, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())) if self._puts_aside else None
        self._puts_aside = False
        if aside is not None:
            self._stack.enter_context(locked_folder(self._folder))
            # What was written in between is nobody's to overwrite.
            check_folder(self._folder)
        return aside


@contextmanager
def results_folder(folder: Path, earlier: EarlierResults) -> Iterator[HeldFolder]:
    """The folder, locked until the end. What is put aside in it stays as it is until the run begins.

    StoreError when another run has it, when it cannot be written, and for results that are refused or unreadable.
    """
    may_hold_results = earlier is not EarlierResults.REFUSE
    check_folder(folder, may_hold_results=may_hold_results)
    if earlier is EarlierResults.PUT_ASIDE:
        # Where it is renamed.
        check_folder(folder.absolute().parent, may_hold_results=True)
    with ExitStack() as stack:
        stack.enter_context(locked_folder(folder))
        # Again: what was written in between is nobody's to overwrite.
        check_folder(folder, may_hold_results=may_hold_results)
        yield HeldFolder(folder, earlier, stack)
