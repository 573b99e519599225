"""Whether a run may go on with earlier results: the same question."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pgversus.engine.context_state import Course
from pgversus.errors import StoreError
from pgversus.lab.changes import changes_between
from pgversus.postgres.session import label_of_running
from pgversus.store.codec import context_without_secrets
from pgversus.store.reading import StoredContext, StoredStudy
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.study import Context, Study

LOADED = "loaded"
"""The fact with the labels of running servers on which the study's data have been loaded."""
_MOST_SHOWN = 8


def without_secrets(study: Study) -> Study:
    """The same study as it may be shown and stored."""
    return replace(study, contexts=tuple(_without_secrets(context) for context in study.contexts))


def check_same_study(earlier: StoredStudy, study: Study, folder: Path) -> None:
    """StoreError that says what has changed when the results are those of another question."""
    changes = list(_changes(earlier, without_secrets(study)))
    if changes:
        more = f"; and {len(changes) - _MOST_SHOWN} more" if len(changes) > _MOST_SHOWN else ""
        raise StoreError(
            "these are the results of another question, and the two are not mixed",
            slug="store-other-study",
            where=str(folder),
            found="; ".join(changes[:_MOST_SHOWN]) + more,
            expected="the study as it was when its first block was run",
            to_do="put it back to go on, or begin afresh with --new",
        )


def is_same_question(earlier: StoredStudy, study: Study) -> bool:
    """Whether these results are those of this study."""
    return not list(_changes(earlier, without_secrets(study)))


def course_so_far(context: Context, stored: StoredContext, verdicts: int, budget_s: float) -> Course:
    """How far a context has come, with the budget of the last run: that may change, and nothing else of a design."""
    preparation = stored.preparation
    if preparation is not None and preparation.design.budget_s != budget_s:
        preparation = replace(preparation, design=replace(preparation.design, budget_s=budget_s))
    course = Course(context, verdicts)
    course.go_on_from(preparation, stored.failure, stored.blocks)
    return course


def loaded_before(earlier: StoredStudy, study: Study) -> frozenset[ServerName]:
    """Running servers on which an earlier run has loaded the study's data."""
    prepared = _running_servers(study, [one.preparation is not None for one in earlier.contexts])
    # A run that ended between loading and the end of the first preparation.
    labels = labels_of_loaded(earlier)
    everywhere = _running_servers(study, [True] * len(study.contexts))
    return prepared | {server for server in everywhere if label_of_running(server) in labels}


def labels_of_loaded(earlier: StoredStudy) -> frozenset[str]:
    """Labels of the running servers that are known to have been loaded."""
    return frozenset(earlier.facts.get(LOADED, ()))


def worn_before(earlier: StoredStudy, study: Study) -> frozenset[ServerName]:
    """Those of them whose data its loads have changed since, or may have."""
    may_have = _running_servers(study, [_may_have_written(one) for one in earlier.contexts])
    return loaded_before(earlier, study) & may_have


def _may_have_written(one: StoredContext) -> bool:
    if one.preparation is None:
        # Nobody knows whether the run ended while this load was tried for the first time.
        return True
    return one.preparation.writes or any(trial.has_written for block in one.blocks for trial in block.trials.values())


def _running_servers(study: Study, chosen: Sequence[bool]) -> frozenset[RunningServer]:
    """Those of the chosen contexts. The study's own: in results URIs are without users and passwords."""
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
