"""One start of the servers, and the blocks that are measured on it: of one context, or of many that share it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial

import numpy as np

from pgversus.lab.apparatus import Apparatus, Clock, Site, TrialFailedError
from pgversus.lab.course import Course
from pgversus.lab.progress import Progress
from pgversus.stats.trials import Block, FailedTrial, Phase, Trial, Window, trial_of
from pgversus.study.comparison import BASELINE
from pgversus.study.schedule import block_schedule


def run_start(
    courses: Sequence[Course], site: Site, clock: Clock, progress: Progress, left_s: float
) -> Generator[tuple[Course, Block], None, None]:
    """A start of every arm and on it a block of each course, given away as soon as it is measured.

    There are fewer blocks when a load fails, since it may have killed, and when less than a course's next block is left
    of the budget, which is asked before each but the first. left_s: of the budget, when this begins.

    A block's wall time is that of its own load and an equal part of the time that the servers took to start. The last
    one is given away when the servers have stopped, and pays what remains: the stop, and the parts of courses that were
    left out. So the blocks of a start have taken as long together as the start has.
    """
    began = clock()
    paid_s = 0.0
    starter = _Starter(site.apparatus(courses[0].context), clock)
    waiting = list(courses)
    try:
        while waiting:
            course = waiting.pop(0)
            attempt = _Attempt(course, site.apparatus(course.context), starter, progress)
            load_s = _seconds_without_starts(attempt.run, starter, clock)
            waiting = [] if attempt.load_has_failed else _still_fitting(waiting, left_s - (clock() - began))
            if waiting:
                wall_s = load_s + starter.seconds / len(courses)
            else:
                starter.stop_all()
                wall_s = clock() - began - paid_s
            paid_s += wall_s
            yield course, attempt.block(wall_s)
    finally:
        starter.stop_all()


def _still_fitting(courses: Sequence[Course], left_s: float) -> list[Course]:
    return [course for course in courses if course.fits_into(left_s)]


def _seconds_without_starts(action: Callable[[], None], starter: "_Starter", clock: Clock) -> float:
    began, of_starts_s = clock(), starter.seconds
    action()
    return clock() - began - (starter.seconds - of_starts_s)


class _Starter:
    """The servers of one start: each is started when the first course asks for it, and stays."""

    def __init__(self, apparatus: Apparatus, clock: Clock) -> None:
        self._apparatus = apparatus
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
                self._apparatus.start(arm)
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
            self._apparatus.stop_all()
            self._stopped = True


class _Attempt:
    """A course's block while it runs: what was measured, and which arms have failed in it."""

    def __init__(self, course: Course, apparatus: Apparatus, starter: _Starter, progress: Progress) -> None:
        design = course.comparison.design
        # The number of the context comes last: numpy pads with zeros, so that a single comparison needs none.
        rng = np.random.default_rng([design.seed, course.next_number, course.context.number - 1])
        self.course = course
        self._schedule = block_schedule(rng, [BASELINE, *course.open_arms], design.rounds)
        self._apparatus = apparatus
        self._starter = starter
        self._progress = progress
        self._windows: dict[int, list[Window]] = {arm: [] for arm in self._schedule.start_order}
        self._levels: dict[int, Mapping[str, float]] = {}
        self._failures: list[FailedTrial] = []
        self._repeated_rounds = 0
        self._most_repeats = design.most_repeats

    @property
    def load_has_failed(self) -> bool:
        """Whether a server may be in a bad state now."""
        return any(failure.phase is not Phase.START for failure in self._failures)

    def run(self) -> None:
        """Start all, warm up all, then the rounds; an arm that fails takes no further part."""
        for arm in self._schedule.start_order:
            self._try(arm, Phase.START, 0, partial(self._starter.start, arm))
        for arm in self._schedule.start_order:
            self._try(arm, Phase.WARM_UP, 0, partial(self._warm_up, arm, self._schedule.seeds[0]))
        for number, (order, seed) in enumerate(zip(self._schedule.rounds, self._schedule.seeds, strict=True), 1):
            for arm, window in self._undisturbed_round(number, order, seed).items():
                self._windows[arm].append(window)

    def block(self, wall_s: float) -> Block:
        """The block; arms that failed, or finished no transaction, have words instead of a trial."""
        trials: dict[int, Trial] = {}
        failures = list(self._failures)
        for arm, windows in self._windows.items():
            if self._has_failed(arm) or not windows:
                continue
            if sum(window.transactions for window in windows):
                trials[arm] = trial_of(arm, windows, self._levels.get(arm))
            else:
                words = "no transaction finished in any window"
                failures.append(FailedTrial(arm=arm, phase=Phase.MEASURE, words=words))
        return Block(
            number=self.course.next_number,
            trials=trials,
            failures=tuple(failures),
            wall_s=wall_s,
            repeated_rounds=self._repeated_rounds,
        )

    def _undisturbed_round(self, number: int, order: Sequence[int], seed: int) -> Mapping[int, Window]:
        """A round, measured again as a whole as long as something else had the host in any of its windows.

        All arms again, so that none is favoured; in one block at most half as often as it has rounds, of an operation
        once, then it counts as it is: a host that is always disturbed must not make a study take for ever.
        """
        windows = self._round(number, order, seed, attempt=1)
        attempts = 1
        while any(window.was_disturbed for window in windows.values()) and self._may_repeat():
            self._repeated_rounds += 1
            attempts += 1
            # An arm that fails now has failed; the others keep what they had.
            windows = {**windows, **self._round(number, order, seed, attempt=attempts)}
        return windows

    def _may_repeat(self) -> bool:
        return self._repeated_rounds < self._most_repeats and not self._failures

    def _round(self, number: int, order: Sequence[int], seed: int, *, attempt: int) -> dict[int, Window]:
        windows: dict[int, Window] = {}
        for arm in order:
            name = self._name(arm, number, attempt)
            self._try(arm, Phase.MEASURE, number, partial(self._measure, arm, seed, name, windows))
        return windows

    def _name(self, arm: int, number: int, attempt: int) -> str:
        """Of a window: `context-1-block-002-arm-0-round-03`, with `-repeated-1` when it is measured again."""
        repeated = f"-repeated-{attempt - 1}" if attempt > 1 else ""
        block = f"context-{self.course.context.number}-block-{self.course.next_number:03d}"
        return f"{block}-arm-{arm}-round-{number:02d}{repeated}"

    def _warm_up(self, arm: int, seed: int) -> None:
        self._levels[arm] = self._apparatus.warm_up(arm, seed)

    def _measure(self, arm: int, seed: int, name: str, windows: dict[int, Window]) -> None:
        windows[arm] = self._apparatus.measure(arm, seed, name)

    def _try(self, arm: int, phase: Phase, number: int, action: Callable[[], None]) -> None:
        if self._has_failed(arm) or self._is_pointless():
            return
        self._progress.step(self.course.context, self.course.next_number, arm, phase, number)
        try:
            action()
        except TrialFailedError as error:
            self._failures.append(FailedTrial(arm=arm, phase=phase, words=str(error)))

    def _has_failed(self, arm: int) -> bool:
        return any(failure.arm == arm for failure in self._failures)

    def _is_pointless(self) -> bool:
        """Without the baseline, or with nothing but it, nothing can be learned from the rest of the block."""
        alive = [arm for arm in self._windows if not self._has_failed(arm)]
        return BASELINE not in alive or alive == [BASELINE]
