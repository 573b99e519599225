"""Simulated loads whose verdict is not about throughput, and servers that cannot be restarted.

Each is a simulated host (simulated_host.py) with the same noise of the machine and additional noise, described in
docs/statistics.md, "Other results than throughput".
"""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from benchmarks.simulated_host import BASE_TPS, Noise, SimulatedHost
from pgversus.records.trials import BIN_WIDTH, NO_LATENCIES, LatencyHistogram, Window
from pgversus.stats.counters import STEAL
from pgversus.study.design import Design

CLIENTS = 4
RATE_TPS = 500.0
"""Arrivals per second of a load with a rate: a block of 8 windows of 1 s has 4,000."""
_BODY, _TAIL = 0.25, 0.5
"""Standard deviations of the log latency of usual and of slow transactions."""
_TAIL_FACTOR = 10.0
_TAIL_SHARE, _TAIL_SHARE_VARIES = 0.02, 0.3
"""Share of slow transactions, and the standard deviation of its logarithm between starts."""
_UTILIZATION, _SERVICE_VARIES = 0.4, 0.5
"""Utilization of the server of a load with a rate, and the standard deviation of the log time to serve a request."""
_BINS = np.arange(-300, 700)
"""Latencies relative to a usual one, in bins of 1 %: from a twentieth to a thousand times."""
_MICROSECONDS = 1e6

OPERATION_S = 0.6
_COPY_S = 0.8
"""Copy and start of one arm before an operation."""
_OPERATION_VARIES = 0.05
_CHECKPOINT_SHARE, _CHECKPOINT_SIZE = 0.2, 0.3
"""Share of the repetitions that a checkpoint slows down, and the mean of the slow-down as a share of the time. The
slow-down is exponentially distributed, because times of operations are skewed."""
_COLD_READS_VARY = 0.08
"""Standard deviation of the log throughput of a cold window, because reads from disk differ from start to start."""

Floats = npt.NDArray[np.float64]


class Latencies(SimulatedHost):
    """A closed loop with latencies: lognormal, with a tail whose share of the transactions differs between starts."""

    def __init__(self, noise: Noise, ratios: Mapping[int, float], design: Design, *, seed: tuple[int, ...]) -> None:
        super().__init__(noise, ratios, design, seed=seed)
        self._shares: dict[int, Floats] = {}
        # Share of the transactions of each arm in each bin.

    def start(self, arm: int) -> None:
        """Start the server and draw its tail."""
        super().start(arm)
        tail = _TAIL_SHARE * math.exp(_TAIL_SHARE_VARIES * float(self._rng.standard_normal()))
        self._shares[arm] = (1 - tail) * _in_bins(0.0, _BODY) + tail * _in_bins(math.log(_TAIL_FACTOR), _TAIL)

    def _latencies(self, arm: int, transactions: float) -> LatencyHistogram:
        usual_s = CLIENTS * self._window_s / transactions
        counts = self._rng.multinomial(round(transactions), self._shares[arm])
        filled = np.flatnonzero(counts)
        if not filled.size:
            return NO_LATENCIES
        # The position within a bin is random, so a scale that differs by less than a bin is not lost.
        shift = math.log(usual_s * _MICROSECONDS) / BIN_WIDTH + float(self._rng.random())
        first, last = int(filled[0]), int(filled[-1])
        return LatencyHistogram(math.floor(shift) + int(_BINS[first]), counts[first : last + 1].astype(np.int64))


class Rate(SimulatedHost):
    """An open loop: latencies count from a schedule of random arrivals, so slow moments let a queue grow.

    The contender's whole latency is divided by a factor, so that the truth is known.
    """

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window, in which only the arrivals count, not the transactions that were possible."""
        super().measure(arm, seed, name)
        window = self._windows[arm].pop()
        self._windows[arm].append(replace(window, transactions=window.histogram.total))

    def _latencies(self, arm: int, transactions: float) -> LatencyHistogram:
        effect = math.exp(self._effects[arm])
        # As if both arms were equally fast; the effect follows below.
        relative_speed = transactions / effect / self._window_s / BASE_TPS
        number = int(self._rng.poisson(RATE_TPS * self._window_s))
        logs = self._rng.normal(-(_SERVICE_VARIES**2) / 2, _SERVICE_VARIES, number)
        service_s = _UTILIZATION / RATE_TPS / relative_speed * np.exp(logs)
        gaps_s = self._rng.exponential(1 / RATE_TPS, number)
        latencies_s = queued(service_s, gaps_s) / effect
        return LatencyHistogram.from_microseconds((latencies_s * _MICROSECONDS).astype(np.int64))


def queued(service_s: Floats, gaps_s: Floats) -> Floats:
    """Return the time from arrival to end of each request at one server, first come, first served.

    Lindley, *The theory of queues with a single server*, 1952. gaps_s: time since the previous arrival.
    """
    steps = service_s[:-1] - gaps_s[1:]
    walk = np.concatenate(([0.0], np.cumsum(steps)))
    waiting = walk - np.minimum.accumulate(walk)
    return np.asarray(waiting + service_s)


class TimedOperation(SimulatedHost):
    """An operation: one skewed time for each arm and block, on a fresh copy."""

    def start(self, arm: int) -> None:
        """Copy the data and start the server."""
        super().start(arm)
        self._now += _COPY_S

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Do nothing: an operation runs once."""
        del arm, seed
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Run the operation until its work is done."""
        del seed, name
        log_work = _OPERATION_VARIES * float(self._rng.standard_normal()) - self._effects[arm] - self._starts[arm]
        work_s = OPERATION_S * math.exp(log_work)
        if self._rng.random() < _CHECKPOINT_SHARE:
            work_s *= 1 + float(self._rng.exponential(_CHECKPOINT_SIZE))
        began, work = self._now, self._speed.work
        self._now = self._speed.moment_of(work(began) + work_s)
        seconds = self._now - began
        window = Window(
            transactions=1,
            seconds=seconds,
            latency_sum_s=seconds,
            latency_max_s=seconds,
            histogram=NO_LATENCIES,
            steps={"operation": seconds},
            was_disturbed=self._reports_theft and self._stolen_share(began) > STEAL,
        )
        self._windows.setdefault(arm, []).append(window)

    def collect(self, arm: int) -> list[Window]:
        """Return the operation: it has no session."""
        return self._windows.pop(arm)


class ColdCache(SimulatedHost):
    """A load whose every window begins on a restarted server, and whose reads from disk vary."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Restart the server, then measure."""
        self.start(arm)
        self._starts[arm] += _COLD_READS_VARY * float(self._rng.standard_normal())
        super().measure(arm, seed, name)


class RunningServers(SimulatedHost):
    """Servers by URI: they keep running, so the variation of their only start is part of the comparison."""

    def start(self, arm: int) -> None:
        """Start a server only once, and without variation: it is exactly as fast as its ratio."""
        if arm not in self._starts:
            self._starts[arm], self._age[arm] = 0.0, 0.0


def _in_bins(mean: float, deviation: float) -> Floats:
    """Return the share of a lognormal distribution in each bin."""
    edges = np.append(_BINS, _BINS[-1] + 1) * BIN_WIDTH
    shares = np.diff(norm.cdf(edges, loc=mean, scale=deviation))
    return np.asarray(shares / shares.sum())
