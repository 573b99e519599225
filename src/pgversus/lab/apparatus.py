"""What the engine drives. The real one is in postgres_apparatus.py; a simulated one serves calibration and tests."""

from collections.abc import Callable
from typing import Protocol

from pgversus.stats.trials import Window

Clock = Callable[[], float]
"""Seconds from a fixed moment, never going back."""


class TrialFailedError(Exception):
    """An arm could not be started, warmed up or measured; the message holds the failing program's own words."""


class Apparatus(Protocol):
    """Servers under load, one for each arm."""

    def start(self, arm: int) -> None:
        """Start an arm's server afresh. TrialFailedError when it does not come up."""

    def warm_up(self, arm: int, seed: int) -> None:
        """Put load on an arm and throw the numbers away. TrialFailedError when the load fails."""

    def measure(self, arm: int, seed: int) -> Window:
        """One window of load. TrialFailedError when it fails: never a number then."""

    def stop_all(self) -> None:
        """End of a block: stop whatever runs. Never fails."""
