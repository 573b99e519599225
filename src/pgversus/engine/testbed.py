"""Protocols of objects that the engine drives. Real implementations are in lab/; simulated ones serve calibration."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.study.design import Design
from pgversus.study.study import Context

Clock = Callable[[], float]
"""Seconds since a fixed moment, monotonic."""


class TrialFailedError(Exception):
    """An arm could not be started, warmed up or measured; the message includes that of the failing program."""


class TrialHungError(TrialFailedError):
    """A load was ended because it took far too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockOrder:
    """A block to be measured, as plain data, so that any host can measure it."""

    context: Context
    design: Design
    """With fitted windows."""
    number: int
    """From 1 in each context, including failed blocks."""
    arms: tuple[int, ...]
    """The arms that take part, beginning with the baseline."""
    rounds: int
    may_repeat: bool
    """Whether repeating disturbed rounds can help."""
    seconds: float | None
    """Expected wall time, 0 if unknown; None if no budget ends it."""

    def fits_into(self, left_s: float) -> bool:
        """Return whether it would end within the remaining budget; if its time is unknown, whether any is left."""
        return self.seconds is None or left_s > self.seconds


class TrialRunner(Protocol):
    """The servers of one context under load, one for each arm."""

    def start(self, arm: int) -> None:
        """Start a fresh server for an arm. Raise TrialFailedError if it does not come up."""

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Run the load on an arm, discard its numbers, and return gauges that cannot be read in a window, by counter.

        Raise TrialFailedError if the load fails.
        """

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window of load. Raise TrialFailedError if it fails, never return a number then.

        The first window of a session connects the clients, whose keys follow from the seed. name: for the files that
        may be stored for this session; unique in the study.
        """

    def collect(self, arm: int) -> Sequence[Window]:
        """End the arm's session and return its windows in order. Raise TrialFailedError if they cannot be read."""

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return the sums of the arm's counters over this block, except for counters that are stored with each window.

        transactions: in the windows that count, not in those that were repeated.
        Raise TrialFailedError if the server does not answer.
        """

    def abandon(self) -> None:
        """End sessions that are still open and discard their windows. Never fails."""

    def stop_all(self) -> None:
        """End a block: stop everything that is running. Never fails."""


class Testbed(Protocol):
    """Prepares and measures the contexts of a study."""

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Remove the data of other contexts, and free as much disk space as these need."""

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Load missing data and try the load; raise PgversusError if the context cannot be measured.

        known: preparation from an earlier run of the same study; the load is then not tried again, and the data must
        agree with it.
        """

    def preparing(self) -> AbstractContextManager[None]:
        """Return a context manager inside which contexts that can share a start are prepared on one start.

        At its end no server is running.
        """

    def trial_runner(self, context: Context) -> TrialRunner:
        """Return the trial runner of a prepared context."""

    def failures(self, context: Context, arm: int) -> AbstractContextManager[None]:
        """Return a context manager that passes on failures of an arm, and raises PgversusError if the host failed."""

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return whether both contexts can share one start of the same servers without harm to either.

        A context that is not prepared is assumed not to write.
        """
