"""Measurements: windows make a trial, the trials of all arms make a block; latencies are histograms.

Latencies are counts in log-spaced bins, each 1 % wide. A quantile read from them is within 1 % of the exact one,
merging is adding, and a trial of a million transactions stores a few hundred numbers. Below 100 microseconds the
clock's own step of one microsecond is coarser than a bin.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pgversus.study.counters import DISTURBED_WINDOWS, MAINTENANCE, ROWS_WRITTEN
from pgversus.study.metrics import QUANTILES, Metric, Quantity, StepTime

BIN_WIDTH = math.log(1.01)
_UNIT_S = 1e-6
# The lower edge of bin 0: pgbench writes latencies in whole microseconds.

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LatencyHistogram:
    """Counts of transactions by latency; `counts[i]` belongs to bin `first_bin + i`.

    Invariants: no negative count; the first and the last count are not zero, or there is no count at all.
    """

    first_bin: int
    counts: Counts

    @classmethod
    def from_microseconds(cls, latencies: npt.NDArray[np.int64]) -> "LatencyHistogram":
        """Return the histogram of latencies in whole microseconds; zero counts as one."""
        if latencies.size == 0:
            return cls(0, np.zeros(0, dtype=np.int64))
        bins = (np.log(np.maximum(latencies, 1)) / BIN_WIDTH).astype(np.int64)
        first = int(bins.min())
        return cls(first, np.bincount(bins - first).astype(np.int64))

    @property
    def total(self) -> int:
        """Number of transactions."""
        return int(self.counts.sum())

    @property
    def least(self) -> float:
        """Lower edge of the first bin, in seconds: no latency is below it. Raises ValueError if empty."""
        if not self.counts.size:
            raise ValueError("no least of 0 transactions")
        return math.exp(self.first_bin * BIN_WIDTH) * _UNIT_S

    def quantile(self, q: float) -> float:
        """Return the latency in seconds below which a share q of the transactions lies.

        Within a bin the distribution is assumed uniform on the log scale, so the result changes with every transaction
        and never leaves the bin. ValueError for an empty histogram or q outside (0, 1].
        """
        if not 0 < q <= 1 or not self.counts.size:
            raise ValueError(f"no quantile {q} of {self.total} transactions")
        cumulated = np.cumsum(self.counts)
        target = q * cumulated[-1]
        position = int(np.searchsorted(cumulated, target))
        inside = self.counts[position]
        share = float((target - (cumulated[position] - inside)) / inside)
        return math.exp((self.first_bin + position + share) * BIN_WIDTH) * _UNIT_S


def merge(histograms: Sequence[LatencyHistogram]) -> LatencyHistogram:
    """Return the sum of all histograms; an empty one for none."""
    filled = [histogram for histogram in histograms if histogram.counts.size]
    if not filled:
        return LatencyHistogram(0, np.zeros(0, dtype=np.int64))
    first = min(histogram.first_bin for histogram in filled)
    last = max(histogram.first_bin + histogram.counts.size for histogram in filled)
    counts = np.zeros(last - first, dtype=np.int64)
    for histogram in filled:
        start = histogram.first_bin - first
        counts[start : start + histogram.counts.size] += histogram.counts
    return LatencyHistogram(first, counts)


NO_LATENCIES = merge(())
"""For operations, which are timed as a whole."""


_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One measured interval on one arm: of load, or an operation from start to end."""

    transactions: int
    """Finished in this window; an operation counts as one."""
    seconds: float
    """Length of the window, excluding the time of connecting."""
    latency_sum_s: float
    """Sum of the latencies of its transactions; unknown ones count as the mean of the others."""
    latency_max_s: float
    histogram: LatencyHistogram
    failed: int = 0
    """Transactions that ended in a serialization failure or a deadlock."""
    unclocked: int = 0
    """Transactions whose latency the load generator did not measure, so that it is unknown."""
    connect_s: float = 0.0
    """Time of connecting before the window."""
    output: str = ""
    """Complete output of the load generator."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """Counters of servers and host during the window, by name."""
    gauges: Mapping[str, float] = field(default_factory=dict)
    """Values that do not add up over windows; the largest counts for a trial."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each step of an operation, by name."""
    was_disturbed: bool = False
    """Whether time was lost in it or, in a long window, the host was busy with other work.

    In pairs of short windows, other work affects both arms alike or is averaged out.
    """


