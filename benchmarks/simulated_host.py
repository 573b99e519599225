"""A simulated host with simulated servers: the engine's apparatus and clock, without waiting.

The noise is that of docs/statistics.md, "The simulated hosts". All of it acts on the logarithm of the throughput:
white noise of each second, a slow AR(1) drift, a one-way trend, bursts of other work and processors taken by other
guests (two-state Markov chains), the luck of each server start, and a cache that warms up after it. Of all that a host
tells one thing at most: in which windows processors were taken.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from pgversus.stats.histogram import LatencyHistogram, merge
from pgversus.stats.trials import Window
from pgversus.study.preparation import Preparation
from pgversus.study.study import Context

START_S = 4
"""Stop, copy, start and read-in of one server."""
_BASE_TPS = 1000.0
_NO_LATENCIES: LatencyHistogram = merge([])
_TREND_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Standard deviations and sizes on the log scale; times in seconds."""

    white: float
    drift: float
    drift_s: float
    trend: float
    burst_share: float
    burst_size: float
    burst_s: float
    restart: float
    warm_up: float
    warm_up_s: float
    bad_start_share: float = 0.0
    bad_start_size: float = 0.0
    stolen_share: float = 0.0
    stolen_size: float = 0.0
    stolen_s: float = 1.0
    tells: bool = True
    """Whether the host says when processors were taken."""


_CLOUD: dict[str, Any] = {
    "white": 0.045,
    "drift": 0.03,
    "drift_s": 120.0,
    "trend": 0.04,
    "burst_share": 0.10,
    "burst_size": 0.20,
    "burst_s": 5.0,
    "restart": 0.015,
    "warm_up": 0.06,
    "warm_up_s": 5.0,
}
_STOLEN: dict[str, Any] = {"stolen_share": 0.10, "stolen_size": 0.50, "stolen_s": 3.0}
HOSTS: Mapping[str, Noise] = {
    "quiet": Noise(
        white=0.016,
        drift=0.005,
        drift_s=120.0,
        trend=0.01,
        burst_share=0.02,
        burst_size=0.10,
        burst_s=5.0,
        restart=0.005,
        warm_up=0.04,
        warm_up_s=5.0,
    ),
    "cloud": Noise(**_CLOUD),
    "rough": Noise(
        **_CLOUD
        | {"white": 0.10, "drift": 0.12, "drift_s": 60.0, "burst_share": 0.15, "burst_size": 0.30, "restart": 0.02}
    ),
    # A stress test of the t interval: 15 % of the starts are 5 % slow.
    "bimodal": Noise(**_CLOUD | {"restart": 0.005, "bad_start_share": 0.15, "bad_start_size": 0.05}),
    # Neighbours on the hypervisor take half of the processors for seconds, and the host tells, or does not.
    "stolen": Noise(**_CLOUD | _STOLEN),
    "untold": Noise(**_CLOUD | _STOLEN, tells=False),
}


