"""What the outside may watch while a comparison runs. Nothing is reported inside a window of load."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pgversus.records.trials import Block, Phase
from pgversus.stats.analysis import InterimResult
from pgversus.study.comparison import Comparison
from pgversus.study.study import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a contender stands after a block, and how long it may still take."""

    interim_result: InterimResult
    seconds_left: float | None
    """Until an answer at today's noise, at most the budget; until the first look before that. None: nobody can tell."""
    blocks_left: int | None = None
    """The same in blocks, whatever the budget; None also where there would be too many."""
    is_before_first_look: bool = False
    """Whether these are blocks until the first look, not until an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """How far a study has come, and how long it may still take."""

    contexts: int
    """Of the whole study."""
    ended: int
    """Those that get no more blocks."""
    spent_s: float
    """On blocks, those of earlier runs included."""
    budget_s: float | None
    """None where the number of blocks was given, so that no budget ends it."""
    seconds_left: float | None
    """None: nobody can tell."""
    is_at_most: bool = False
    """Whether that is what is left of the budget, because nobody can tell how much of it is needed."""


class Progress(Protocol):
    """Takes what happens, as it happens."""

    def say(self, line: str) -> None:
        """Something worth a line."""

    def fetching(self, name: str, size: int) -> None:
        """A download has so many bytes."""

    def building(self, name: str, done: int, total: int) -> None:
        """So many steps of a build from source are done, of about so many."""

    def at(self, sentence: str, /, **values: object) -> None:
        """Report the current step while nothing is measured: an untranslated sentence, and the values of its places."""

    def resumed(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """A context has blocks of an earlier run; looks by contender."""

    def attributing(self, words: str, number: int, total: int) -> None:
        """The verdicts are known. What follows measures what plans account for, as a study of its own.

        words: the contender whose plans they are, the number-th of total.
        """

    def begin_blocks(self, context: Context, comparison: Comparison) -> None:
        """A context is ready to be measured; the comparison has its final design."""

    def time_estimate(self, look_out: Callable[[], TimeEstimate]) -> None:
        """How far the study has come is something else now; also told when it begins.

        look_out: asks it of every context of the study, for whoever shows it.
        """

    def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
        """The next thing that runs; round_number counts from 1 while measuring, else it is 0."""

    def doing(self, line: str) -> None:
        """What a long operation is at; the only thing that is reported while something is timed."""

    def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
        """A block is over; looks by contender, elapsed_s of the blocks of this context."""


class NoProgress:
    """Progress for callers that watch nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

    def fetching(self, name: str, size: int) -> None:
        """Nothing."""

    def building(self, name: str, done: int, total: int) -> None:
        """Nothing."""

    def at(self, sentence: str, /, **values: object) -> None:
        """Nothing."""

    def resumed(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """Nothing."""

    def attributing(self, words: str, number: int, total: int) -> None:
        """Nothing."""

    def begin_blocks(self, context: Context, comparison: Comparison) -> None:
        """Nothing."""

    def time_estimate(self, look_out: Callable[[], TimeEstimate]) -> None:
        """Nothing."""

    def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
        """Nothing."""

    def doing(self, line: str) -> None:
        """Nothing."""

    def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
        """Nothing."""
