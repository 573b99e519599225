"""A fault: an event that strikes a run at a random moment, and the outcome of one try."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.live.conftest import CommandLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one try."""

    moment: str
    """The phase of the run in which the fault struck."""
    end: str
    """How the struck run ended, and what happened afterwards."""
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault: its name, what it does, and the number of tries."""

    name: str
    what: str
    """Description in one line."""
    play: Callable[[CommandLine, Random], Outcome]
    """Run one try: start a run, strike it, and return the outcome."""
    tries: int = 10
    """Number of tries in `make bench-faults`."""
    is_tested: bool = True
    """Whether tests include a try."""
    why_not: Callable[[], str] = field(default=lambda: "")
    """Return why the fault is not possible on this host; empty if it is possible."""
    needs_tools: bool = False
    """Whether it builds a server from source."""


@dataclass(slots=True)
class Tally:
    """Totals over all tries of one fault."""

    moments: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)
    """Each violation with the seed of its try."""

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a try."""
        self.moments[outcome.moment] += 1
        self.ends[outcome.end] += 1
        self.violations += [(seed, words) for words in outcome.violations]
