"""Blocks, looks, and when to stop: for one context or for many.

A block starts every arm, warms all of them up and measures them in short windows, in an order that cancels drift. After
each block the verdicts are updated; an arm with a verdict, or with the precision of the design, gets no more blocks,
and neither does a context whose arms need none. Contexts take turns, those with the fewest blocks first, so that an
interrupted study has some results for each. The engine knows arms by number and drives a Testbed with a Clock, so that
all of it can be simulated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from statistics import fmean

import numpy as np

from pgversus.engine.block_runner import run_start
from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress, TimeEstimate
from pgversus.engine.testbed import Clock, Testbed
from pgversus.errors import DatasetError, PgversusError, ServerError, StudyError, WorkloadError
from pgversus.records.trials import Block
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer
from pgversus.text.units import duration


def time_estimate(states: Sequence[ContextState], budget_s: float) -> TimeEstimate:
    """Estimate the time of all contexts of a study. budget_s: for the blocks of all of them."""
    spent_s = sum(state.wall_s for state in states)
    waiting = [state for state in states if state.stopped is None]
    left_s = max(0.0, budget_s - spent_s)
    is_fixed = any(state.is_fixed for state in states)
    needed_s = _fixed_s(states, waiting) if is_fixed else _needed_s(waiting)
    is_at_most = not is_fixed and (needed_s is None or needed_s > left_s)
    return TimeEstimate(
        contexts=len(states),
        ended=len(states) - len(waiting),
        spent_s=spent_s,
        budget_s=None if is_fixed else budget_s,
        seconds_left=left_s if is_at_most else needed_s,
        is_at_most=is_at_most,
    )


def _needed_s(waiting: Sequence[ContextState]) -> float | None:
    """Return the time that all of them still need; None if unknown for any."""
    total = 0.0
    for state in waiting:
        seconds = state.seconds_left
        if seconds is None:
            return None
        total += seconds
    return total


def _fixed_s(states: Sequence[ContextState], waiting: Sequence[ContextState]) -> float | None:
    """Return the time for given numbers of blocks; a context without blocks is assumed to be as slow as the others.

    None before the first block of all.
    """
    known = [state.forecast.seconds_per_block for state in states if state.blocks]
    if not known:
        return None
    usual_s = fmean(known)
    total = 0.0
    for state in waiting:
        seconds = state.seconds_left
        total += state.rule.last_look * usual_s if seconds is None else seconds
    return total


_PREPARED_TOGETHER = 8
# Contexts on the same servers. More would save little, and delay the first block.
# Separate from the random streams of the blocks, [seed, number of the block, number of the context - 1].
_TURNS, _TOGETHER = 1, 2
_MAY_PASS = frozenset({"dataset-changed", "workload-hangs"})
# Temporary failures of a load or its data on managed servers.
_MAY_PASS_WORDS = re.compile(
    r"server closed the connection unexpectedly|connection to server was lost|perhaps the backend died"
    r"|the database system is |terminating connection (?:because of crash|due to unexpected postmaster exit)"
    r"|connection to server (?:on|at) .* failed|could not (?:receive data from|send data to) server"
    r"|could not fork new process|was ended by signal|exit code -\d"
    r"|its last line is cut short"
)
# A process was killed, for example for lack of memory: psql, pgbench, or one of the server's; or a log was not written.

Keep = Callable[[ContextState, Block], None]
"""Stores each finished block before anything else is done with it."""
KeepPreparation = Callable[[ContextState], None]
"""Stores each context once it is prepared, or permanently fails to be."""


def run_parts(
    parts: Sequence[Sequence[ContextState]],
    testbed: Testbed,
    *,
    begin_part: Callable[[Sequence[ContextState]], None],
    seed: int,
    budget_s: float,
    clock: Clock,
    progress: Progress,
    keep: Keep,
    keep_preparation: KeepPreparation,
) -> StopReason:
    """Run the contexts of each part to their end before those of the next; otherwise like run_contexts.

    Each part gets a share of the remaining budget in proportion to its contexts, so that the last ones are measured as
    well. begin_part: frees disk space for the data of a part that has open contexts.
    """
    ended_by_budget = False
    states = [state for part in parts for state in part]
    _report_earlier_runs(states, budget_s, progress)
    for number, part in enumerate(parts):
        if _has_ended(part):
            continue
        try:
            begin_part(part)
            stopped = run_contexts(
                part,
                testbed,
                seed=seed,
                budget_s=_share_s(parts, number, budget_s),
                clock=clock,
                progress=progress,
                keep=keep,
                keep_preparation=keep_preparation,
                others=len(states) - len(part),
                estimate_of_all=partial(time_estimate, states, budget_s),
            )
        except KeyboardInterrupt:
            others = [state for other in parts if other is not part for state in other]
            if not any(state.preparation or state.failure for state in others):
                raise
            return StopReason.INTERRUPTED
        if stopped is StopReason.INTERRUPTED:
            return stopped
        ended_by_budget = ended_by_budget or stopped is StopReason.BUDGET
    return StopReason.BUDGET if ended_by_budget else _final_stop_reason(states)


def _report_earlier_runs(states: Sequence[ContextState], budget_s: float, progress: Progress) -> None:
    left_s = _left_s(budget_s, states)
    for state in states:
        if state.blocks:
            progress.resumed(state.context, state.comparison, state.looks(state.interim_results, left_s))


def _share_s(parts: Sequence[Sequence[ContextState]], number: int, budget_s: float) -> float:
    """Return the seconds for a part, including its blocks of earlier runs."""
    # Later parts that ended in an earlier run need nothing more: what they left belongs to the others.
    open_later = [part for part in parts[number + 1 :] if not _has_ended(part)]
    ended = [*parts[:number], *filter(_has_ended, parts[number + 1 :])]
    left_s = _left_s(budget_s, [state for part in ended for state in part])
    return left_s * len(parts[number]) / sum(map(len, (parts[number], *open_later)))


def _has_ended(part: Sequence[ContextState]) -> bool:
    return all(state.stopped is not None for state in part)


def run_contexts(
    states: Sequence[ContextState],
    testbed: Testbed,
    *,
    seed: int,
    budget_s: float,
    clock: Clock,
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
    if there are none. Raises PgversusError if the only context cannot be prepared.
    """
    estimate = estimate_of_all or partial(time_estimate, states, budget_s)
    ready: set[int] = set()
    is_hopeless = False
    is_new = not any(state.preparation for state in states)
    try:
        while open_states := [state for state in states if state.stopped is None]:
            progress.time_estimate(estimate)
            left_s = _left_s(budget_s, states)
            affordable = [state for state in open_states if state.fits_into(left_s)]
            if not affordable:
                return StopReason.BUDGET
            state = _next(affordable, seed)
            if state.context.number not in ready:
                is_only = len(states) + others == 1
                unready = (other for other in affordable if other.context.number not in ready and other is not state)
                with testbed.preparing():
                    for one in (state, *islice(_sharing(state, unready, testbed), _PREPARED_TOGETHER - 1)):
                        if _prepare(one, testbed, keep_preparation, progress, is_only=is_only):
                            ready.add(one.context.number)
                continue
            partners = [other for other in affordable if other.context.number in ready and other is not state]
            together = _shuffled([state, *_sharing(state, partners, testbed)], seed, state.next_number, _TOGETHER)
            with closing(run_start(together, testbed, clock, progress, left_s)) as finished:
                for measured, block in finished:
                    keep(measured, block)
                    looks = measured.looks(measured.take(block), _left_s(budget_s, states))
                    progress.time_estimate(estimate)
                    progress.block_finished(measured.context, block, looks, measured.wall_s)
            if not is_hopeless and (words := _hopeless(states, budget_s)):
                is_hopeless = True
                progress.say(words)
    except KeyboardInterrupt:
        if is_new and not ready and not any(state.failure for state in states):
            # Nothing is stored, so there is nothing to show.
            raise
        return StopReason.INTERRUPTED
    return _final_stop_reason(states)


