"""One start of the servers, and the blocks measured on it, for one context or for many that share the start.

The order of windows inside a block cancels drift: two arms run as ABBA or BAAB, chosen at random each time; more
arms run in a random order followed by its mirror. Every arm then has the same mean position in each pair of rounds, so
that a linear drift adds nothing to any ratio.
"""

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

from pgversus.engine.events import BlockMeasured
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import BlockOrder, Clock, Testbed, TrialFailedError, TrialRunner
from pgversus.records.trials import (
    NOTHING_FINISHED,
    Block,
    DiscardedWindow,
    FailedTrial,
    Phase,
    Trial,
    Window,
    trial_of,
)
from pgversus.stats.block_model import ratio_error
from pgversus.study.comparison import BASELINE
from pgversus.study.design import WindowKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Rounds that are measured without reconnecting."""

    first_round: int
    """From 1 in each block."""
    rounds: tuple[tuple[int, ...], ...]
    seed: int
    """pgbench's random seed, the same for every arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSchedule:
    """The contents of one block, in order."""

    start_order: tuple[int, ...]
    """The arms in the order of their starts."""
    rounds: tuple[tuple[int, ...], ...]
    """One window of every arm in each round."""
    seeds: tuple[int, ...]
    """pgbench's random seed of each round: the arms of one round draw the same keys."""

    def sessions(self, rounds: int) -> Iterator[Session]:
        """Yield all rounds in nearly equal groups of about `rounds`, during which sessions stay connected.

        A group contains whole quads, unless `rounds` is 1.
        """
        number = max(1, round(len(self.rounds) / rounds))
        size = 1 if rounds == 1 else 2 * math.ceil(len(self.rounds) / number / 2)
        for first in range(0, len(self.rounds), size):
            yield Session(first_round=first + 1, rounds=self.rounds[first : first + size], seed=self.seeds[first])


def block_schedule(rng: np.random.Generator, arms: Sequence[int], rounds: int) -> BlockSchedule:
    """Return a random order for one block of `rounds` windows of each arm.

    arms: indexes of the arms that take part. rounds: at least 1; if odd, the last round has no mirror.
    """
    start_order = _shuffled(rng, arms)
    order: list[tuple[int, ...]] = []
    while len(order) < rounds:
        forward = _shuffled(rng, arms)
        order += [forward, forward[::-1]]
    seeds = tuple(int(seed) for seed in rng.integers(1, 2**31 - 1, size=rounds))
    return BlockSchedule(start_order=start_order, rounds=tuple(order[:rounds]), seeds=seeds)


def _shuffled(rng: np.random.Generator, arms: Sequence[int]) -> tuple[int, ...]:
    return tuple(arms[int(i)] for i in rng.permutation(len(arms)))


def run_start(
    orders: Sequence[BlockOrder], testbed: Testbed, clock: Clock, progress: Progress, left_s: float, host: str
) -> Generator[BlockMeasured, None, None]:
    """Start every arm and yield a block of each context, as soon as it is measured.

    If a load fails or writes, the remaining contexts get no block, since it may have killed a server or changed their
    data. A context also gets no block if its block no longer fits into the budget, which is checked before each block
    except the first. left_s: seconds left of the budget at the beginning.

    The wall time of a block is that of its own load plus an equal part of the time that the servers took to start. The
    last block is yielded after the servers have stopped. Its wall time includes the rest: the stop, and the parts of
    contexts that got no block. The wall times of the blocks therefore add up to the time from start to stop.
    """
    began = clock()
    paid_s = 0.0
    start = _SharedStart(testbed.trial_runner(orders[0].context), clock)
    waiting = list(orders)
    try:
        while waiting:
            order = waiting.pop(0)
            attempt = _Attempt(order, testbed, start, progress)
            load_began, starts_s = clock(), start.seconds
            attempt.run()
            load_s = clock() - load_began - (start.seconds - starts_s)
            block = attempt.block()
            remaining_s = left_s - (clock() - began)
            waiting = [one for one in waiting if one.fits_into(remaining_s)] if block.is_harmless else []
            if waiting:
                wall_s = load_s + start.seconds / len(orders)
            else:
                start.stop_all()
                wall_s = clock() - began - paid_s
            paid_s += wall_s
            yield BlockMeasured(host=host, context=order.context.number, block=block._replace(wall_s=wall_s))
    finally:
        start.stop_all()


