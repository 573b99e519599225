"""One start of the servers, and the blocks that are measured on it: of one context, or of many that share it.

The order of windows inside a block makes drift cancel: two arms run as ABBA or BAAB, by a coin, again and again; more
arms as a random order and its mirror. Every arm then has the same mean position in each pair of rounds, so that a
linear drift adds nothing to any ratio.
"""

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import Clock, Testbed, TrialFailedError, TrialRunner
from pgversus.records.trials import Block, FailedTrial, Phase, Trial, Window, trial_of
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
    """pgbench's random seed, of every arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSchedule:
    """What runs in one block, in order."""

    start_order: tuple[int, ...]
    """The arms in the order of their starts."""
    rounds: tuple[tuple[int, ...], ...]
    """One window of every arm in each round."""
    seeds: tuple[int, ...]
    """pgbench's random seed of each round: the arms of one round draw the same keys."""

    def sessions(self, rounds: int) -> Iterator[Session]:
        """Yield all rounds in groups of about `rounds`, about equal, during which sessions stay connected.

        A group holds whole quads, unless `rounds` is 1.
        """
        number = max(1, round(len(self.rounds) / rounds))
        size = 1 if rounds == 1 else 2 * math.ceil(len(self.rounds) / number / 2)
        for first in range(0, len(self.rounds), size):
            yield Session(first_round=first + 1, rounds=self.rounds[first : first + size], seed=self.seeds[first])