def _hopeless(states: Sequence[ContextState], budget_s: float) -> str:
    """Return that the budget will not suffice, as soon as every open context has enough blocks to tell; else empty."""
    waiting, left_s = [state for state in states if state.stopped is None], _left_s(budget_s, states)
    if any(state.is_fixed or state.fewest_ratios < _TELLING for state in waiting):
        return ""
    if not any(state.fits_into(left_s) for state in waiting):
        # It ends anyway, or has ended.
        return ""
    needed_s = _needed_s(waiting)
    if any(state.forecast.lacks_transactions for state in waiting):
        return (
            "blocks have too few transactions for an interval of the judged percentile: use more clients or longer "
            "windows"
        )
    if needed_s is None:
        most = max(state.rule.last_look for state in waiting)
        return f"at the current noise, {most} blocks, the limit of a context, are not enough for every open verdict"
    if needed_s > _CLEARLY_MORE * left_s:
        needed = f"about {duration(needed_s)} more needed, {duration(left_s)} left"
        return f"at the current noise, the budget is too short to finish everything that is open: {needed}"
    return ""


_TELLING = 6
# Ratios of a contender from which its spread, and so its remaining time, is known well enough.
_CLEARLY_MORE = 1.5


def _final_stop_reason(states: Sequence[ContextState]) -> StopReason:
    """Return blocks if a context ended with all its blocks, otherwise precise or decided; failed if all have failed."""
    reasons = {state.stopped for state in states}
    if reasons == {StopReason.FAILED}:
        return StopReason.FAILED
    return next((one for one in (StopReason.BLOCKS, StopReason.PRECISE) if one in reasons), StopReason.DECIDED)


