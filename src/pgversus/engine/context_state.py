"""The state of one context: which of its arms still need blocks, and whether it has ended.

A context state depends on its blocks only. Blocks read back from results change it exactly as they did when they were
run, which is all that resuming a study needs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from pgversus.engine.progress import Look
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, Phase
from pgversus.stats.analysis import InterimResult, interim_result
from pgversus.stats.block_model import BlockModel, block_model, may_choose_rounds, soonest_rounds
from pgversus.stats.confidence import LookRule, Verdict, blocks_to_end, ends_measuring, final_half_width, look_rule
from pgversus.stats.effects import Samples
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
        # Of the budget, by its verdicts.
        self._share = len(self.open_arms) / verdicts
        self.invalid: set[int] = set()
        """Contenders without a verdict because their trials kept failing."""
        self.stopped: StopReason | None = None
        self.failure: str | None = None
        """Why the context could not be prepared, so that it gets no block in this run."""
        self.interim_results: dict[int, InterimResult] = {}
        """The last interim result of each contender; it no longer changes once it needs no more blocks."""
        self.wall_s = 0.0
        # Derived from the blocks, each examined once.
        self._is_harmless, self._seen = True, 0
        # Cached values, each with the number of blocks it is valid for.
        self._cached_left: tuple[int, float | None] = (0, None)
        self._modelled: tuple[int, dict[int, BlockModel]] = (0, {})
        self._cached_rounds: tuple[int, int] | None = None

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
        """Blocks of an open contender that include the baseline: the minimum over all of them."""
        if not self.blocks:
            return 0
        return min((self.interim_results[arm].blocks for arm in self.open_arms), default=0)

    @property
    def shares_starts(self) -> bool:
        """Whether it may be measured on the starts of other contexts.

        Not after its load has failed, which may kill servers, nor after it has written, which changes the others' data.
        """
        self._is_harmless = self._is_harmless and all(map(_is_harmless, self.blocks[self._seen :]))
        self._seen = len(self.blocks)
        return self._is_harmless

    @property
    def may_repeat(self) -> bool:
        """Whether repeating disturbed rounds can still help.

        On a host that is always disturbed it only loses the time of the repetitions. After some useless ones it is
        tried again when a block was clean, or once in a while.
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
    def next_rounds(self) -> int:
        """Rounds of the next block: as designed, until the blocks show which number gives the soonest answer.

        With several contenders, the largest number is used.
        """
        if self._cached_rounds is None or self._cached_rounds[0] != len(self.blocks):
            design = self.comparison.design
            left_s = max(0.0, self._share * design.budget_s - self.wall_s)
            wanted = [soonest_rounds(model, design, self.rule, left_s) for model in self._models.values()]
            self._cached_rounds = len(self.blocks), max(wanted, default=design.rounds)
        return self._cached_rounds[1]

    @property
    def _models(self) -> dict[int, BlockModel]:
        """By open contender, if its blocks allow a model; computed once after each block."""
        if self._modelled[0] != len(self.blocks):
            design = self.comparison.design
            arms = self.open_arms if may_choose_rounds(design) else []
            found = {arm: block_model(self.blocks, arm, design) for arm in arms}
            self._modelled = len(self.blocks), {arm: model for arm, model in found.items() if model is not None}
        return self._modelled[1]

    @property
    def seconds_per_block(self) -> float:
        """Time of the next block: the mean so far; before the first one, that of its windows."""
        if self._models:
            rounds = self.next_rounds
            return max(model.block_s(rounds) for model in self._models.values())
        if self.blocks:
            return self.wall_s / len(self.blocks)
        design = self.comparison.design
        return (len(self.open_arms) + 1) * (design.measured_s_per_block + design.warm_up_s)

    def fits_into(self, left_s: float) -> bool:
        """Return whether its next block would end within the remaining budget; the first only needs some left."""
        return self.is_fixed or left_s > (self.seconds_per_block if self.blocks else 0.0)

    def begin(self, preparation: Preparation) -> None:
        """Set the preparation: its arms are ready and its design is final."""
        self.preparation = preparation
        self.comparison = replace(self.comparison, design=preparation.design)
        self._cached_left, self._cached_rounds = (0, None), None

    def forget_plans(self) -> None:
        """Discard the plans, which take the most memory and are not needed by the run."""
        if self.preparation is not None:
            self.preparation = replace(self.preparation, plans=None)

    def fail(self, words: str) -> None:
        """End it because it cannot be prepared: none of it is measured in this run."""
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
        self.samples.add(block)
        self.wall_s += block.wall_s

    def _look(self, arms: Sequence[int]) -> dict[int, InterimResult]:
        """Update the interim results of these contenders, and with them the state of the context.

        One look after many blocks gives the same result as a look after each: a contender that needed no more blocks
        got none, so its last look is the one that decided.
        """
        interim_results = {arm: self._interim_result(arm) for arm in arms}
        self.interim_results |= interim_results
        self.open_arms = [arm for arm, interim in interim_results.items() if self._stays_open(arm, interim)]
        self.stopped = self._reason_to_stop() if self.blocks else self.stopped
        return interim_results

    def looks(self, interim_results: Mapping[int, InterimResult], left_s: float) -> dict[int, Look]:
        """Return the looks: interim results with the remaining time of each. left_s: of the study's budget."""
        return {arm: self._look_at(arm, interim, max(0.0, left_s)) for arm, interim in interim_results.items()}

    @property
    def seconds_left(self) -> float | None:
        """Time until all its arms have an answer at the current noise, regardless of the budget; None if unknown."""
        if self.stopped is not None:
            return 0.0
        if self._cached_left[0] != len(self.blocks):
            self._cached_left = len(self.blocks), self._computed_seconds_left()
        return self._cached_left[1]

    def _computed_seconds_left(self) -> float | None:
        interim_results = {arm: self.interim_results[arm] for arm in self.open_arms}
        if not self.is_fixed and any(map(self._is_before_first_look, interim_results.values())):
            return None
        needed = [self._blocks_left(arm, interim) for arm, interim in interim_results.items()]
        # A block includes all open arms, so the one that needs most decides.
        return None if None in needed else max(blocks or 0 for blocks in needed) * self.seconds_per_block

    def _failures_in_a_row(self, arm: int) -> int:
        """Count the last blocks that gave a contender no ratio, whichever of the two arms had failed."""
        last = takewhile(lambda block: not block.has(BASELINE, arm), reversed(self.blocks))
        return sum(1 for _ in last)

    def _interim_result(self, arm: int) -> InterimResult:
        interim = interim_result(self.samples, self.comparison, self.rule, arm)
        # Only an open one can become invalid: a decided contender is absent from blocks without having failed.
        if self._needs_blocks(interim) and self._failures_in_a_row(arm) >= MOST_FAILURES_IN_A_ROW:
            self.invalid.add(arm)
            return replace(interim, verdict=Verdict.INVALID)
        return interim

    def _look_at(self, arm: int, interim: InterimResult, budget_left: float) -> Look:
        is_open = self.stopped is None and arm in self.open_arms
        blocks = self._blocks_left(arm, interim) if is_open else 0
        return Look(
            interim_result=interim,
            seconds_left=self._seconds_left(interim, blocks, budget_left),
            blocks_left=blocks,
            is_before_first_look=not self.is_fixed and self._is_before_first_look(interim),
        )

    def _seconds_left(self, interim: InterimResult, blocks: int | None, budget_left: float) -> float | None:
        if blocks is None:
            return budget_left if interim.log_ratio is not None else None
        seconds = blocks * self.seconds_per_block
        return seconds if self.is_fixed or self._is_before_first_look(interim) else min(budget_left, seconds)

    def _is_before_first_look(self, interim: InterimResult) -> bool:
        return interim.blocks < self.rule.first_look

    def _blocks_left(self, arm: int, interim: InterimResult) -> int | None:
        """Return the blocks until an answer at the current noise, before that until the first look; None if unknown."""
        design = self.comparison.design
        if self._is_before_first_look(interim):
            return self.rule.first_look - interim.blocks
        if self.is_fixed:
            return 0
        if interim.log_ratio is None:
            return None
        if arm in self._models:
            half_width = final_half_width(interim.log_ratio.point, design)
            return self._models[arm].blocks_until(half_width, self.next_rounds, self.rule)
        needed = blocks_to_end(interim.log_ratio, self.rule, design)
        return None if needed is None else max(0, needed - interim.blocks)

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


def _is_harmless(block: Block) -> bool:
    failed = any(failure.phase is not Phase.START for failure in block.failures)
    return not failed and not any(trial.has_written for trial in block.trials.values())
