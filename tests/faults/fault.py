"""A fault: something bad that is done to a run at a random moment, and the outcome of one try."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.live.conftest import CommandLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of one try."""

    moment: str
    """The phase of the run in which the fault struck."""
    end: str
    """How the struck run ended, and what became of it afterwards."""
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A name, what is done, and how often it is tried."""

    name: str
    what: str
    """Done at the random moment, in one line."""
    play: Callable[[CommandLine, Random], Outcome]
    """One try: do it to a run that this starts, and find what does not hold afterwards."""
    tries: int = 10
    """In `make bench-faults`."""
    tries_in_tests: int = 1
    why_not: Callable[[], str] = field(default=lambda: "")
    """Why it cannot be done on this host; empty where it can."""
    needs_tools: bool = False
    """Whether it builds a server from source."""


@dataclass(slots=True)
class Tally:
    """All tries of one fault."""

    moments: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str]] = field(default_factory=list)
    """With the seed of the try."""

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a try."""
        self.moments[outcome.moment] += 1
        self.ends[outcome.end] += 1
        self.violations += [(seed, words) for words in outcome.violations]
