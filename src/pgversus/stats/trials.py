"""What was measured: windows make a trial, the trials of all arms make a block."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgversus.stats.histogram import LatencyHistogram, merge


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One measured interval of load on one arm."""

    transactions: int
    """Finished in this window."""
    seconds: float
    """Length of the window, without the time of connecting."""
    latency_sum_s: float
    """Sum of the latencies of its transactions."""
    latency_max_s: float
    histogram: LatencyHistogram
    failed: int = 0
    """Transactions that ended in a serialization failure or a deadlock."""
    unclocked: int = 0
    """Transactions whose end the load generator did not look at its clock for."""
    connect_s: float = 0.0
    """Time of connecting before the window."""
    output: str = ""
    """What the load generator printed, whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All windows of one arm in one block: one start of its server."""

    arm: int
    windows: tuple[Window, ...]
    transactions: int = field(init=False)
    seconds: float = field(init=False)
    histogram: LatencyHistogram = field(init=False)
    """Latencies of all windows."""

    def __post_init__(self) -> None:
        """Sum up once: analyses read these at every look."""
        object.__setattr__(self, "transactions", sum(window.transactions for window in self.windows))
        object.__setattr__(self, "seconds", sum(window.seconds for window in self.windows))
        object.__setattr__(self, "histogram", merge([window.histogram for window in self.windows]))

    @property
    def tps(self) -> float:
        """Transactions per second over all windows together: stalls belong to what is compared."""
        return self.transactions / self.seconds

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of all transactions."""
        return sum(window.latency_sum_s for window in self.windows) / self.transactions

    @property
    def latency_max_s(self) -> float:
        """The largest latency seen."""
        return max(window.latency_max_s for window in self.windows)

    @property
    def unclocked(self) -> int:
        """Transactions whose end the load generator did not look at its clock for."""
        return sum(window.unclocked for window in self.windows)

    @property
    def failed(self) -> int:
        """Transactions that did not succeed."""
        return sum(window.failed for window in self.windows)


class Phase(StrEnum):
    """Where in a block something happened."""

    START = "start"
    WARM_UP = "warm-up"
    MEASURE = "measure"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A trial that gave no number: kept with its words, never counted."""

    arm: int
    phase: Phase
    words: str
    """What the program that failed said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Trials close in time, at most one of each arm."""

    number: int
    """From 1, failed blocks included."""
    trials: Mapping[int, Trial]
    """By arm; an arm that failed or took no part is absent."""
    failures: tuple[FailedTrial, ...] = ()
    wall_s: float = 0.0
    """From the first start to the last stop."""

    def has(self, *arms: int) -> bool:
        """Whether each of these arms has a finished trial here."""
        return all(arm in self.trials for arm in arms)
