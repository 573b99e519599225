"""A simulated host with simulated servers: a trial runner and a clock for the engine, without waiting.

docs/statistics.md, "The simulated hosts", describes the noise. All of it acts on the logarithm of the throughput:
flicker noise and white noise, a slow drift, a one-way trend, bursts of other work and processors taken by other guests
(two-state Markov chains), start-to-start variation, variation between sessions, and a cache that warms up after each
start. The host reports only the windows in which other guests took processors, and not every host does.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter

from pgversus.records.preparation import Preparation
from pgversus.records.trials import NO_LATENCIES, LatencyHistogram, Window
from pgversus.stats.counters import STEAL
from pgversus.study.design import Design, WindowKind
from pgversus.study.study import Context

STEP_S = 0.01
"""Resolution of simulated time: the speed of the host is constant within a step."""
START_S = 0.2
"""Time to stop and start one server and to read in its data, which fit into shared buffers."""
CONNECT_S = 0.03
"""Time to connect the clients of one arm, per session."""
PAUSE_SHARE = 0.15
"""Pause between two slices as a share of their length: waiting for work in flight, placing, reading counters."""
PLACED_SHARE = 0.37
"""Remaining share of the variation between sessions in slices, whose processes are placed alike for all arms. On a real
host, blocks of point lookups differed by 2.1 % with places and by 5.7 % without."""
FLICKER_TIMES_S = tuple(float(10 ** (k / 2)) for k in range(-3, 5))
"""Time constants of the AR(1) processes that add up to flicker noise: 0.03 s to 100 s, two per decade."""
_FLICKER_EXPONENT = 0.27
_FLICKER_GROWS_TO_S = 1.0
# The fit (benchmarks/noise.py): the standard deviation of a process grows as its time constant to the power of 0.27
# up to 1 s. For longer ones it is that of 1 s, which is pure 1/f noise.
_COARSE = 5
_COARSE_FROM_S = 3.0
# Slow processes move once in 5 steps: this saves time and changes no figure of the fit by more than 1 %.
_FIRST_STEPS, _MOST_STEPS = 4000, 32_000
# Steps drawn at once, multiples of _COARSE: few at first, because most studies are short, then doubling.
BASE_TPS = 10_000.0
"""Throughput of the baseline on a host without noise."""
_TREND_S = 600.0
_COLD_PIECE_S = 1.0
_WARM = 1e-4
# The slow-down of a cache this close to warm is not measurable.

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations and sizes on the log scale; times in seconds."""

    flicker: float
    """Standard deviation of the flicker process with a time constant of 1 s; the others follow from it."""
    white: float
    """Standard deviation of the white noise of each step."""
    drift: float
    drift_s: float
    trend: float
    burst_share: float
    burst_size: float
    burst_s: float
    restart: float
    """Start-to-start variation."""
    session: float
    """Variation between sessions: processes that are not placed start on other processors."""
    warm_up: float
    warm_up_s: float
    bad_start_share: float = 0.0
    bad_start_size: float = 0.0
    stolen_share: float = 0.0
    stolen_size: float = 0.0
    stolen_s: float = 1.0
    reports: bool = True
    """Whether the host reports when processors were taken."""


