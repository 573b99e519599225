"""What the engine drives. The real ones are in lab/; simulated ones serve calibration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.study.study import Context

Clock = Callable[[], float]
"""Seconds from a fixed moment, never going back."""


class TrialFailedError(Exception):
    """An arm could not be started, warmed up or measured; the message holds the failing program's own words."""


class TrialHungError(TrialFailedError):
    """A load was ended because it took far longer than it should."""


class TrialRunner(Protocol):
    """Servers under the load of one context, one for each arm."""

    def start(self, arm: int) -> None:
        """Start an arm's server afresh. TrialFailedError when it does not come up."""

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Put load on an arm and throw the numbers away; levels that must not be taken in a window, by counter.

        TrialFailedError when the load fails.
        """

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window of load. TrialFailedError when it fails: never a number then.

        The first window of a session connects the clients, whose keys follow from the seed. name: of the files that may
        be kept of this session; no other session of the study has it.
        """

    def collect(self, arm: int) -> Sequence[Window]:
        """End the arm's session and return its windows in order. TrialFailedError when they cannot be read."""

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return what was counted in all windows of the arm in this block together, where it is not with each window.

        transactions: of the windows that count; others may have been measured again.
        TrialFailedError when the server does not answer.
        """

    def abandon(self) -> None:
        """End sessions that are still open, whose windows nobody wants. Never fails."""

    def stop_all(self) -> None:
        """End of a block: stop whatever runs. Never fails."""


class Testbed(Protocol):
    """Where the contexts of a study are prepared and measured."""

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Load what is not loaded yet and try the load; PgversusError when the context cannot be measured.

        known: what an earlier run of the same study found; then nothing is tried again, and what is found now must
        agree with it.
        """

    def trial_runner(self, context: Context) -> TrialRunner:
        """The apparatus of a prepared context."""

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Whether both prepared contexts can be measured on one start of the same servers without harm to either."""