def _left_s(budget_s: float, states: Sequence[ContextState]) -> float:
    return budget_s - sum(state.wall_s for state in states)


def _next(states: Sequence[ContextState], seed: int) -> ContextState:
    """Return a random one of those with the fewest blocks."""
    fewest = min(state.next_number for state in states)
    return _shuffled([state for state in states if state.next_number == fewest], seed, fewest, _TURNS)[0]


def _shuffled(states: Sequence[ContextState], seed: int, number: int, stream: int) -> list[ContextState]:
    """Return a random order, in which the relative order of two contexts does not depend on the others."""
    highest = max(state.context.number for state in states)
    # Draw a place for every number up to the highest: none moves when others have ended, or had their turn.
    places = np.random.default_rng([seed, number, 0, stream]).random(highest + 1)
    return sorted(states, key=lambda state: float(places[state.context.number]))


def _prepare(
    state: ContextState, testbed: Testbed, keep: KeepPreparation, progress: Progress, *, is_only: bool
) -> bool:
    """Return whether it is ready; a context that cannot be prepared ends without stopping the others.

    Permanent failures are stored; others are tried again by the next run.
    """
    known = state.preparation
    try:
        state.begin(testbed.prepare(state.context, known))
    except (DatasetError, ServerError, StudyError, WorkloadError) as error:
        if is_only:
            raise
        state.fail(error.summary)
        progress.say(f"{state.context.label}: {state.failure}")
        if known is None and _fails_for_good(error, state):
            keep(state)
        return False
    if known is None:
        keep(state)
        # Its plans are on disk now, and there may be thousands of contexts.
        state.forget_plans()
    return True


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


def _sharing(state: ContextState, others: Iterable[ContextState], testbed: Testbed) -> Iterator[ContextState]:
    """Yield the others that have as many blocks and can be measured on the same start."""
    for other in others if state.shares_starts else ():
        if (
            other.next_number == state.next_number
            and other.shares_starts
            and testbed.can_share_start(state.context, other.context)
        ):
            yield other