class SimulatedHost:
    """Servers whose speed differs by a known ratio, on a host with a known noise; its clock is part of it."""

    def __init__(
        self,
        noise: Noise,
        ratios: Mapping[int, float],
        *,
        seed: tuple[int, ...],
        window_s: int,
        warm_up_s: int,
        seconds: int,
    ) -> None:
        """ratios: speed of each arm against arm 0. seconds: how long the host must last."""
        rng = np.random.default_rng(seed)
        self._noise = noise
        self._effects = {arm: math.log(ratio) for arm, ratio in ratios.items()}
        self._window_s, self._warm_up_s = window_s, warm_up_s
        environment = _environment(rng, noise, seconds)
        self._white: list[float] = (rng.standard_normal(seconds) * noise.white).tolist()
        stolen = np.zeros(seconds)
        if noise.stolen_share:
            stolen = _spells(rng, noise.stolen_share, noise.stolen_s, seconds)
        self._stolen: list[bool] = stolen.astype(bool).tolist()
        self._speed: list[float] = (environment + math.log(1 - noise.stolen_size) * stolen).tolist()
        self._rng = rng
        self._starts: dict[int, float] = {}
        self._age: dict[int, int] = {}
        self._now = 0
        self._windows: dict[int, list[Window]] = {}

    def clock(self) -> float:
        """Simulated seconds since the host began."""
        return float(self._now)

    def start(self, arm: int) -> None:
        """A fresh server: a new luck of its start, a cold cache."""
        noise, luck = self._noise, float(self._rng.standard_normal()) * self._noise.restart
        if noise.bad_start_share and self._rng.random() < noise.bad_start_share:
            luck -= noise.bad_start_size
        self._starts[arm], self._age[arm] = luck, 0
        self._now += START_S

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Load that is thrown away."""
        del seed
        self._run(arm, self._warm_up_s)
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        del seed, name
        self._windows.setdefault(arm, []).append(self.window(arm))

    def window(self, arm: int) -> Window:
        """Return one window."""
        began = self._now
        transactions = self._run(arm, self._window_s)
        return Window(
            transactions=round(transactions),
            seconds=float(self._window_s),
            latency_sum_s=float(self._window_s),
            latency_max_s=1.0,
            histogram=_NO_LATENCIES,
            was_disturbed=self._noise.tells and any(self._stolen[began : self._now]),
        )

    def collect(self, arm: int) -> list[Window]:
        """Return the windows since the last time."""
        return self._windows.pop(arm)

    def counted(self, arm: int) -> Mapping[str, float]:
        """Return nothing."""
        del arm
        return {}

    def abandon(self) -> None:
        """Forget windows that nobody wants."""
        self._windows.clear()

    def stop_all(self) -> None:
        """Nothing: the time of stopping is in START_S."""

    def _run(self, arm: int, seconds: int) -> float:
        level = self._starts[arm] + self._effects[arm]
        total = 0.0
        for _ in range(seconds):
            cold = self._noise.warm_up * math.exp(-self._age[arm] / self._noise.warm_up_s)
            total += math.exp(self._speed[self._now] + self._white[self._now] + level - cold)
            self._age[arm] += 1
            self._now += 1
        return total * _BASE_TPS


class SimulatedSite:
    """A site whose every context is measured on one simulated host, ready as it is."""

    def __init__(self, machine: SimulatedHost) -> None:
        self._machine = machine

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Nothing to load and nothing to try."""
        del known
        design = context.comparison.design
        return Preparation(design=design, arms=(), differences=(), writes=True, connect_allowance_s=0)

    def apparatus(self, context: Context) -> SimulatedHost:
        """The host."""
        del context
        return self._machine

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Never."""
        del one, other
        return False


def _environment(rng: np.random.Generator, noise: Noise, seconds: int) -> np.ndarray:
    """Log-speed of the host for each second, without the white noise."""
    keep = math.exp(-1 / noise.drift_s)
    first = rng.standard_normal() * noise.drift
    steps = rng.standard_normal(seconds) * noise.drift * math.sqrt(1 - keep**2)
    drift, _ = lfilter([1], [1, -keep], steps, zi=np.array([keep * first]))
    bursts = _spells(rng, noise.burst_share, noise.burst_s, seconds)
    trend = noise.trend * np.minimum(np.arange(seconds) / _TREND_S, 1)
    return np.asarray(drift + trend + math.log(1 - noise.burst_size) * bursts)


def _spells(rng: np.random.Generator, share: float, mean_s: float, seconds: int) -> np.ndarray:
    """1 in spells of geometric length, that fill this share of the time; 0 between them."""
    leave = 1 / mean_s
    enter = leave * share / (1 - share)
    state = bool(rng.random() < share)
    result = np.zeros(seconds)
    at = 0
    while at < seconds:
        spell = int(rng.geometric(leave if state else enter))
        result[at : at + spell] = state
        at, state = at + spell, not state
    return result
