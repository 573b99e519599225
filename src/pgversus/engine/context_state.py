"""The state of one context: which of its arms still need blocks, and whether it has ended.

A context state depends on its blocks only. Blocks read back from results change it exactly as they did when they were
run, which is all that resuming a study needs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from pgversus.engine.forecast import Forecast
from pgversus.engine.progress import Look
from pgversus.engine.testbed import BlockOrder
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block
from pgversus.stats.analysis import InterimResult, interim_result
from pgversus.stats.confidence import LookRule, Verdict, ends_measuring, look_rule
from pgversus.stats.effects import LogEstimate, Samples
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import StopReason
from pgversus.study.study import Context

MOST_FAILURES_IN_A_ROW = 3
_USELESS_REPETITIONS, _PAUSE_OF_REPETITIONS = 3, 5
# Blocks in a row. Repetitions were useless if at least as many windows stayed disturbed as rounds were repeated.


class ContextState:
    """The state of one running context; it has ended when `stopped` is set."""

    def __init__(self, context: Context, verdicts: int) -> None:
        """verdicts: number of verdicts of the whole study, which share one error probability."""
        self.context = context
        self.comparison: Comparison = context.comparison
        self.rule: LookRule = look_rule(context.comparison.design, verdicts)
        self.preparation: Preparation | None = None
        self.samples = Samples()
        self.open_arms: list[int] = [arm.index for arm in context.comparison.contenders]
        # Share of the budget, in proportion to its verdicts.
        self._share = len(self.open_arms) / verdicts
        self.invalid: set[int] = set()
        """Contenders without a verdict because their trials kept failing."""
        self.stopped: StopReason | None = None
        self.failure: str | None = None
        """Why the context could not be prepared, so that it gets no block in this run."""
        self.interim_results: dict[int, InterimResult] = {}
        """The last interim result of each contender, which is final once the contender needs no more blocks."""
        self.wall_s = 0.0
        self.shares_starts = True
        """Whether it may be measured on the starts of other contexts.

        False once its load has failed, which may kill servers, or has written, which changes the data of the others.
        """
        self._forecast: Forecast | None = None
        # None if anything has changed since it was computed.

    @property
    def next_number(self) -> int:
        """The number of the next block."""
        return len(self.blocks) + 1

    @property
    def blocks(self) -> list[Block]:
        """The blocks so far."""
        return self.samples.blocks

    @property
    def is_fixed(self) -> bool:
        """Whether its number of blocks was given, so that no budget ends it."""
        return self.comparison.design.stopping_rule.looks_once

    @property
    def fewest_ratios(self) -> int:
        """The minimum, over all open contenders, of the blocks that include the contender and the baseline."""
        if not self.blocks:
            return 0
        return min((self.interim_results[arm].blocks for arm in self.open_arms), default=0)

    @property
    def may_repeat(self) -> bool:
        """Whether repeating disturbed rounds can still help.

        On a host that is always disturbed, repeating only wastes time. After some useless repetitions, rounds are
        repeated again only once a block was undisturbed, or after a pause of some blocks.
        """
        useless = paused = 0
        for block in reversed(self.blocks):
            if not block.disturbed_windows:
                break
            if block.repeated_rounds > block.disturbed_windows:
                break
            if block.repeated_rounds:
                useless += 1
            elif not useless:
                paused += 1
        return useless < _USELESS_REPETITIONS or paused >= _PAUSE_OF_REPETITIONS

    @property
    def forecast(self) -> Forecast:
        """Estimates from the blocks so far."""
        if self._forecast is None:
            self._forecast = Forecast(
                design=self.comparison.design,
                rule=self.rule,
                blocks=self.blocks,
                open_arms=self.open_arms,
                interim_results=self.interim_results,
                wall_s=self.wall_s,
                share=self._share,
            )
        return self._forecast

    @property
    def most_more_blocks(self) -> int:
        """The maximum number of blocks that the context can still need, at least 1 while it has not ended.

        Blocks that fail are replaced by others, one by one.
        """
        return max(1, self.rule.last_look - self.fewest_ratios)

    def order(self, number: int) -> BlockOrder:
        """Return one of its next blocks. number: next_number, or a later one if other blocks are being measured."""
        return BlockOrder(
            context=self.context,
            design=self.comparison.design,
            number=number,
            arms=(BASELINE, *self.open_arms),
            rounds=self.forecast.next_rounds,
            may_repeat=self.may_repeat,
            seconds=self.next_s,
        )

    def fits_into(self, left_s: float) -> bool:
        """Return whether its next block would end within the remaining budget; for the first, whether any is left."""
        return self.next_s is None or left_s > self.next_s

    @property
    def log_ratios(self) -> list[LogEstimate]:
        """The log ratios of the open contenders whose standard errors are known: none before two blocks."""
        found = [self.interim_results[arm].log_ratio for arm in self.open_arms] if self.blocks else []
        return [one for one in found if one is not None and math.isfinite(one.standard_error)]

    @property
    def next_s(self) -> float | None:
        """The expected time of its next block, 0 before the first; None if no budget ends it."""
        if self.is_fixed:
            return None
        return self.forecast.seconds_per_block if self.blocks else 0.0

    def begin(self, preparation: Preparation) -> None:
        """Set the preparation: its arms are ready and its design is final."""
        self.preparation = preparation
        self.comparison = replace(self.comparison, design=preparation.design)
        self._forecast = None

    def forget_plans(self) -> None:
        """Discard the plans, which take the most memory and are not needed by the run."""
        if self.preparation is not None:
            self.preparation = replace(self.preparation, plans=None)

    def fail(self, words: str) -> None:
        """End the context because it cannot be prepared: none of its blocks is measured in this run."""
        self.failure, self.stopped = words, StopReason.FAILED

    def resume_from(self, preparation: Preparation | None, failure: str | None, blocks: Sequence[Block]) -> None:
        """Restore the state of an earlier run; blocks in the order in which they were run."""
        if preparation is not None:
            self.begin(preparation)
        if failure is not None:
            self.fail(failure)
        for block in blocks:
            self._add(block)
        self._look([arm.index for arm in self.comparison.contenders])

    def take(self, block: Block) -> dict[int, InterimResult]:
        """Add the next block; return the interim results of the contenders that were open before it."""
        self._add(block)
        return self._look(self.open_arms)

    def _add(self, block: Block) -> None:
        self.samples.add(block.without_windows())
        self.wall_s += block.wall_s
        self.shares_starts = self.shares_starts and block.is_harmless

    def _look(self, arms: Sequence[int]) -> dict[int, InterimResult]:
        """Update the interim results of these contenders, and with them the state of the context.

        One look after many blocks gives the same result as a look after each: a contender that needed no more blocks
        got none, so its last look is the one that decided.
        """
        interim_results = {arm: self._interim_result(arm) for arm in arms}
        self.interim_results |= interim_results
        self.open_arms = [arm for arm, interim in interim_results.items() if self._stays_open(arm, interim)]
        self.stopped = self._reason_to_stop() if self.blocks else self.stopped
        self._forecast = None
        return interim_results

    def looks(self, interim_results: Mapping[int, InterimResult], left_s: float) -> dict[int, Look]:
        """Return the looks: interim results with the remaining time of each. left_s: of the study's budget."""
        left_s = max(0.0, left_s)
        is_over = self.stopped is not None
        return {
            arm: self.forecast.look(arm, interim, left_s, is_open=not is_over and arm in self.open_arms)
            for arm, interim in interim_results.items()
        }

    @property
    def seconds_left(self) -> float | None:
        """Time until all its arms have an answer at the current noise, regardless of the budget; None if unknown."""
        if self.stopped is not None:
            return 0.0
        return self.forecast.seconds_left

    def _failures_in_a_row(self, arm: int) -> int:
        """Count the last blocks that gave a contender no ratio, whichever of the two arms had failed."""
        last = takewhile(lambda block: not block.has(BASELINE, arm), reversed(self.blocks))
        return sum(1 for _ in last)

    def _interim_result(self, arm: int) -> InterimResult:
        interim = interim_result(self.samples, self.comparison, self.rule, arm)
        # Only an open contender can become invalid: a decided contender is absent from blocks without having failed.
        if self._needs_blocks(interim) and self._failures_in_a_row(arm) >= MOST_FAILURES_IN_A_ROW:
            self.invalid.add(arm)
            return replace(interim, verdict=Verdict.INVALID)
        return interim

    def _stays_open(self, arm: int, interim: InterimResult) -> bool:
        return arm not in self.invalid and self._needs_blocks(interim)

    def _needs_blocks(self, interim: InterimResult) -> bool:
        if self.is_fixed:
            return interim.blocks < self.rule.last_look
        return not ends_measuring(interim.interval, interim.verdict, self.comparison.design)

    def _reason_to_stop(self) -> StopReason | None:
        if len(self.invalid) == len(self.comparison.contenders):
            return StopReason.FAILED
        rule = self.comparison.design.stopping_rule
        return rule.reason_to_give_up(len(self.blocks)) if self.open_arms else rule.reason_at_end
