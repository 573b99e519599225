"""The order of windows inside a block, so that drift cancels and chance decides who is first.

Two arms run as ABBA or BAAB, as a coin says, again and again; more arms as a random order and its mirror.
Every arm then sits at the same mean position of each pair of rounds, so that a linear drift adds nothing to any ratio.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np


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
