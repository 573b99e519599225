"""Blocks, looks, and when to stop: for one context or for many.

A block starts every arm afresh, warms all of them up and measures them in short windows in an order that cancels drift.
After each block the verdict is asked; an arm whose verdict is known gets no more blocks, and neither does a context
whose arms are all known. Contexts take turns, those with the fewest blocks first, so that an interrupted study knows a
little of everything. The engine knows arms by number and drives a Site by a Clock, so that the whole of it can be
simulated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from pgversus.errors import DatasetError, ServerError, StudyError, WorkloadError
from pgversus.lab.apparatus import Apparatus, Clock, Site, TrialFailedError
from pgversus.lab.course import Course
from pgversus.lab.progress import Progress
from pgversus.stats.trials import Block, FailedTrial, Phase, Trial, Window, trial_of
from pgversus.study.comparison import BASELINE
from pgversus.study.design import StopReason
from pgversus.study.schedule import block_schedule

# Streams of their own beside those of the blocks, [seed, number of the block, number of the context - 1].
_TURNS, _TOGETHER = 1, 2

Keep = Callable[[Course, Block], None]
"""Takes each finished block before anything else is done with it."""
KeepPreparation = Callable[[Course], None]
"""Takes each context once it is prepared, or has failed to be."""


def run_courses(
    courses: Sequence[Course],
    site: Site,
    *,
    seed: int,
    budget_s: float,
    clock: Clock,
    progress: Progress,
    keep: Keep,
    keep_preparation: KeepPreparation,
) -> StopReason:
    """Run blocks until every course has ended, the budget is over, or Ctrl-C; why no further block was run.

    budget_s: wall-clock seconds of blocks of all courses, those of earlier runs included. The order of everything
    follows from seeds and numbers of blocks alone, so that a resumed study goes on as the interrupted one would have.
    """
    ready: set[int] = set()
    try:
        while open_courses := [course for course in courses if course.stopped is None]:
            affordable = _affordable(open_courses, budget_s - sum(course.wall_s for course in courses))
            if not affordable:
                return StopReason.BUDGET
            course = _next(affordable, seed)
            if course.context.number not in ready:
                if not _prepare(course, site, keep_preparation, progress, len(courses)):
                    continue
                ready.add(course.context.number)
            partners = [other for other in affordable if other.context.number in ready and other is not course]
            together = _shuffled([course, *_sharing(course, partners, site)], [seed, course.next_number, 0, _TOGETHER])
            for measured, block in _run_start(together, site, clock, progress):
                keep(measured, block)
                looks = measured.looks(measured.take(block))
                progress.block_finished(measured.context, block, looks, measured.wall_s)
    except KeyboardInterrupt:
        if not any(course.preparation for course in courses):
            # Nothing is known yet, so there is nothing to be shown.
            raise
        return StopReason.INTERRUPTED
    return StopReason.DECIDED


def _affordable(courses: Iterable[Course], left_s: float) -> list[Course]:
    """Those whose next block would end within what is left; a first block is begun as long as there is anything."""
    needs = {course.context.number: course.seconds_per_block if course.blocks else 0.0 for course in courses}
    return [course for course in courses if course.is_fixed or left_s > needs[course.context.number]]


def _next(courses: Sequence[Course], seed: int) -> Course:
    """One of those with the fewest blocks, by chance."""
    fewest = min(course.next_number for course in courses)
    candidates = [course for course in courses if course.next_number == fewest]
    # Drawn for all numbers there are, so that it does not depend on who has had the turn already.
    rng = np.random.default_rng([seed, fewest, 0, _TURNS])
    turns = rng.permutation(max(course.context.number for course in candidates) + 1)
    return min(candidates, key=lambda course: int(turns[course.context.number]))


def _prepare(course: Course, site: Site, keep: KeepPreparation, progress: Progress, courses: int) -> bool:
    """Whether it is ready; a context that cannot be prepared ends without stopping the others."""
    known = course.preparation
    try:
        course.begin(site.prepare(course.context, known))
    except (DatasetError, ServerError, StudyError, WorkloadError) as error:
        if courses == 1:
            raise
        course.fail(f"{error.what} ({error.where}): {error.found}")
        progress.say(f"{course.context.label}: {course.failure}")
        if known is not None or isinstance(error, StudyError):
            # What was found before still holds, and a larger budget may help: the next run tries it again.
            return False
    if known is None:
        keep(course)
    return course.failure is None


def _sharing(course: Course, others: Sequence[Course], site: Site) -> list[Course]:
    """The others that are as far and can be measured on the same start."""
    if not course.shares_starts:
        return []
    return [
        other
        for other in others
        if other.next_number == course.next_number
        and other.shares_starts
        and site.can_share_start(course.context, other.context)
    ]


def _run_start(
    courses: Sequence[Course], site: Site, clock: Clock, progress: Progress
) -> Iterable[tuple[Course, Block]]:
    """A start of every arm and on it a block of each course; fewer when a load fails, since it may have killed."""
    began = clock()
    attempts: list[_Attempt] = []
    starter = _Starter(site.apparatus(courses[0].context))
    try:
        for course in courses:
            attempt = _Attempt(course, site.apparatus(course.context), starter, progress)
            attempt.run()
            attempts.append(attempt)
            if attempt.load_has_failed:
                break
    finally:
        starter.stop_all()
    each_s = (clock() - began) / len(attempts)
    return [(attempt.course, attempt.block(each_s)) for attempt in attempts]


class _Starter:
    """The servers of one start: each is started when the first course asks for it, and stays."""

    def __init__(self, apparatus: Apparatus) -> None:
        self._apparatus = apparatus
        self._outcomes: dict[int, TrialFailedError | None] = {}

    def start(self, arm: int) -> None:
        """Start, unless it has been; TrialFailedError, also again for the next course."""
        if arm not in self._outcomes:
            try:
                self._apparatus.start(arm)
                self._outcomes[arm] = None
            except TrialFailedError as error:
                self._outcomes[arm] = error
        outcome = self._outcomes[arm]
        if outcome is not None:
            raise outcome

    def stop_all(self) -> None:
        """End of the start."""
        self._apparatus.stop_all()


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
            for arm in order:
                self._try(arm, Phase.MEASURE, number, partial(self._measure, arm, seed))

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
        return Block(number=self.course.next_number, trials=trials, failures=tuple(failures), wall_s=wall_s)

    def _warm_up(self, arm: int, seed: int) -> None:
        self._levels[arm] = self._apparatus.warm_up(arm, seed)

    def _measure(self, arm: int, seed: int) -> None:
        self._windows[arm].append(self._apparatus.measure(arm, seed))

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


def _shuffled(courses: Sequence[Course], seed: Sequence[int]) -> list[Course]:
    if len(courses) == 1:
        return list(courses)
    return [courses[int(i)] for i in np.random.default_rng(list(seed)).permutation(len(courses))]