class Trial(NamedTuple):
    """One arm in one block: one start of its server, as sums over its windows.

    A tuple, like the block, because a study has a hundred thousand of them and a frozen dataclass takes five times as
    long to create.
    """

    arm: int
    transactions: int
    seconds: float
    """Sum of its windows, excluding connecting."""
    latency_sum_s: float
    latency_max_s: float
    quantiles: Mapping[float, float]
    """Latency in seconds by q, over all windows; empty without latencies."""
    latency_min_s: float | None = None
    """Within 1 %; None without latencies."""
    failed: int = 0
    """Transactions that did not succeed."""
    unclocked: int = 0
    """Transactions with unknown latency."""
    trend: float | None = None
    """ln of the throughput ratio of the second to the first half of its windows; None if a half has no throughput."""
    counters: Mapping[str, float] = _NOTHING
    """Counters of servers and host in the windows, by name (study/counters.py); unavailable ones are absent."""
    steps: Mapping[str, float] = _NOTHING
    """Seconds of each step of an operation, by name; empty for a load."""
    ratio_error: float | None = None
    """Standard error of ln(this arm / the baseline) in throughput from its own windows (stats/block_model.py)."""
    window_count: int | None = None
    """None for older results, where every block has the designed number."""
    windows: tuple[Window, ...] = ()
    """Empty if read back from results: a finished trial only needs the sums."""

    @property
    def tps(self) -> float:
        """Transactions per second over all windows together, including stalls, which are part of the comparison."""
        return self.transactions / self.seconds

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of all transactions."""
        return self.latency_sum_s / self.transactions

    @property
    def has_written(self) -> bool:
        """Whether its load is known to have changed rows; false if autovacuum ran, which may have changed them."""
        written = any(self.counters.get(name, 0.0) > 0 for name in ROWS_WRITTEN)
        return written and not any(self.counters.get(name, 0.0) > 0 for name in MAINTENANCE)

    @property
    def histogram(self) -> LatencyHistogram:
        """Latencies of all windows; empty for a trial that was read back."""
        return merge([window.histogram for window in self.windows])

    def value(self, quantity: Quantity) -> float | None:
        """Return a quantity of this trial in its base unit.

        None for a quantile without latencies, and for quantities that a load or an operation does not have.
        """
        return value_of(quantity)(self)


def value_of(quantity: Quantity) -> Callable[[Trial], float | None]:
    """Return a function that reads a quantity from a trial, for use on many trials."""
    match quantity:
        case StepTime(step=step):
            return lambda trial: trial.steps.get(step)
        case Metric.TIME:
            return lambda trial: math.fsum(trial.steps.values()) if trial.steps else None
        case Metric.TPS:
            return lambda trial: None if trial.steps else trial.tps
        case Metric.LATENCY_MEAN:
            return lambda trial: None if trial.steps else trial.latency_mean_s
        case Metric.LATENCY_MAX:
            return lambda trial: None if trial.steps else trial.latency_max_s
        case _:
            q = QUANTILES[quantity]
            return lambda trial: None if trial.steps else trial.quantiles.get(q)


def trial_of(
    arm: int,
    windows: Sequence[Window],
    gauges: Mapping[str, float] | None = None,
    counters: Mapping[str, float] | None = None,
) -> Trial:
    """Return the trial of these windows.

    gauges: read before the windows. counters: of all windows together, in addition to those of each window.
    """
    histogram = merge([window.histogram for window in windows])
    longest = max(window.latency_max_s for window in windows)
    disturbed = sum(window.was_disturbed for window in windows)
    return Trial(
        arm=arm,
        transactions=sum(window.transactions for window in windows),
        seconds=sum(window.seconds for window in windows),
        latency_sum_s=sum(window.latency_sum_s for window in windows),
        latency_max_s=longest,
        latency_min_s=histogram.least if histogram.total else None,
        # Within its bin a quantile may be read slightly above the largest latency.
        quantiles={q: min(histogram.quantile(q), longest) for q in QUANTILES.values()} if histogram.total else {},
        failed=sum(window.failed for window in windows),
        unclocked=sum(window.unclocked for window in windows),
        trend=_trend(windows),
        counters=_added([window.counters for window in windows])
        | dict(counters or {})
        | _largest([window.gauges for window in windows])
        | dict(gauges or {})
        | ({DISTURBED_WINDOWS: float(disturbed)} if disturbed else {}),
        steps=_added([window.steps for window in windows]),
        window_count=len(windows),
        windows=tuple(windows),
    )


def _trend(windows: Sequence[Window]) -> float | None:
    """With an odd number of windows, the middle one belongs to neither half."""
    half = len(windows) // 2
    first, second = (throughput(part) for part in (windows[:half], windows[len(windows) - half :]))
    return math.log(second / first) if first > 0 and second > 0 else None


def throughput(windows: Sequence[Window]) -> float:
    """Return the transactions per second of windows together; 0 if they took no time."""
    seconds = sum(window.seconds for window in windows)
    return sum(window.transactions for window in windows) / seconds if seconds else 0.0


def _added(counters: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of the counters that every window has."""
    everywhere = set(counters[0]).intersection(*counters[1:])
    return {name: math.fsum(one[name] for one in counters) for name in counters[0] if name in everywhere}