_FLICKER, _WHITE = 0.135, 0.042
# Fitted to a real shared guest (benchmarks/noise.py).
_CLOUD: dict[str, Any] = {
    "flicker": 0.4 * _FLICKER,
    "white": 0.4 * _WHITE,
    "drift": 0.03,
    "drift_s": 120.0,
    "trend": 0.04,
    "burst_share": 0.10,
    "burst_size": 0.20,
    "burst_s": 5.0,
    "restart": 0.015,
    "session": 0.01,
    "warm_up": 0.06,
    "warm_up_s": 5.0,
}
_ROUGH: dict[str, Any] = {
    "flicker": _FLICKER,
    "white": _WHITE,
    "drift": 0.12,
    "drift_s": 60.0,
    "burst_share": 0.15,
    "burst_size": 0.30,
    "restart": 0.02,
    "session": 0.04,
}
_STOLEN: dict[str, Any] = {"stolen_share": 0.10, "stolen_size": 0.50, "stolen_s": 3.0}
HOSTS: Mapping[str, Noise] = {
    "quiet": Noise(
        flicker=0.1 * _FLICKER,
        white=0.1 * _WHITE,
        drift=0.005,
        drift_s=120.0,
        trend=0.01,
        burst_share=0.02,
        burst_size=0.10,
        burst_s=5.0,
        restart=0.005,
        session=0.003,
        warm_up=0.04,
        warm_up_s=5.0,
    ),
    "cloud": Noise(**_CLOUD),
    "rough": Noise(**_CLOUD | _ROUGH),
    # A stress test of the t interval: 15 % of the starts are 5 % slow.
    "bimodal": Noise(**_CLOUD | {"restart": 0.005, "bad_start_share": 0.15, "bad_start_size": 0.05}),
    # Other guests take half of the processors for seconds; only the first host reports it.
    "stolen": Noise(**_CLOUD | _STOLEN),
    "hidden": Noise(**_CLOUD | _STOLEN, reports=False),
    # Other guests never leave for long: nearly every long window is disturbed, and repeating cannot help.
    "swamped": Noise(**_CLOUD | {"stolen_share": 0.6, "stolen_size": 0.5, "stolen_s": 3.0}),
}


