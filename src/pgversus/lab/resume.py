"""Whether a run may resume earlier results: only those of the same question."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from pgversus.errors import StoreError
from pgversus.lab.study_changes import changes_between
from pgversus.postgres.labels import label_of_running
from pgversus.store.codec import context_without_secrets
from pgversus.store.folder import check_folder, holds_results, locked_folder, move_away, unwritable
from pgversus.store.reading import StoredContext, StoredStudy, read_results
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.study import Context, Study


class EarlierResults(StrEnum):
    """Treatment of results that already exist in the folder."""

    REFUSE = "refuse"
    """Raise an error."""
    RESUME = "resume"
    """Resume them."""
    MOVE_AWAY = "move-away"
    """Rename the folder once there is something to store, and begin a new one."""


class ResultsFolder:
    """A results folder that is locked for this run, and its contents."""

    def __init__(self, folder: Path, earlier: EarlierResults, stack: ExitStack) -> None:
        """stack: releases the locks at its end."""
        self._folder = folder
        self._puts_aside = earlier is EarlierResults.MOVE_AWAY
        self._stack = stack
        self.earlier: StoredStudy | None = None
        """Results to resume."""
        if earlier is EarlierResults.RESUME and holds_results(folder):
            self.earlier = read_results(folder)

    @property
    def is_ours(self) -> bool:
        """Whether the contents of the folder belong to this run."""
        return not self._puts_aside

    def begin(self) -> Path | None:
        """Move away existing results that are not resumed, and lock the folder that takes their place.

        Returns its new name, or None if nothing was moved. StoreError if renaming fails, or another run came first.
        """
        aside = move_away(self._folder, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())) if self._puts_aside else None
        self._puts_aside = False
        if aside is not None:
            self._stack.enter_context(locked_folder(self._folder))
            # Do not overwrite what was written in the meantime.
            check_folder(self._folder)
        return aside


@contextmanager
def results_folder(folder: Path, earlier: EarlierResults) -> Iterator[ResultsFolder]:
    """Yield the folder, locked until the end. Results to be moved away stay in place until the run begins.

    StoreError if another run has locked it, if it is not writable, or if its results are refused or unreadable.
    """
    may_hold_results = earlier is not EarlierResults.REFUSE
    check_folder(folder, may_hold_results=may_hold_results)
    if earlier is EarlierResults.MOVE_AWAY:
        if folder.name in ("", "..") and holds_results(folder):
            raise unwritable(folder, "a folder given as . or .. cannot be renamed to keep its earlier results")
        # The parent directory, in which it is renamed.
        check_folder(folder.absolute().parent, may_hold_results=True)
    with ExitStack() as stack:
        stack.enter_context(locked_folder(folder))
        # Check again: do not overwrite what was written in the meantime.
        check_folder(folder, may_hold_results=may_hold_results)
        yield ResultsFolder(folder, earlier, stack)


LOADED = "loaded"
"""The fact with the labels of external servers on which the study's data have been loaded."""
_MOST_SHOWN = 8


def without_secrets(study: Study) -> Study:
    """Return the study without secrets, as it may be shown and stored."""
    return replace(study, contexts=tuple(_without_secrets(context) for context in study.contexts))


def check_same_study(earlier: StoredStudy, study: Study, folder: Path) -> None:
    """Raise StoreError with the changes if the results are those of a different question."""
    changes = list(_changes(earlier, without_secrets(study)))
    if changes:
        more = f"; and {len(changes) - _MOST_SHOWN} more" if len(changes) > _MOST_SHOWN else ""
        raise StoreError(
            "the earlier results belong to a different study",
            slug="store-other-study",
            where=str(folder),
            found="; ".join(changes[:_MOST_SHOWN]) + more,
            expected="the study as it was when its first block was measured",
            to_do="undo the changes to resume, or start again with --new",
        )


def is_same_question(earlier: StoredStudy, study: Study) -> bool:
    """Return whether these results are those of this study."""
    return not list(_changes(earlier, without_secrets(study)))


def loaded_before(earlier: StoredStudy, study: Study) -> frozenset[ServerName]:
    """Return the external servers on which an earlier run has loaded the study's data."""
    prepared = _running_servers(study, [one.preparation is not None for one in earlier.contexts])
    # A run may have ended after loading but before the end of the first preparation.
    labels = labels_of_loaded(earlier)
    everywhere = _running_servers(study, [True] * len(study.contexts))
    return prepared | {server for server in everywhere if label_of_running(server) in labels}


def labels_of_loaded(earlier: StoredStudy) -> frozenset[str]:
    """Return the labels of external servers that are known to have been loaded."""
    return frozenset(earlier.facts.get(LOADED, ()))


def changed_servers(earlier: StoredStudy, study: Study) -> frozenset[ServerName]:
    """Return the loaded external servers whose data the study's loads have changed since, or may have changed."""
    may_have = _running_servers(study, [_may_have_written(one) for one in earlier.contexts])
    return loaded_before(earlier, study) & may_have


def _may_have_written(one: StoredContext) -> bool:
    if one.preparation is None:
        # The run may have ended during the first load.
        return True
    return one.preparation.writes or any(trial.has_written for block in one.blocks for trial in block.trials.values())


def _running_servers(study: Study, chosen: Sequence[bool]) -> frozenset[RunningServer]:
    """Return the external servers of the chosen contexts, from the study: URIs in results lack users and passwords."""
    return frozenset(
        arm.server
        for context, is_chosen in zip(study.contexts, chosen, strict=True)
        for arm in context.comparison.arms
        if is_chosen and isinstance(arm.server, RunningServer)
    )


def _without_secrets(context: Context) -> Context:
    comparison = context.comparison
    if not any(isinstance(arm.server, RunningServer) for arm in comparison.arms):
        return context_without_secrets(context)
    arms = tuple(
        replace(arm, server=RunningServer(uri=label_of_running(arm.server)))
        if isinstance(arm.server, RunningServer)
        else arm
        for arm in comparison.arms
    )
    return context_without_secrets(replace(context, comparison=replace(comparison, arms=arms)))


def _changes(earlier: StoredStudy, study: Study) -> Iterator[str]:
    if earlier.study.seed != study.seed:
        yield f"seed {earlier.study.seed}, now {study.seed}"
    yield from changes_between([stored.context for stored in earlier.contexts], study.contexts)
