"""Blocks, looks, and when to stop: for one context or for many.

A block starts every arm, warms all of them up and measures them in short windows, in an order that cancels drift. After
each block the verdicts are updated. An arm with a verdict, or with the precision that the design demands, gets no more
blocks, and a context ends when none of its arms needs more. Contexts take turns, those with the fewest blocks first, so
that an interrupted study has some results for each. The engine knows arms only by number and servers only through
hosts, so that all of it can be simulated.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from pgversus.engine.assignments import Assignments
from pgversus.engine.context_state import ContextState
from pgversus.engine.events import BlockMeasured, ContextPrepared, HostJoined, HostLost, TaskFinished
from pgversus.engine.hosts import Hosts
from pgversus.engine.progress import Progress, TimeEstimate
from pgversus.engine.time_left import BudgetWarning, budget_left_s, time_estimate
from pgversus.errors import DatasetError, PgversusError, WorkloadError
from pgversus.records.trials import Block
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer

_MAY_PASS = frozenset({"dataset-changed", "dataset-not-readable", "workload-hangs"})
# Temporary failures of a load or its data on managed servers.
_MAY_PASS_WORDS = re.compile(
    r"server closed the connection unexpectedly|connection to server was lost|perhaps the backend died"
    r"|the database system is |terminating connection (?:because of crash|due to unexpected postmaster exit)"
    r"|connection to server (?:on|at) .* failed|could not (?:receive data from|send data to) server"
    r"|could not fork new process|was ended by signal|exit code -\d"
    r"|its last line is cut short"
    r"|: Permission denied|need at least \d+ open files|could not create thread"
    r"|out of memory|could not resize shared memory segment"
)
# Killed processes, for example for lack of memory: psql, pgbench, or one of the server's. Also an incomplete log, and
# limits and permissions of the host.

Keep = Callable[[ContextState, Block], None]
"""Stores each finished block before it is used."""
KeepPreparation = Callable[[ContextState], None]
"""Stores each context once it is prepared, or once its preparation has permanently failed."""


def run_parts(
    parts: Sequence[Sequence[ContextState]],
    hosts: Hosts,
    *,
    seed: int,
    budget_s: float,
    progress: Progress,
    keep: Keep,
    keep_preparation: KeepPreparation,
) -> StopReason:
    """Run the contexts of each part to their end before those of the next; otherwise like run_contexts.

    Each part gets a share of the remaining budget in proportion to its contexts, so that the last ones are measured as
    well.
    """
    ended_by_budget = False
    states = [state for part in parts for state in part]
    _report_earlier_runs(states, budget_s, progress)
    for number, part in enumerate(parts):
        if _has_ended(part):
            continue
        try:
            hosts.begin_part([state.context for state in part])
            stopped = run_contexts(
                part,
                hosts,
                seed=seed,
                budget_s=_share_s(parts, number, budget_s),
                progress=progress,
                keep=keep,
                keep_preparation=keep_preparation,
                others=len(states) - len(part),
                estimate_of_all=partial(time_estimate, states, budget_s),
            )
        except KeyboardInterrupt:
            others = [state for other in parts if other is not part for state in other]
            if not _are_known(others):
                raise
            return StopReason.INTERRUPTED
        if stopped is StopReason.INTERRUPTED:
            return stopped
        ended_by_budget = ended_by_budget or stopped is StopReason.BUDGET
    return StopReason.BUDGET if ended_by_budget else _final_stop_reason(states)


def _report_earlier_runs(states: Sequence[ContextState], budget_s: float, progress: Progress) -> None:
    left_s = budget_left_s(budget_s, states)
    for state in states:
        if state.blocks:
            progress.resumed(state.context, state.comparison, state.looks(state.interim_results, left_s))


def _share_s(parts: Sequence[Sequence[ContextState]], number: int, budget_s: float) -> float:
    """Return the seconds for a part, including its blocks of earlier runs."""
    # Later parts that ended in an earlier run need no more time: their unused budget goes to the others.
    open_later = [part for part in parts[number + 1 :] if not _has_ended(part)]
    ended = [*parts[:number], *filter(_has_ended, parts[number + 1 :])]
    left_s = budget_left_s(budget_s, [state for part in ended for state in part])
    return left_s * len(parts[number]) / sum(map(len, (parts[number], *open_later)))


def _has_ended(part: Sequence[ContextState]) -> bool:
    return all(state.stopped is not None for state in part)


def run_contexts(
    states: Sequence[ContextState],
    hosts: Hosts,
    *,
    seed: int,
    budget_s: float,
    progress: Progress,
    keep: Keep,
    keep_preparation: KeepPreparation,
    others: int = 0,
    estimate_of_all: Callable[[], TimeEstimate] | None = None,
) -> StopReason:
    """Run blocks until every context has ended, the budget is over, or Ctrl-C; return why no further block was run.

    budget_s: wall-clock seconds for blocks of all contexts, including those of earlier runs. The order of everything
    follows from seeds and stored blocks only, so that a resumed study continues as the interrupted one would have.
    others: number of other contexts in the study. estimate_of_all: time estimate including them, for observers; None
    without other contexts. Raises PgversusError if the only context cannot be prepared, or if no host can continue.
    """
    estimate = estimate_of_all or partial(time_estimate, states, budget_s)
    assignments = Assignments(states, hosts, seed)
    is_only = len(states) + others == 1
    warning = BudgetWarning(states, budget_s, progress)
    is_new = not _are_known(states)
    try:
        while not _has_ended(states):
            progress.time_estimate(estimate)
            if not assignments.begin(budget_left_s(budget_s, states)):
                return StopReason.BUDGET
            match hosts.next_event():
                case ContextPrepared() as event:
                    _take_preparation(event, assignments, keep_preparation, progress, is_only=is_only)
                case BlockMeasured() as event:
                    for state, block in assignments.taken(event):
                        keep(state, block)
                        looks = state.looks(state.take(block), budget_left_s(budget_s, states))
                        progress.time_estimate(estimate)
                        progress.block_finished(state.context, block, looks, state.wall_s)
                case TaskFinished() | HostJoined() | HostLost() as event:
                    if assignments.note(event):
                        warning.check()
    except KeyboardInterrupt:
        if is_new and not (assignments.has_prepared or _has_failures(states)):
            # Nothing is stored, so there is nothing to show.
            raise
        return StopReason.INTERRUPTED
    finally:
        hosts.abandon()
    return _final_stop_reason(states)


def _are_known(states: Sequence[ContextState]) -> bool:
    """Return whether any context is prepared, or is known to be impossible to prepare."""
    return any(state.preparation or state.failure for state in states)


def _has_failures(states: Sequence[ContextState]) -> bool:
    return any(state.failure for state in states)


def _take_preparation(
    event: ContextPrepared, assignments: Assignments, keep: KeepPreparation, progress: Progress, *, is_only: bool
) -> None:
    """Begin a context that is prepared; one that cannot be prepared ends without stopping the others.

    Permanent failures are stored; others are tried again by the next run.
    """
    state, given = assignments.given(event)
    if state.stopped is not None or state.preparation is not given:
        # Another host was faster: this host prepares the context again, with the windows that the other one fitted.
        return
    if isinstance(event.found, PgversusError):
        if is_only:
            raise event.found
        state.fail(event.found.summary)
        progress.say(f"{state.context.label}: {state.failure}")
        if given is None and _fails_for_good(event.found, state):
            keep(state)
        return
    if given is None:
        state.begin(event.found)
        keep(state)
        # Its plans are on disk now, and there may be thousands of contexts.
        state.forget_plans()
    if assignments.make_ready(event):
        progress.begin_blocks(state.context, state.comparison)


def _final_stop_reason(states: Sequence[ContextState]) -> StopReason:
    """Return blocks if a context ended with all its blocks, otherwise precise or decided; failed if all have failed."""
    reasons = {state.stopped for state in states}
    if reasons == {StopReason.FAILED}:
        return StopReason.FAILED
    return next((one for one in (StopReason.BLOCKS, StopReason.PRECISE) if one in reasons), StopReason.DECIDED)


def _fails_for_good(error: PgversusError, state: ContextState) -> bool:
    """Return whether the same load on the same data would always fail again.

    An external server may come back, a changed file may be restored, a larger budget may help, and a killed process
    may survive the next time.
    """
    if any(isinstance(arm.server, RunningServer) for arm in state.comparison.arms):
        return False
    if _MAY_PASS_WORDS.search(error.found):
        return False
    return isinstance(error, DatasetError | WorkloadError) and error.slug not in _MAY_PASS