def _largest(gauges: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = set().union(*gauges)
    return {name: max(one[name] for one in gauges if name in one) for name in names}


class Phase(StrEnum):
    """The phase of a block."""

    START = "start"
    WARM_UP = "warm-up"
    MEASURE = "measure"


NOTHING_FINISHED = "no transaction finished in any window"
"""The message of a trial whose windows were too short for its host, which is not an error of its statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTrial:
    """A trial without a result: stored with its message, never counted."""

    arm: int
    phase: Phase
    message: str
    """Message of the program that failed."""


class DiscardedWindow(NamedTuple):
    """A window whose round was measured again, because this or another window of its session was disturbed."""

    arm: int
    round: int
    """From 1 in each block."""
    attempt: int
    """From 1; the attempt that counts came after the last discarded one."""
    transactions: int
    seconds: float
    was_disturbed: bool


class Block(NamedTuple):
    """Trials close in time, at most one of each arm."""

    number: int
    """From 1, including failed blocks."""
    trials: Mapping[int, Trial]
    """By arm; an arm that failed or took no part is absent."""
    failures: tuple[FailedTrial, ...] = ()
    wall_s: float = 0.0
    """From the first start to the last stop, in seconds."""
    repeated_rounds: int = 0
    """Rounds measured again because they were disturbed."""
    discarded: tuple[DiscardedWindow, ...] = ()
    """The windows of the earlier attempts at these rounds; empty if read back from results."""
    host: str = ""
    """The host of a fleet on which the whole block was measured; empty without a fleet."""

    @property
    def disturbed_windows(self) -> int:
        """Number of windows, of all arms, that count although they were disturbed."""
        return round(sum(trial.counters.get(DISTURBED_WINDOWS, 0.0) for trial in self.trials.values()))

    @property
    def is_harmless(self) -> bool:
        """Whether its load neither failed, which may kill a server, nor wrote, which changes the data of others."""
        failed = any(failure.phase is not Phase.START for failure in self.failures)
        return not failed and not any(trial.has_written for trial in self.trials.values())

    def without_windows(self) -> "Block":
        """Return the block as it is read back from results: its windows take most of its memory."""
        trials = {arm: trial._replace(windows=()) for arm, trial in self.trials.items()}
        return self._replace(trials=trials, discarded=())

    def has(self, *arms: int) -> bool:
        """Return whether each of these arms has a finished trial in this block."""
        return self.trials.keys() >= {*arms}
