"""The blocks that a context still needs, estimated from those it has: their number, their length, and the time left."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pgversus.engine.progress import Look
from pgversus.records.trials import Block
from pgversus.stats.analysis import InterimResult
from pgversus.stats.block_model import BlockModel, block_model, may_choose_rounds, soonest_rounds
from pgversus.stats.confidence import LookRule, blocks_to_end, final_half_width
from pgversus.study.design import Design


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Estimates from the blocks so far; each is computed once, when it is first needed."""

    design: Design
    rule: LookRule
    blocks: Sequence[Block]
    """The blocks so far."""
    open_arms: Sequence[int]
    """Contenders that need more blocks."""
    interim_results: Mapping[int, InterimResult]
    """By contender; may be empty before the first block."""
    wall_s: float
    """Time of the blocks."""
    share: float
    """Share of the study's budget that belongs to this context."""

    @cached_property
    def models(self) -> Mapping[int, BlockModel]:
        """Block models by open contender, if its blocks allow one."""
        arms = self.open_arms if may_choose_rounds(self.design) else ()
        found = {arm: block_model(self.blocks, arm, self.design) for arm in arms}
        return {arm: model for arm, model in found.items() if model is not None}

    @cached_property
    def next_rounds(self) -> int:
        """Rounds of the next block: as designed, until the blocks show which number gives the soonest answer.

        With several contenders, the largest number is used.
        """
        left_s = max(0.0, self.share * self.design.budget_s - self.wall_s)
        wanted = [soonest_rounds(model, self.design, self.rule, left_s) for model in self.models.values()]
        return max(wanted, default=self.design.rounds)

    @cached_property
    def seconds_per_block(self) -> float:
        """Time of the next block: from the models or the mean so far; before the first block, that of its windows."""
        if self.models:
            return max(model.block_s(self.next_rounds) for model in self.models.values())
        if self.blocks:
            return self.wall_s / len(self.blocks)
        return (len(self.open_arms) + 1) * (self.design.measured_s_per_block + self.design.warm_up_s)

    @cached_property
    def seconds_left(self) -> float | None:
        """Time until all open arms have an answer at the current noise, regardless of the budget; None if unknown."""
        if not self.blocks:
            return None
        interim_results = {arm: self.interim_results[arm] for arm in self.open_arms}
        if not self._is_fixed and any(map(self._is_before_first_look, interim_results.values())):
            return None
        needed = [self._blocks_left(arm, interim) for arm, interim in interim_results.items()]
        # A block includes all open arms, so the arm that needs the most blocks decides.
        return None if None in needed else max(blocks or 0 for blocks in needed) * self.seconds_per_block

    @property
    def lacks_transactions(self) -> bool:
        """Whether an open arm never gets an interval, because a block has too few transactions for the percentile."""
        return any(self._lacks_transactions(self.interim_results[arm]) for arm in self.open_arms)

    def look(self, arm: int, interim: InterimResult, budget_left: float, *, is_open: bool) -> Look:
        """Return the look at a contender. budget_left: seconds left of the study's budget."""
        blocks = self._blocks_left(arm, interim) if is_open else 0
        return Look(
            interim_result=interim,
            seconds_left=self._seconds_left(interim, blocks, budget_left),
            blocks_left=blocks,
            is_before_first_look=not self._is_fixed and self._is_before_first_look(interim),
        )

    @property
    def _is_fixed(self) -> bool:
        return self.design.stopping_rule.looks_once

    def _seconds_left(self, interim: InterimResult, blocks: int | None, budget_left: float) -> float | None:
        if blocks is None:
            return budget_left if interim.log_ratio is not None else None
        seconds = blocks * self.seconds_per_block
        return seconds if self._is_fixed or self._is_before_first_look(interim) else min(budget_left, seconds)

    def _lacks_transactions(self, interim: InterimResult) -> bool:
        is_unbounded = math.isinf(interim.interval.half_width) and not self._is_before_first_look(interim)
        return is_unbounded and self.design.metric.quantile is not None

    def _is_before_first_look(self, interim: InterimResult) -> bool:
        return interim.blocks < self.rule.first_look

    def _blocks_left(self, arm: int, interim: InterimResult) -> int | None:
        """Return the blocks until the first look or, later, until an answer at the current noise; None if unknown."""
        if self._is_before_first_look(interim):
            return self.rule.first_look - interim.blocks
        if self._is_fixed:
            return 0
        if interim.log_ratio is None or self._lacks_transactions(interim):
            return None
        if arm in self.models:
            half_width = final_half_width(interim.log_ratio.point, self.design)
            return self.models[arm].blocks_until(half_width, self.next_rounds, self.rule)
        needed = blocks_to_end(interim.log_ratio, self.rule, self.design)
        return None if needed is None else max(0, needed - interim.blocks)
