"""After a struck run: the invariants, then the same command again, which must complete the study."""

from collections.abc import Callable, Iterator

from pgversus.errors import ExitCode
from tests.faults.fault import Outcome
from tests.faults.invariants import (
    StoredBlocks,
    dishonest,
    failed_trials,
    half_kept,
    half_measured,
    left_behind,
    lost,
    missing_blocks,
    not_ours,
    stored_blocks,
)
from tests.faults.watched import Watched
from tests.live.conftest import Ended

SIGKILL, FAILED_TRIALS = -9, int(ExitCode.FAILED_TRIALS)


def outcome_of(
    run: Watched,
    first: Ended,
    *,
    repair: Callable[[], None] = lambda: None,
    may_fail_trials: bool = True,
) -> Outcome:
    """Return the outcome of a run that was struck and has ended.

    repair: undoes the fault before the same command is run again. may_fail_trials: whether the fault may fail a trial
    of an arm, unlike faults of the host.
    """
    violations = list(_after_the_first(run, first))
    kept = stored_blocks(run.results)
    repair()
    again = run.line.run(*run.arguments)
    violations += _after_the_second(run, kept, again)
    if not may_fail_trials:
        violations += [f"a trial has failed: {words}" for words in failed_trials(run.results)]
    return Outcome(
        moment=run.moment,
        end=_end(first, again, sum(table == "block" for table, _, _ in kept)),
        violations=tuple(violations),
    )


def _after_the_first(run: Watched, ended: Ended) -> Iterator[str]:
    if ended.code != SIGKILL:
        yield from not_ours(ended)
    for strike in run.strikes:
        yield from left_behind(run.line, strike.processes, strike.sockets)
        yield from lost(strike.blocks, stored_blocks(run.results))
    yield from half_kept(run.line)
    yield from half_measured(run.results)
    yield from dishonest(run.results)


def _after_the_second(run: Watched, kept: StoredBlocks, ended: Ended) -> Iterator[str]:
    """Yield violations unless the same command completes the study, keeping every earlier block."""
    expected = FAILED_TRIALS if failed_trials(run.results) else 0
    if ended.code != expected:
        yield f"the same command again ended with {ended.code}, not {expected}: {(ended.stdout + ended.stderr)[-900:]}"
    after = stored_blocks(run.results)
    if missing := missing_blocks(run.results):
        yield f"the same command again ended {missing} blocks too early"
    yield from lost(kept, after)
    yield from left_behind(run.line, [], [])
    yield from half_measured(run.results)
    yield from dishonest(run.results)


def _end(first: Ended, again: Ended, blocks: int) -> str:
    return f"{how_it_ended(first)}; {blocks} blocks finished; again: exit {again.code}"


def how_it_ended(ended: Ended) -> str:
    """Return the end of a run in a few words."""
    if ended.code == SIGKILL:
        return "killed"
    if "error[" in ended.stderr:
        return f"{ended.stderr.split('error[')[1].split(']')[0]}, exit {ended.code}"
    return f"failed trial counted, exit {ended.code}" if ended.code == FAILED_TRIALS else f"unharmed, exit {ended.code}"
