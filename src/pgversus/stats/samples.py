"""The values of every quantity, arm by arm and block by block, on the log scale: each is computed once.

A study asks the same trials again and again: at every look, for levels and for ratios. Samples grow by blocks.
"""

import math
from collections.abc import Iterable

from pgversus.stats.trials import Block, value_of
from pgversus.study.metrics import Quantity


class Samples:
    """Blocks, and what they say of each arm."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = list(blocks)
        self._logs: dict[tuple[Quantity, int], list[float | None]] = {}

    def add(self, block: Block) -> None:
        """One more block."""
        self.blocks.append(block)

    def logs(self, quantity: Quantity, arm: int) -> list[float | None]:
        """ln of a quantity of an arm for each block, -inf for nothing; None where the block does not tell."""
        known = self._logs.setdefault((quantity, arm), [])
        of = value_of(quantity)
        for block in self.blocks[len(known) :]:
            trial = block.trials.get(arm)
            value = None if trial is None else of(trial)
            known.append(None if value is None else math.log(value) if value > 0 else -math.inf)
        return known

    def fewest_transactions(self, arms: Iterable[int]) -> int:
        """The fewest transactions of any of these arms in a block that holds them all; 0 when there is none."""
        wanted = tuple(arms)
        found = [
            min(block.trials[arm].transactions for arm in wanted)
            for block in self.blocks
            if all(arm in block.trials for arm in wanted)
        ]
        return min(found, default=0)
