"""Blocks, looks, and when to stop.

A block starts every arm afresh, warms all of them up and measures them in short windows in an order that cancels drift.
After each block the verdict is asked; an arm whose verdict is known gets no more blocks. The engine knows arms by
number and drives an Apparatus by a Clock, so that the whole of it can be simulated.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from pgversus.lab.apparatus import Apparatus, Clock, TrialFailedError
from pgversus.lab.progress import Look, Progress
from pgversus.stats.analysis import Standing, standing
from pgversus.stats.confidence import LookRule, look_rule
from pgversus.stats.forecast import blocks_to_decide
from pgversus.stats.trials import Block, FailedTrial, Phase, Trial, Window
from pgversus.stats.verdict import Verdict
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import StopReason
from pgversus.study.schedule import BlockSchedule, block_schedule

MOST_FAILURES_IN_A_ROW = 3


@dataclass(kw_only=True)
class Run:
    """What the engine has seen so far; complete when `stopped` is set."""

    rule: LookRule
    blocks: list[Block] = field(default_factory=list)
    invalid: set[int] = field(default_factory=set)
    """Contenders of which nothing is claimed because their trials kept failing."""
    stopped: StopReason | None = None
    wall_s: float = 0.0


def run_blocks(
    comparison: Comparison,
    apparatus: Apparatus,
    *,
    clock: Clock,
    progress: Progress,
    keep: Callable[[Block], None],
) -> Run:
    """Run blocks until every verdict is known, the design's end is reached, or Ctrl-C.

    keep: takes each finished block before anything else is done with it. The order of everything follows from the
    design's seed and the number of the block alone.
    """
    run = Run(rule=look_rule(comparison.design, len(comparison.contenders)))
    began = clock()
    in_a_row: Counter[int] = Counter()
    open_arms = [arm.index for arm in comparison.contenders]
    try:
        while run.stopped is None:
            block = _run_block(comparison, open_arms, len(run.blocks) + 1, apparatus, clock, progress)
            keep(block)
            run.blocks.append(block)
            run.wall_s = clock() - began
            _count_failures(block, open_arms, in_a_row)
            run.invalid |= {arm for arm in open_arms if in_a_row[arm] >= MOST_FAILURES_IN_A_ROW}
            looks = {arm: _look(run, comparison, arm) for arm in open_arms}
            progress.block_finished(block, looks, run.wall_s)
            open_arms = [arm for arm in open_arms if arm not in run.invalid and _is_open(run, looks[arm].standing)]
            run.stopped = _reason_to_stop(run, comparison, open_arms)
    except KeyboardInterrupt:
        run.stopped = StopReason.INTERRUPTED
        run.wall_s = clock() - began
    return run


def _run_block(
    comparison: Comparison,
    contenders: Sequence[int],
    number: int,
    apparatus: Apparatus,
    clock: Clock,
    progress: Progress,
) -> Block:
    design = comparison.design
    rng = np.random.default_rng([design.seed, number])
    schedule = block_schedule(rng, [BASELINE, *contenders], design.rounds)
    began = clock()
    attempt = _Attempt(number, schedule, apparatus, progress)
    try:
        attempt.run()
    finally:
        apparatus.stop_all()
    return Block(number=number, trials=attempt.trials(), failures=tuple(attempt.failures), wall_s=clock() - began)


class _Attempt:
    """One block while it runs: what was measured, and which arms have failed in it."""

    def __init__(self, number: int, schedule: BlockSchedule, apparatus: Apparatus, progress: Progress) -> None:
        self._number = number
        self._schedule = schedule
        self._apparatus = apparatus
        self._progress = progress
        self._windows: dict[int, list[Window]] = {arm: [] for arm in schedule.start_order}
        self.failures: list[FailedTrial] = []

    def run(self) -> None:
        """Start all, warm up all, then the rounds; an arm that fails takes no further part."""
        for arm in self._schedule.start_order:
            self._try(arm, Phase.START, 0, partial(self._apparatus.start, arm))
        for arm in self._schedule.start_order:
            self._try(arm, Phase.WARM_UP, 0, partial(self._apparatus.warm_up, arm, self._schedule.seeds[0]))
        for number, (order, seed) in enumerate(zip(self._schedule.rounds, self._schedule.seeds, strict=True), 1):
            for arm in order:
                self._try(arm, Phase.MEASURE, number, partial(self._measure, arm, seed))

    def trials(self) -> dict[int, Trial]:
        """The trials of the arms that did not fail; a trial without a transaction is a failure too."""
        result = {}
        for arm, windows in self._windows.items():
            if self._has_failed(arm) or not windows:
                continue
            trial = Trial(arm=arm, windows=tuple(windows))
            if trial.transactions:
                result[arm] = trial
            else:
                self.failures.append(
                    FailedTrial(arm=arm, phase=Phase.MEASURE, words="no transaction finished in any window")
                )
        return result

    def _measure(self, arm: int, seed: int) -> None:
        self._windows[arm].append(self._apparatus.measure(arm, seed))

    def _try(self, arm: int, phase: Phase, number: int, action: Callable[[], None]) -> None:
        if self._has_failed(arm) or self._is_pointless():
            return
        self._progress.step(self._number, arm, phase, number)
        try:
            action()
        except TrialFailedError as error:
            self.failures.append(FailedTrial(arm=arm, phase=phase, words=str(error)))

    def _has_failed(self, arm: int) -> bool:
        return any(failure.arm == arm for failure in self.failures)

    def _is_pointless(self) -> bool:
        """Without the baseline, or with nothing but it, nothing can be learned from the rest of the block."""
        alive = [arm for arm in self._windows if not self._has_failed(arm)]
        return BASELINE not in alive or alive == [BASELINE]


def _look(run: Run, comparison: Comparison, arm: int) -> Look:
    stands = standing(run.blocks, comparison, run.rule, arm)
    if arm in run.invalid:
        stands = replace(stands, verdict=Verdict.INVALID)
    return Look(standing=stands, seconds_left=_seconds_left(run, comparison, stands))


def _seconds_left(run: Run, comparison: Comparison, stands: Standing) -> float | None:
    design = comparison.design
    each = run.wall_s / len(run.blocks)
    if design.fixed_blocks is not None:
        return (design.fixed_blocks - stands.blocks) * each
    if stands.blocks < run.rule.first_look:
        return (run.rule.first_look - stands.blocks) * each
    if stands.log_ratio is None:
        return None
    budget_left = max(0.0, design.budget_s - run.wall_s)
    needed = blocks_to_decide(stands.log_ratio, run.rule, design.log_margin)
    return budget_left if needed is None else min(budget_left, max(0, needed - stands.blocks) * each)


def _count_failures(block: Block, contenders: Sequence[int], in_a_row: Counter[int]) -> None:
    """Blocks in a row that gave a contender no ratio, whichever of the two arms had failed."""
    for arm in contenders:
        in_a_row[arm] = 0 if block.has(BASELINE, arm) else in_a_row[arm] + 1


def _is_open(run: Run, stands: Standing) -> bool:
    if run.rule.first_look == run.rule.last_look:
        return stands.blocks < run.rule.last_look
    return stands.verdict is Verdict.UNDECIDED


def _reason_to_stop(run: Run, comparison: Comparison, open_arms: Sequence[int]) -> StopReason | None:
    design = comparison.design
    if not open_arms:
        if len(run.invalid) == len(comparison.contenders):
            return StopReason.FAILED
        return StopReason.DECIDED if design.fixed_blocks is None else StopReason.BLOCKS
    if design.fixed_blocks is not None:
        # Blocks with a failed trial are run again, but not for ever.
        return StopReason.FAILED if len(run.blocks) >= 2 * design.fixed_blocks else None
    if len(run.blocks) >= design.max_blocks:
        return StopReason.BLOCKS
    if run.wall_s + run.wall_s / len(run.blocks) > design.budget_s:
        # The next block would end beyond the budget.
        return StopReason.BUDGET
    return None