class _SharedStart:
    """The servers of one start: each is started when the first context needs it, and stays up."""

    def __init__(self, trial_runner: TrialRunner, clock: Clock) -> None:
        self._trial_runner = trial_runner
        self._clock = clock
        self._outcomes: dict[int, TrialFailedError | None] = {}
        self._stopped = False
        self.seconds = 0.0
        """Time spent on starting so far."""

    def start(self, arm: int) -> None:
        """Start an arm unless it is running; raise TrialFailedError on failure, again for each further context."""
        if arm not in self._outcomes:
            began = self._clock()
            try:
                self._trial_runner.start(arm)
                self._outcomes[arm] = None
            except TrialFailedError as error:
                self._outcomes[arm] = error
            self.seconds += self._clock() - began
        outcome = self._outcomes[arm]
        if outcome is not None:
            raise outcome

    def stop_all(self) -> None:
        """Stop the servers, once."""
        if not self._stopped:
            self._trial_runner.stop_all()
            self._stopped = True


_MOST_ATTEMPTS = 4
# Attempts at short windows without a transaction, which are repeated regardless of the limit on repeated rounds.


class _Attempt:
    """A block of a context while it runs: its measurements, and the arms that have failed in it."""

    def __init__(self, order: BlockOrder, testbed: Testbed, start: _SharedStart, progress: Progress) -> None:
        design = order.design
        # The context number comes last: numpy pads with zeros, so it does not change the seeds of a single comparison.
        rng = np.random.default_rng([design.seed, order.number, order.context.number - 1])
        self._order = order
        self._schedule = block_schedule(rng, order.arms, order.rounds)
        self._testbed = testbed
        self._trial_runner = testbed.trial_runner(order.context)
        self._shared_start = start
        self._progress = progress
        self._design = design
        self._windows: dict[int, list[Window]] = {arm: [] for arm in self._schedule.start_order}
        self._counters: dict[int, Mapping[str, float]] = {}
        self._gauges: dict[int, Mapping[str, float]] = {}
        self._failures: list[FailedTrial] = []
        self._repeated_rounds = 0
        self._discarded: list[DiscardedWindow] = []

    @property
    def _load_has_failed(self) -> bool:
        """Whether a server may be in a bad state."""
        return any(failure.phase is not Phase.START for failure in self._failures)

    def run(self) -> None:
        """Start all arms, warm all up, then measure in sessions; an arm that fails takes no further part."""
        order = self._schedule.start_order
        for arm in self._active_arms(order):
            self._announce(arm, Phase.START)
            with self._failing(arm, Phase.START):
                self._shared_start.start(arm)
        try:
            for arm in self._active_arms(order):
                self._announce(arm, Phase.WARM_UP)
                with self._failing(arm, Phase.WARM_UP):
                    self._gauges[arm] = self._trial_runner.warm_up(arm, self._schedule.seeds[0])
            for session in self._schedule.sessions(self._design.rounds_per_session):
                for arm, windows in self._undisturbed(session).items():
                    self._windows[arm] += windows
        finally:
            self._trial_runner.abandon()
        for arm in self._active_arms(order):
            transactions = sum(window.transactions for window in self._windows[arm])
            with self._failing(arm, Phase.MEASURE):
                self._counters[arm] = self._trial_runner.counted(arm, transactions)

    def block(self) -> Block:
        """Return the block without its wall time.

        Arms that failed, or finished no transaction, have a message instead of a trial. If the baseline or every
        contender failed, the block has no trials: there is nothing to compare, and the rest was not measured.
        """
        trials: dict[int, Trial] = {}
        failures = list(self._failures)
        for arm, windows in self._windows.items():
            if self._has_failed(arm) or self._is_pointless():
                continue
            if sum(window.transactions for window in windows):
                trials[arm] = trial_of(arm, windows, self._gauges.get(arm), self._counters.get(arm))
            else:
                failures.append(FailedTrial(arm=arm, phase=Phase.MEASURE, message=NOTHING_FINISHED))
        if BASELINE in trials:
            for arm in trials.keys() - {BASELINE}:
                trials[arm] = trials[arm]._replace(ratio_error=ratio_error(trials[BASELINE], trials[arm]))
        return Block(
            number=self._order.number,
            trials=trials,
            failures=tuple(failures),
            repeated_rounds=self._repeated_rounds,
            discarded=tuple(self._discarded),
        )

    def _undisturbed(self, session: Session) -> Mapping[int, Sequence[Window]]:
        """Return the windows of a session by arm, without those of arms that failed.

        A session is repeated as long as any of its windows was disturbed, with all arms, so that none is favored. A
        block repeats sessions until it has repeated half as many rounds as designed, an operation only once. After that
        results count as they are, since a study must end even on a host that is always disturbed. A session of short
        windows is repeated whole. If repetitions do not help, they are suspended for a while.

        Short windows without a transaction, such as after the clock was set, are also repeated: they have no result.
        """
        windows: dict[int, Sequence[Window]] = {}
        for attempt in count(1):
            self._measure(session, attempt)
            again: dict[int, Sequence[Window]] = {}
            for arm in self._active_arms(session.rounds[0]):
                with self._failing(arm, Phase.MEASURE):
                    again[arm] = self._trial_runner.collect(arm)
            if windows:
                self._discard(session, {arm: windows[arm] for arm in again}, attempt - 1)
            # An arm that fails in a repetition has failed; arms without new windows keep their earlier ones.
            windows |= again
            is_disturbed = any(window.was_disturbed for one in windows.values() for window in one)
            if not is_disturbed or not self._may_repeat(windows, attempt):
                break
            self._repeated_rounds += len(session.rounds)
        return windows

    def _discard(self, session: Session, windows: Mapping[int, Sequence[Window]], attempt: int) -> None:
        self._discarded += [
            DiscardedWindow(
                arm=arm,
                round=number,
                attempt=attempt,
                transactions=window.transactions,
                seconds=window.seconds,
                was_disturbed=window.was_disturbed,
            )
            for arm, one in windows.items()
            for number, window in enumerate(one, session.first_round)
        ]

    def _may_repeat(self, windows: Mapping[int, Sequence[Window]], attempts: int) -> bool:
        if self._load_has_failed:
            return False
        if self._order.may_repeat and self._repeated_rounds < self._design.most_repeats:
            return True
        is_short = self._design.window_kind is not WindowKind.RUN
        lacks_result = any(not sum(window.transactions for window in one) for one in windows.values())
        return is_short and lacks_result and attempts < _MOST_ATTEMPTS

    def _measure(self, session: Session, attempt: int) -> None:
        """Measure the windows of a session."""
        name = partial(self._name, number=session.first_round, attempt=attempt)
        is_long = self._design.window_kind is WindowKind.RUN
        first = (next(self._active_arms(session.rounds[0]), None), 1)
        for number, order in enumerate(session.rounds, session.first_round):
            for arm in self._active_arms(order):
                # Announce only the first of short windows: the display is not updated between them.
                if is_long or (arm, number) == first:
                    self._announce(arm, Phase.MEASURE, number)
                with self._failing(arm, Phase.MEASURE):
                    self._trial_runner.measure(arm, session.seed, name(arm))

    def _name(self, arm: int, number: int, attempt: int) -> str:
        """Return the name of a session: `context-1-block-002-arm-0-round-03`, with `-repeated-1` for a repetition."""
        repeated = f"-repeated-{attempt - 1}" if attempt > 1 else ""
        block = f"context-{self._order.context.number}-block-{self._order.number:03d}"
        return f"{block}-arm-{arm}-round-{number:02d}{repeated}"

    def _announce(self, arm: int, phase: Phase, number: int = 0) -> None:
        self._progress.step(self._order.context, self._order.number, arm, phase, number)

    def _active_arms(self, arms: Iterable[int]) -> Iterator[int]:
        """Yield the arms that take part when their turn comes."""
        return (arm for arm in arms if not self._has_failed(arm) and not self._is_pointless())

    @contextmanager
    def _failing(self, arm: int, phase: Phase) -> Iterator[None]:
        """Record a failure in the body as a failed trial of this arm, unless the testbed ends the run because of it."""
        try:
            with self._testbed.failures(self._order.context, arm):
                yield
        except TrialFailedError as error:
            self._failures.append(FailedTrial(arm=arm, phase=phase, message=str(error)))

    def _has_failed(self, arm: int) -> bool:
        return any(failure.arm == arm for failure in self._failures)

    def _is_pointless(self) -> bool:
        """Return whether the rest of the block is useless: the baseline has failed, or every contender has."""
        if not self._failures:
            # Fast path, since this runs for every window.
            return False
        alive = [arm for arm in self._windows if not self._has_failed(arm)]
        return BASELINE not in alive or alive == [BASELINE]
