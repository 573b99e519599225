"""What was measured: windows make a trial, the trials of all arms make a block; latencies as histograms.

Latencies are counts in log-spaced bins, each 1 % wide. A quantile read from them is within 1 % of the exact one,
merging is adding, and a trial of a million transactions stores a few hundred numbers. Below 100 microseconds the
clock's own step of one microsecond is coarser.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pgversus.study.counters import MAINTENANCE, ROWS_WRITTEN
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
        """The histogram of latencies given in whole microseconds; zero counts as one."""
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
        """The lower edge of the first bin in seconds: no latency is below it. ValueError when it is empty."""
        if not self.counts.size:
            raise ValueError("no least of 0 transactions")
        return math.exp(self.first_bin * BIN_WIDTH) * _UNIT_S

    def quantile(self, q: float) -> float:
        """The latency in seconds below which a share q of the transactions lies.

        Inside its bin the distribution is taken as even on the log scale, so the answer moves with every
        transaction and never leaves the bin. ValueError for an empty histogram or q outside (0, 1].
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
    """The sum of all; an empty histogram for none."""
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
"""Of what is timed as a whole."""


_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One measured interval on one arm: of load, or an operation from its beginning to its end."""

    transactions: int
    """Finished in this window; an operation counts as one."""
    seconds: float
    """Length of the window, without the time of connecting."""
    latency_sum_s: float
    """Sum of the latencies of its transactions; one that nobody knows is taken as long as the mean of the others."""
    latency_max_s: float
    histogram: LatencyHistogram
    failed: int = 0
    """Transactions that ended in a serialization failure or a deadlock."""
    unclocked: int = 0
    """Transactions whose latency the load generator did not measure, and of which nobody knows it."""
    connect_s: float = 0.0
    """Time of connecting before the window."""
    output: str = ""
    """What the load generator printed, whole."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What servers and host counted while it lasted, by name."""
    levels: Mapping[str, float] = field(default_factory=dict)
    """What does not add up over windows; of a trial the largest counts."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each step of an operation, by name."""
    was_disturbed: bool = False
    """Whether time was lost in it, or, of a long one, the host tells that something else had it meanwhile.

    Other work hits both arms of a pair of short windows alike, or is averaged out.
    """


class Trial(NamedTuple):
    """One arm in one block: one start of its server, as sums over its windows.

    A tuple, like the block, because a study has a hundred thousand: a frozen dataclass takes five times as long to
    make.
    """

    arm: int
    transactions: int
    seconds: float
    """Sum of its windows, without connecting."""
    latency_sum_s: float
    latency_max_s: float
    quantiles: Mapping[float, float]
    """Latency in seconds by q, over all windows; empty where there was no latency to read."""
    latency_min_s: float | None = None
    """Exact to 1 %; None where there was no latency to read."""
    failed: int = 0
    """Transactions that did not succeed."""
    unclocked: int = 0
    """Transactions whose latency nobody knows."""
    trend: float | None = None
    """ln of the throughput of the second half of its windows over the first; None where a half has none."""
    counters: Mapping[str, float] = _NOTHING
    """What servers and host counted in the windows, by name (study/counters.py); one that nobody tells is absent."""
    steps: Mapping[str, float] = _NOTHING
    """Seconds of each step of an operation, by name; empty for a load."""
    ratio_error: float | None = None
    """Standard error of ln(this arm / the baseline) in throughput from its own windows (stats/block_model.py)."""
    window_count: int | None = None
    """None for older results, where every block has as many as the design says."""
    windows: tuple[Window, ...] = ()
    """Empty when it was read back from results: the sums are all that is ever asked of a finished trial."""

    @property
    def tps(self) -> float:
        """Transactions per second over all windows together: stalls belong to what is compared."""
        return self.transactions / self.seconds

    @property
    def latency_mean_s(self) -> float:
        """Mean latency of all transactions."""
        return self.latency_sum_s / self.transactions

    @property
    def has_written(self) -> bool:
        """Whether its load was seen to change rows. Where autovacuum ran they may be its own, so nothing is claimed."""
        written = any(self.counters.get(name, 0.0) > 0 for name in ROWS_WRITTEN)
        return written and not any(self.counters.get(name, 0.0) > 0 for name in MAINTENANCE)

    @property
    def histogram(self) -> LatencyHistogram:
        """Latencies of all windows; empty for a trial that was read back."""
        return merge([window.histogram for window in self.windows])

    def value(self, quantity: Quantity) -> float | None:
        """A quantity of this trial in its base unit.

        None for a quantile where there was no latency to read, and for what a load or an operation does not have.
        """
        return value_of(quantity)(self)


def value_of(quantity: Quantity) -> Callable[[Trial], float | None]:
    """How a quantity is had of a trial: for who asks many trials for the same."""
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
    levels: Mapping[str, float] | None = None,
    counters: Mapping[str, float] | None = None,
) -> Trial:
    """Return the trial of these windows.

    levels: seen before them. counters: of all of them together, beside those of each.
    """
    histogram = merge([window.histogram for window in windows])
    longest = max(window.latency_max_s for window in windows)
    return Trial(
        arm=arm,
        transactions=sum(window.transactions for window in windows),
        seconds=sum(window.seconds for window in windows),
        latency_sum_s=sum(window.latency_sum_s for window in windows),
        latency_max_s=longest,
        latency_min_s=histogram.least if histogram.total else None,
        # Inside its bin a quantile may be read a little above the largest latency there was.
        quantiles={q: min(histogram.quantile(q), longest) for q in QUANTILES.values()} if histogram.total else {},
        failed=sum(window.failed for window in windows),
        unclocked=sum(window.unclocked for window in windows),
        trend=_trend(windows),
        counters=_added([window.counters for window in windows])
        | dict(counters or {})
        | _largest([window.levels for window in windows])
        | dict(levels or {}),
        steps=_added([window.steps for window in windows]),
        window_count=len(windows),
        windows=tuple(windows),
    )


def _trend(windows: Sequence[Window]) -> float | None:
    """With an odd number the middle window belongs to neither half."""
    half = len(windows) // 2
    first, second = (_tps(part) for part in (windows[:half], windows[len(windows) - half :]))
    return math.log(second / first) if first > 0 and second > 0 else None


def _tps(windows: Sequence[Window]) -> float:
    seconds = sum(window.seconds for window in windows)
    return sum(window.transactions for window in windows) / seconds if seconds else 0.0


def _added(counters: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Sums of what every window has."""
    everywhere = set(counters[0]).intersection(*counters[1:])
    return {name: math.fsum(one[name] for one in counters) for name in counters[0] if name in everywhere}


def _largest(levels: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = set().union(*levels)
    return {name: max(one[name] for one in levels if name in one) for name in names}


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


class Block(NamedTuple):
    """Trials close in time, at most one of each arm."""

    number: int
    """From 1, failed blocks included."""
    trials: Mapping[int, Trial]
    """By arm; an arm that failed or took no part is absent."""
    failures: tuple[FailedTrial, ...] = ()
    wall_s: float = 0.0
    """From the first start to the last stop."""
    repeated_rounds: int = 0
    """Rounds measured again because they were disturbed; what was measured first counts for nothing."""

    def has(self, *arms: int) -> bool:
        """Whether each of these arms has a finished trial here."""
        return self.trials.keys() >= {*arms}