def block_schedule(rng: np.random.Generator, arms: Sequence[int], rounds: int) -> BlockSchedule:
    """A random order for one block of `rounds` windows of each arm.

    arms: the indexes that take part. rounds: at least 1; an odd number leaves the last round without its mirror.
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
    states: Sequence[ContextState], testbed: Testbed, clock: Clock, progress: Progress, left_s: float
) -> Generator[tuple[ContextState, Block], None, None]:
    """A start of every arm and on it a block of each course, given away as soon as it is measured.

    There are fewer blocks when a load fails, since it may have killed, and when less than a course's next block is left
    of the budget, which is asked before each but the first. left_s: of the budget, when this begins.

    A block's wall time is that of its own load and an equal part of the time that the servers took to start. The last
    one is given away when the servers have stopped, and pays what remains: the stop, and the parts of courses that were
    left out. So the blocks of a start have taken as long together as the start has.
    """
    began = clock()
    paid_s = 0.0
    starter = _Starter(testbed.trial_runner(states[0].context), clock)
    waiting = list(states)
    try:
        while waiting:
            state = waiting.pop(0)
            attempt = _Attempt(state, testbed.trial_runner(state.context), starter, progress)
            load_s = _seconds_without_starts(attempt.run, starter, clock)
            waiting = [] if attempt.load_has_failed else _still_fitting(waiting, left_s - (clock() - began))
            if waiting:
                wall_s = load_s + starter.seconds / len(states)
            else:
                starter.stop_all()
                wall_s = clock() - began - paid_s
            paid_s += wall_s
            yield state, attempt.block(wall_s)
    finally:
        starter.stop_all()


def _still_fitting(states: Sequence[ContextState], left_s: float) -> list[ContextState]:
    return [state for state in states if state.fits_into(left_s)]


def _seconds_without_starts(action: Callable[[], None], starter: "_Starter", clock: Clock) -> float:
    began, of_starts_s = clock(), starter.seconds
    action()
    return clock() - began - (starter.seconds - of_starts_s)


class _Starter:
    """The servers of one start: each is started when the first course asks for it, and stays."""

    def __init__(self, trial_runner: TrialRunner, clock: Clock) -> None:
        self._trial_runner = trial_runner
        self._clock = clock
        self._outcomes: dict[int, TrialFailedError | None] = {}
        self._stopped = False
        self.seconds = 0.0
        """That starting has taken so far."""

    def start(self, arm: int) -> None:
        """Start, unless it has been; TrialFailedError, also again for the next course."""
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
        """End of the start, once."""
        if not self._stopped:
            self._trial_runner.stop_all()
            self._stopped = True


class _Attempt:
    """A course's block while it runs: what was measured, and which arms have failed in it."""

    def __init__(self, state: ContextState, trial_runner: TrialRunner, starter: _Starter, progress: Progress) -> None:
        design = state.comparison.design
        # The number of the context comes last: numpy pads with zeros, so that a single comparison needs none.
        rng = np.random.default_rng([design.seed, state.next_number, state.context.number - 1])
        self.state = state
        self._schedule = block_schedule(rng, [BASELINE, *state.open_arms], state.next_rounds)
        self._trial_runner = trial_runner
        self._starter = starter
        self._progress = progress
        self._design = design
        self._windows: dict[int, list[Window]] = {arm: [] for arm in self._schedule.start_order}
        self._counters: dict[int, Mapping[str, float]] = {}
        self._levels: dict[int, Mapping[str, float]] = {}
        self._failures: list[FailedTrial] = []
        self._repeated_rounds = 0

    @property
    def load_has_failed(self) -> bool:
        """Whether a server may be in a bad state now."""
        return any(failure.phase is not Phase.START for failure in self._failures)

    def run(self) -> None:
        """Start all, warm up all, then measure in sessions; an arm that fails takes no further part."""
        order = self._schedule.start_order
        for arm in order:
            self._try(arm, Phase.START, partial(self._starter.start, arm))
        try:
            for arm in order:
                self._try(arm, Phase.WARM_UP, partial(self._warm_up, arm, self._schedule.seeds[0]))
            for session in self._schedule.sessions(self._design.rounds_per_session):
                for arm, windows in self._undisturbed(session).items():
                    self._windows[arm] += windows
        finally:
            self._trial_runner.abandon()
        for arm in order:
            self._try(arm, Phase.MEASURE, partial(self._count, arm))

    def block(self, wall_s: float) -> Block:
        """The block; arms that failed, or finished no transaction, have words instead of a trial."""
        trials: dict[int, Trial] = {}
        failures = list(self._failures)
        for arm, windows in self._windows.items():
            if self._has_failed(arm) or not windows:
                continue
            if sum(window.transactions for window in windows):
                trials[arm] = trial_of(arm, windows, self._levels.get(arm), self._counters.get(arm))
            else:
                words = "no transaction finished in any window"
                failures.append(FailedTrial(arm=arm, phase=Phase.MEASURE, words=words))
        if BASELINE in trials:
            for arm in trials.keys() - {BASELINE}:
                trials[arm] = trials[arm]._replace(ratio_error=ratio_error(trials[BASELINE], trials[arm]))
        return Block(
            number=self.state.next_number,
            trials=trials,
            failures=tuple(failures),
            wall_s=wall_s,
            repeated_rounds=self._repeated_rounds,
        )

    def _undisturbed(self, session: Session) -> Mapping[int, Sequence[Window]]:
        """Measure a session, and again as long as any of its windows was disturbed.

        All arms again, so that none is favoured; in one block at most half as often as it has rounds, of an operation
        once, then it counts as it is: a host that is always disturbed must not make a study take for ever.
        """
        windows = self._session(session, attempt=1)
        attempts = 1
        while any(window.was_disturbed for one in windows.values() for window in one) and self._may_repeat():
            self._repeated_rounds += len(session.rounds)
            attempts += 1
            # An arm that fails now has failed; the others keep what they had.
            windows = {**windows, **self._session(session, attempt=attempts)}
        return windows

    def _may_repeat(self) -> bool:
        return self._repeated_rounds < self._design.most_repeats and not self._failures

    def _session(self, session: Session, *, attempt: int) -> dict[int, Sequence[Window]]:
        windows: dict[int, Sequence[Window]] = {}
        name = partial(self._name, number=session.first_round, attempt=attempt)
        is_long = self._design.window_kind is WindowKind.RUN
        if not is_long and session.first_round == 1:
            # Of short windows only the first is announced: nothing is drawn between them.
            self._announce(session.rounds[0][0], Phase.MEASURE, 1)
        for number, order in enumerate(session.rounds, session.first_round):
            for arm in order:
                if is_long:
                    self._announce(arm, Phase.MEASURE, number)
                self._try(arm, Phase.MEASURE, partial(self._trial_runner.measure, arm, session.seed, name(arm)))
        for arm in session.rounds[0]:
            self._try(arm, Phase.MEASURE, partial(self._collect, arm, windows))
        return windows

    def _name(self, arm: int, number: int, attempt: int) -> str:
        """Name a session: `context-1-block-002-arm-0-round-03`, with `-repeated-1` when it is measured again."""
        repeated = f"-repeated-{attempt - 1}" if attempt > 1 else ""
        block = f"context-{self.state.context.number}-block-{self.state.next_number:03d}"
        return f"{block}-arm-{arm}-round-{number:02d}{repeated}"

    def _warm_up(self, arm: int, seed: int) -> None:
        self._levels[arm] = self._trial_runner.warm_up(arm, seed)

    def _collect(self, arm: int, windows: dict[int, Sequence[Window]]) -> None:
        windows[arm] = self._trial_runner.collect(arm)

    def _count(self, arm: int) -> None:
        transactions = sum(window.transactions for window in self._windows[arm])
        self._counters[arm] = self._trial_runner.counted(arm, transactions)

    def _announce(self, arm: int, phase: Phase, number: int) -> None:
        if not self._is_out(arm):
            self._progress.step(self.state.context, self.state.next_number, arm, phase, number)

    def _try(self, arm: int, phase: Phase, action: Callable[[], None]) -> None:
        if self._is_out(arm):
            return
        if phase is not Phase.MEASURE:
            self._announce(arm, phase, 0)
        try:
            action()
        except TrialFailedError as error:
            self._failures.append(FailedTrial(arm=arm, phase=phase, words=str(error)))

    def _is_out(self, arm: int) -> bool:
        return self._has_failed(arm) or self._is_pointless()

    def _has_failed(self, arm: int) -> bool:
        return any(failure.arm == arm for failure in self._failures)

    def _is_pointless(self) -> bool:
        """Without the baseline, or with nothing but it, nothing can be learned from the rest of the block."""
        if not self._failures:
            # Asked for every window.
            return False
        alive = [arm for arm in self._windows if not self._has_failed(arm)]
        return BASELINE not in alive or alive == [BASELINE]
