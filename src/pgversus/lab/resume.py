"""Whether a run may resume earlier results: only those of the same question."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any

from pgversus.errors import StoreError
from pgversus.postgres.labels import label_of_running
from pgversus.store.codec import CONTEXT, ContextFact, context_without_secrets
from pgversus.store.folder import check_folder, holds_results, locked_folder, move_away
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

        Returns the new name, or None if there were none. StoreError if renaming fails, or another run came first.
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
        # The parent directory, in which it is renamed.
        check_folder(folder.absolute().parent, may_hold_results=True)
    with ExitStack() as stack:
        stack.enter_context(locked_folder(folder))
        # Check again: do not overwrite what was written in the meantime.
        check_folder(folder, may_hold_results=may_hold_results)
        yield ResultsFolder(folder, earlier, stack)


# Allowed changes: more time never invalidates a result (docs/statistics.md), and a setup file is identified by its
# hash, not its path. Rewrites do not take part in any arm.
_MAY_CHANGE = re.compile(r"budget_s|dataset\.(setup_files|prepare)\.\d+\.path|workload\.rewrite(\..*)?")
# Implied changes: each of these changes only together with a related value or its list, which is reported.
_IMPLIED = re.compile(
    r"(.*\.)?length|window_kind|window_is_given|slice_s|rounds_are_given|rounds_per_session|warm_up_is_given"
)
# The names of study files and options, if they differ from those in the code.
_WORDS = {
    "window_s": "window in s",
    "window_transactions": "window in tx",
    "warm_up_s": "warm_up in s",
    "rounds": "windows",
    "fixed_blocks": "blocks",
    "dataset.pgbench_scale": "dataset.scale",
    "dataset.setup_files": "dataset.setup",
    "workload.query_mode": "workload.protocol",
}
_WORDED = re.compile("|".join(rf"^{re.escape(name)}(?![a-z_])" for name in _WORDS))
_MOST_LETTERS = 60

_Change = tuple[str, str, str]
"""Name, earlier value, current value."""


def changes_between(earlier: Sequence[Context], now: Sequence[Context]) -> Iterator[str]:
    """Yield each change once, with both values, and with its contexts and arms unless it holds for all."""
    before, after = {one.label: one for one in earlier}, {one.label: one for one in now}
    if len(before) != len(after):
        yield f"{len(before)} contexts, now {len(after)}"
    if gone := [label for label in before if label not in after]:
        yield f"removed: {_listed(gone)}"
    if new := [label for label in after if label not in before]:
        yield f"added: {_listed(new)}"
    both = [label for label in before if label in after]
    if both != [label for label in after if label in before]:
        yield "contexts in a different order"
    found: dict[_Change, list[str]] = {}
    for label in both:
        for change in _changes_of_context(before[label], after[label]):
            found.setdefault(change, []).append(label)
    for (what, was, is_now), labels in found.items():
        yield f"{what}: {was}, now {is_now}{_where(labels, len(both))}"


def _listed(labels: list[str]) -> str:
    shown = ", ".join(label or "the only context" for label in labels[:3])
    return f"{shown} and {len(labels) - 3} more" if len(labels) > 3 else shown  # noqa: PLR2004 - one line


def _where(labels: list[str], contexts: int) -> str:
    if len(labels) == contexts:
        return ""
    return f" ({labels[0]})" if len(labels) == 1 else f" (in {len(labels)} contexts of {contexts})"


def _changes_of_context(earlier: Context, now: Context) -> Iterator[_Change]:
    if replace(earlier, number=now.number) == now:
        return
    before, after = _fact(earlier), _fact(now)
    arms_before, arms_after = before.pop("arms"), after.pop("arms")
    design_before, design_after = before.pop("design"), after.pop("design")
    yield from _differences(before | design_before, after | design_after)
    labels, labels_now = [arm["label"] for arm in arms_before], [arm["label"] for arm in arms_after]
    if labels != labels_now:
        yield "arms", ", ".join(labels), ", ".join(labels_now)
        return
    of_arms = [list(_differences(*pair)) for pair in zip(arms_before, arms_after, strict=True)]
    for change in dict.fromkeys(chain.from_iterable(of_arms)):
        have = [label for label, changes in zip(labels, of_arms, strict=True) if change in changes]
        what, was, is_now = change
        yield (what if len(have) == len(labels) else f"{what} of {', '.join(have)}"), was, is_now


def _fact(context: Context) -> dict[str, Any]:
    fact = CONTEXT.dump_python(ContextFact(levels=(), comparison=context.comparison), mode="json")
    comparison: dict[str, Any] = fact["comparison"]
    return comparison


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[_Change]:
    had, has = dict(_leaves(before, "")), dict(_leaves(now, ""))
    differ = [key for key in {**had, **has} if had.get(key) != has.get(key) and not _MAY_CHANGE.fullmatch(key)]
    # If only implied changes remain, report those.
    for key in [key for key in differ if not _IMPLIED.fullmatch(key)] or differ:
        yield _WORDED.sub(lambda name: _WORDS[name[0]], key), _shown(had.get(key)), _shown(has.get(key))


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield path and value of every scalar; items with a name are identified by it, not by position."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _leaves(inner, f"{path}.{key}" if path else str(key))
        case [{"name": _, "value": _}, *_]:
            for one in value:
                yield f"{path}.{one['name']}", one["value"]
        case [[str(), str()], *_]:
            for name, inner in value:
                yield f"{path}.{name}", inner
        case list():
            yield f"{path}.length", len(value)
            for number, inner in enumerate(value, start=1):
                yield from _leaves(inner, f"{path}.{number}")
        case _:
            yield path, value


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return f"{text[:_MOST_LETTERS]}..." if len(text) > _MOST_LETTERS else text


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
            "the earlier results are those of a different study",
            slug="store-other-study",
            where=str(folder),
            found="; ".join(changes[:_MOST_SHOWN]) + more,
            expected="the study as it was when its first block was run",
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
    """Return the loaded external servers whose data the study's loads have changed since, or may have."""
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