class HostSpeed:
    """The speed of a simulated host over time, drawn on demand.

    Work is the integral of the speed. It is stored as a cumulative sum, so a window of any length takes the same time.
    """

    def __init__(self, rng: np.random.Generator, noise: Noise) -> None:
        self._rng = rng
        self._noise = noise
        flicker = [(time_s, noise.flicker * _flicker_size(time_s)) for time_s in FLICKER_TIMES_S]
        processes = [*flicker, (noise.drift_s, noise.drift)]
        self._fast = [_Wander(rng, time_s, size, STEP_S) for time_s, size in processes if time_s < _COARSE_FROM_S]
        self._slow = [
            _Wander(rng, time_s, size, STEP_S * _COARSE) for time_s, size in processes if time_s >= _COARSE_FROM_S
        ]
        self._bursts = _Spells(rng, noise.burst_share, noise.burst_s)
        if noise.stolen_share:
            self._thefts = _Spells(rng, noise.stolen_share, noise.stolen_s)
        self._work = [0.0]
        self._stolen = [0.0]

    def work(self, at_s: float) -> float:
        """Return the work done up to `at_s`, in seconds at the speed of a host without noise."""
        return self._cumulated(self._work, at_s)

    def moment_of(self, work: float) -> float:
        """Return the inverse of `work`: the time at which this much work is done, in seconds since the host began."""
        while self._work[-1] < work:
            self._grow()
        step = max(1, bisect_left(self._work, work))
        before = self._work[step - 1]
        return STEP_S * (step - 1 + (work - before) / (self._work[step] - before))

    def stolen_s(self, at_s: float) -> float:
        """Return the seconds up to `at_s` in which other guests took processors."""
        return self._cumulated(self._stolen, at_s) if self._noise.stolen_share else 0.0

    def record(self, seconds: float) -> tuple[Floats, Floats]:
        """Return times since the start of the host and the work done up to each, both of shape (steps + 1,)."""
        steps = round(seconds / STEP_S)
        self.work(seconds)
        return np.arange(steps + 1, dtype=np.float64) * STEP_S, np.array(self._work[: steps + 1], dtype=np.float64)

    def _cumulated(self, sums: list[float], at_s: float) -> float:
        position = at_s / STEP_S
        step = int(position)
        while step + 1 >= len(sums):
            self._grow()
        return sums[step] + (position - step) * (sums[step + 1] - sums[step])

    def _grow(self) -> None:
        noise, first = self._noise, len(self._work) - 1
        number = min(max(first, _FIRST_STEPS), _MOST_STEPS)
        slow = np.zeros(number // _COARSE)
        for process in self._slow:
            slow += process.steps(len(slow))
        log_speed = np.repeat(slow, _COARSE) + self._rng.standard_normal(number) * noise.white
        for process in self._fast:
            log_speed += process.steps(number)
        log_speed += noise.trend * np.minimum(np.arange(first, first + number) * (STEP_S / _TREND_S), 1)
        log_speed += math.log1p(-noise.burst_size) * self._bursts.steps(number)
        if noise.stolen_share:
            stolen = self._thefts.steps(number)
            log_speed += math.log1p(-noise.stolen_size) * stolen
            self._stolen += (self._stolen[-1] + np.cumsum(stolen) * STEP_S).tolist()
        self._work += (self._work[-1] + np.cumsum(np.exp(log_speed)) * STEP_S).tolist()


class SimulatedHost:
    """Servers with known speed ratios on a host with known noise, and the clock of this host."""

    def __init__(self, noise: Noise, ratios: Mapping[int, float], design: Design, *, seed: tuple[int, ...]) -> None:
        """Use the windows of the design. ratios: speed of each arm relative to arm 0."""
        self._noise = noise
        self._effects = {arm: math.log(ratio) for arm, ratio in ratios.items()}
        self._window_s, self._warm_up_s = design.window_s, design.warm_up_s
        is_slice = design.window_kind is WindowKind.SLICE
        self._pause_s = PAUSE_SHARE * design.window_s if is_slice else 0.0
        self._session_noise = noise.session * (PLACED_SHARE if is_slice else 1.0)
        # Short windows report only lost time.
        self._reports_theft = noise.reports and noise.stolen_share > 0 and design.window_kind is WindowKind.RUN
        self._rng = np.random.default_rng(seed)
        self._speed = HostSpeed(self._rng, noise)
        self._starts: dict[int, float] = {}
        self._sessions: dict[int, float] = {}
        # Transactions per second of each arm in its open session, without host noise.
        self._age: dict[int, float] = {}
        self._now = 0.0
        self._windows: dict[int, list[Window]] = {}

    def clock(self) -> float:
        """Return the simulated seconds since the host began."""
        return self._now

    def start(self, arm: int) -> None:
        """Start a fresh server with a cold cache and draw its start-to-start variation."""
        noise, luck = self._noise, float(self._rng.standard_normal()) * self._noise.restart
        if noise.bad_start_share and self._rng.random() < noise.bad_start_share:
            luck -= noise.bad_start_size
        self._starts[arm], self._age[arm] = luck, 0.0
        self._now += START_S

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Run load in a separate session and discard its results."""
        del seed
        self._connect(arm)
        self._run(arm, self._warm_up_s)
        del self._sessions[arm]
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window; the first one of a session connects the clients."""
        del seed, name
        if arm not in self._sessions:
            self._connect(arm)
        began = self._now
        transactions = self._run(arm, self._window_s)
        window = Window(
            transactions=round(transactions),
            seconds=self._window_s,
            latency_sum_s=self._window_s,
            latency_max_s=1.0,
            histogram=self._latencies(arm, transactions),
            was_disturbed=self._reports_theft and self._stolen_share(began) > STEAL,
        )
        self._now += self._pause_s
        self._windows.setdefault(arm, []).append(window)

    def _latencies(self, arm: int, transactions: float) -> LatencyHistogram:
        """Return no latencies for the window that has just ended, because throughput needs none."""
        del arm, transactions
        return NO_LATENCIES

    def collect(self, arm: int) -> list[Window]:
        """End the session of an arm and return its windows."""
        del self._sessions[arm]
        return self._windows.pop(arm)

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return no counters: simulated servers have none."""
        del arm, transactions
        return {}

    def abandon(self) -> None:
        """End open sessions without keeping their windows."""
        self._windows.clear()
        self._sessions.clear()

    def stop_all(self) -> None:
        """Do nothing: START_S includes the time of stopping."""

    def _connect(self, arm: int) -> None:
        luck = float(self._rng.standard_normal()) * self._session_noise
        self._sessions[arm] = BASE_TPS * math.exp(self._starts[arm] + self._effects[arm] + luck)
        self._now += CONNECT_S

    def _stolen_share(self, began: float) -> float:
        """Return the share of all processors that other guests took since `began`."""
        stolen_s = self._speed.stolen_s(self._now) - self._speed.stolen_s(began)
        return stolen_s * self._noise.stolen_size / (self._now - began)

    def _run(self, arm: int, seconds: float) -> float:
        """Run load for `seconds` and return the number of transactions."""
        noise, work, age, end = self._noise, self._speed.work, self._age[arm], self._now + seconds
        self._age[arm] = age + seconds
        total, before = 0.0, work(self._now)
        while self._now < end:
            cold = noise.warm_up * math.exp(-age / noise.warm_up_s)
            piece_s = min(_COLD_PIECE_S, end - self._now) if cold > _WARM else end - self._now
            # The last piece must reach the end exactly, or a rounding error would become one more piece.
            self._now = end if end - self._now <= piece_s else self._now + piece_s
            after = work(self._now)
            total += (after - before) * math.exp(-cold)
            age, before = age + piece_s, after
        return total * self._sessions[arm]


class SimulatedSite:
    """A testbed that measures every context on one simulated host and needs no preparation."""

    def __init__(self, machine: SimulatedHost) -> None:
        self._machine = machine

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Do nothing: a simulated host has no data."""

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Return the design unchanged: there is nothing to load or to try."""
        del known
        design = context.comparison.design
        return Preparation(design=design, arms=(), differences=(), writes=True, connect_allowance_s=0)

    def preparing(self) -> nullcontext[None]:
        """Return a context manager that does nothing: no server is running."""
        return nullcontext()

    def trial_runner(self, context: Context) -> SimulatedHost:
        """Return the host."""
        del context
        return self._machine

    def failures(self, context: Context, arm: int) -> nullcontext[None]:
        """Return a context manager that passes on all failures."""
        del context, arm
        return nullcontext()

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return False: starts are never shared."""
        del one, other
        return False


class _Wander:
    """An AR(1) process of mean 0 in equal steps: an Ornstein-Uhlenbeck process sampled at these steps."""

    def __init__(self, rng: np.random.Generator, time_s: float, size: float, step_s: float) -> None:
        """Begin in the stationary distribution, with standard deviation `size`."""
        self._rng = rng
        self._keep = math.exp(-step_s / time_s)
        self._push = size * math.sqrt(1 - self._keep**2)
        self._state = np.array([self._keep * size * rng.standard_normal()])

    def steps(self, number: int) -> Floats:
        """Return the next `number` values."""
        pushes = self._rng.standard_normal(number) * self._push
        values, self._state = lfilter([1], [1, -self._keep], pushes, zi=self._state)
        return np.asarray(values)


class _Spells:
    """Spells of geometric length that cover a given share of the time."""

    def __init__(self, rng: np.random.Generator, share: float, mean_s: float) -> None:
        self._rng = rng
        self._state = bool(rng.random() < share)
        self._chances = {True: STEP_S / mean_s, False: STEP_S / mean_s * share / (1 - share)}
        self._left = 0

    def steps(self, number: int) -> Floats:
        """Return 1 for each of the next steps inside a spell, 0 outside."""
        result = np.zeros(number)
        at = 0
        while at < number:
            if not self._left:
                self._state = not self._state
                self._left = int(self._rng.geometric(self._chances[self._state]))
            length = min(self._left, number - at)
            result[at : at + length] = self._state
            at, self._left = at + length, self._left - length
        return result


def _flicker_size(time_s: float) -> float:
    """Return the standard deviation of a flicker process as a multiple of that of 1 s."""
    return float(min(time_s, _FLICKER_GROWS_TO_S) ** _FLICKER_EXPONENT)
