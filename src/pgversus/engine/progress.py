"""Events for observers of a running comparison. Nothing is reported inside a window of load."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pgversus.records.trials import Block, Phase
from pgversus.stats.analysis import InterimResult
from pgversus.study.comparison import Comparison
from pgversus.study.study import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The interim result of a contender after a block, and its remaining time."""

    interim_result: InterimResult
    seconds_left: float | None
    """Until the first look; later, until an answer at the current noise, at most the budget. None if unknown."""
    blocks_left: int | None = None
    """The same in blocks, regardless of the budget; None also if too many would be needed."""
    is_before_first_look: bool = False
    """Whether the time and blocks left are until the first look, not until an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeEstimate:
    """The progress of a study, and its remaining time."""

    contexts: int
    """Number of contexts in the whole study."""
    ended: int
    """Contexts that get no more blocks."""
    spent_s: float
    """Time spent on blocks, including those of earlier runs."""
    budget_s: float | None
    """None if the number of blocks was given, so that no budget ends the study."""
    seconds_left: float | None
    """None if unknown."""
    is_at_most: bool = False
    """Whether seconds_left is the remaining budget, because the time needed is unknown or exceeds it."""


class Progress:
    """Receives events as they happen; this class ignores them."""

    def say(self, line: str) -> None:
        """Report a line of text."""

    def fetching(self, name: str, size: int) -> None:
        """Report a download and its size in bytes."""

    def building(self, name: str, done: int, total: int) -> None:
        """Report the finished steps of a build from source, and their approximate total."""

    def at(self, sentence: str, /, **values: object) -> None:
        """Report the current step while nothing is measured: an untranslated sentence and its placeholder values."""

    def resumed(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
        """Report that a context has blocks of an earlier run; looks by contender."""

    def attributing(self, words: str, number: int, total: int) -> None:
        """Report that the verdicts are known and an attribution of plan changes begins, as a study of its own.

        words: the contender to be attributed, the number-th of total.
        """

    def begin_blocks(self, context: Context, comparison: Comparison) -> None:
        """Report that a context is ready to be measured; the comparison has its final design."""

    def time_estimate(self, estimate: Callable[[], TimeEstimate]) -> None:
        """Report that the progress of the study has changed; also called when it begins.

        estimate: computes the estimate from every context of the study, on demand.
        """

    def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
        """Report the next step; round_number counts from 1 while measuring, otherwise it is 0."""

    def host(self, name: str, sentence: str, /, **values: object) -> None:
        """Report the new activity of a host of a fleet: an untranslated sentence and its placeholder values.

        An empty sentence means that the host has left the fleet.
        """

    def doing(self, line: str) -> None:
        """Report the step of a long operation; the only event during a timed interval."""

    def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
        """Report a finished block. looks: by contender. elapsed_s: time of all blocks of this context."""
