"""What is known of a context once its arms are loaded and its load has been tried: kept with the results."""

from dataclasses import dataclass

from pgversus.study.caveats import Difference
from pgversus.study.design import Design

_LEAST_PATIENCE_S, _TIMES_AS_SLOW = 60.0, 20

_SHARE_OF_FIRST_LOAD = 4
# Of a slow arm a block holds two windows of three transactions, and no look is taken before the fourth block.
_LEAST_FIXED_PATIENCE_S = 15 * 60.0
# No budget ends a fixed number of blocks, so that it says little of how slow a transaction may be.

RUNNING_SERVER = "running server"
"""The origin of an arm that somebody else runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """What an arm turned out to be."""

    version: str
    """server_version as the server says it."""
    origin: str
    """wheel, zonky, bin directory, or running server."""
    compiler: str
    flags: str
    """CFLAGS; empty where the server does not tell."""
    sha256: str | None
    """Of the artifact that the build came from."""
    data: str = ""
    """Hash over names, rows and digests of all its tables: equal data have equal hashes, also days later."""


def first_patience_s(design: Design, contexts: int) -> float:
    """How long the first load is waited for beyond its length, of which nobody knows yet how slow it is.

    A quarter of the context's equal part of the budget: a transaction that takes longer leaves no time for an answer.
    """
    least_s = _LEAST_PATIENCE_S if design.fixed_blocks is None else _LEAST_FIXED_PATIENCE_S
    return min(design.budget_s, max(least_s, design.budget_s / contexts / _SHARE_OF_FIRST_LOAD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The end of preparing a context: from here on nothing of it changes."""

    design: Design
    """With windows fitted to the load."""
    arms: tuple[ArmFacts, ...]
    differences: tuple[Difference, ...]
    writes: bool
    """Whether the first load changed rows, so that every block needs fresh data."""
    connect_allowance_s: int
    """Whole seconds by which each run of pgbench is longer, because its -T begins before its clients are connected."""
    longest_transaction_s: float = 0.0
    """The slowest transaction of the first load on any arm."""

    @property
    def patience_s(self) -> float:
        """Beyond its own length, how long a window is waited for before it is given up as one that hangs.

        Long enough for a window that is twenty times as slow as anything seen, and never the budget of all contexts.
        """
        seen_s = max(self.design.window_s, self.longest_transaction_s)
        return min(self.design.budget_s, max(_LEAST_PATIENCE_S, _TIMES_AS_SLOW * seen_s))
