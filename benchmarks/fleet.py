"""Simulate a fleet of hosts: its wall time, the ratios that it finds, and the cost for its driver: `make bench-fleet`.

The first table compares the same study on one host and on several: the simulated wall time, and the ratio found in each
context. The true ratio is the same on all hosts. The second part runs ten thousand blocks on a hundred hosts, of which
one in a hundred is lost in each hour of their time, and shows the driver's memory and processor time per block.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from random import Random
from typing import Any

import numpy as np
import psutil

from benchmarks.simulated_fleet import SimulatedFleet
from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_contexts
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, LatencyHistogram, Window
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design
from pgversus.study.servers import LocalPath
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload, Script

_START_S, _WINDOW_S, _ROUNDS = 1.5, 1.0, 8
_LATENCIES = LatencyHistogram.from_microseconds(np.array([1000, 1100, 1200]))
_TRUE_RATIO = 1.05
_HOUR_S = 3600.0


class QuickHost:
    """A host whose windows have a given noise, and whose starts take a while: a testbed and its trial runner in one."""

    def __init__(self, seed: int, noise: float) -> None:
        self._rng = np.random.default_rng(seed)
        self._noise = noise
        self._windows: dict[int, list[Window]] = {}
        self._seconds = 0.0
        self._level = 0.0

    def clock(self) -> float:
        """Return the host's time."""
        return self._seconds

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Do nothing: a simulated host has no data."""

    def preparing(self) -> nullcontext[None]:
        """Return a context manager that does nothing."""
        return nullcontext()

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        """Return the design unchanged."""
        self._seconds += 10 * _START_S
        design = context.comparison.design
        return known or Preparation(design=design, arms=(), differences=(), writes=False, connect_allowance_s=0)

    def trial_runner(self, context: Context) -> "QuickHost":
        """Return itself."""
        del context
        return self

    def failures(self, context: Context, arm: int) -> nullcontext[None]:
        """Return a context manager that passes on all failures."""
        del context, arm
        return self.preparing()

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return False."""
        del one, other
        return False

    def start(self, arm: int) -> None:
        """Take the time of a start."""
        del arm
        self._seconds += _START_S
        self._level = float(self._rng.normal(0, self._noise))

    def warm_up(self, arm: int, seed: int) -> dict[str, float]:
        """Take the time of a window."""
        del arm, seed
        self._seconds += _WINDOW_S
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Add a window; the contender is faster by the true ratio."""
        del seed, name
        self._seconds += _WINDOW_S
        tps = 1000.0 * (_TRUE_RATIO if arm else 1.0) * float(np.exp(self._level * arm))
        window = Window(
            transactions=round(tps * float(np.exp(self._rng.normal(0, self._noise)))),
            seconds=_WINDOW_S,
            latency_sum_s=1.0,
            latency_max_s=0.01,
            histogram=_LATENCIES,
        )
        self._windows.setdefault(arm, []).append(window)

    def collect(self, arm: int) -> list[Window]:
        """Return the windows of an arm."""
        return self._windows.pop(arm)

    def counted(self, arm: int, transactions: int) -> dict[str, float]:
        """Return no counters."""
        del arm, transactions
        return {}

    def abandon(self) -> None:
        """Forget open windows."""
        self._windows.clear()

    def stop_all(self) -> None:
        """Take the time of a stop."""
        self._seconds += _START_S


def main() -> None:
    """Print both tables."""
    print(f"30 blocks in each of 4 contexts, contender {_TRUE_RATIO}x as fast")
    print(f"{'hosts':>6}{'wall':>10}{'ratios found':>40}")
    for hosts in (1, 3, 10):
        fleet = _fleet(hosts)
        states = _states(4, blocks=30)
        _run(states, fleet)
        points = (state.interim_results[1].log_ratio for state in states)
        found = "  ".join(f"{np.exp(point.point):.4f}" for point in points if point is not None)
        print(f"{hosts:>6}{fleet.wall_s / 60:>6.1f} min{found:>40}")
    _print_scale()


def _print_scale() -> None:
    lost = Random(5)  # noqa: S311 - a simulation
    task_s = 2 * (2 * _START_S + _WINDOW_S + _ROUNDS * _WINDOW_S)
    fleet = _fleet(100, is_lost=lambda _: lost.random() < 0.01 * task_s / _HOUR_S / 2)
    states = _states(100, blocks=100)
    process = psutil.Process()
    before = process.memory_info().rss
    began = time.process_time()
    kept = _run(states, fleet)
    seconds, memory = time.process_time() - began, process.memory_info().rss - before
    twice = [block for block, times in kept.items() if times > 1]
    print(f"\n{len(kept)} blocks on 100 hosts, {fleet.losses} hosts lost, {len(fleet.measured)} blocks measured")
    print(f"counted twice: {len(twice)}; missing: {100 * 100 - len(kept)}")
    print(
        f"driver and simulation: {1000 * seconds / len(kept):.1f} ms of CPU, {memory / len(kept) / 1000:.1f} kB a block"
    )


def _fleet(number: int, **options: Any) -> SimulatedFleet:
    noises = (0.005, 0.01, 0.02)
    hosts = [QuickHost(seed, noises[seed % len(noises)]) for seed in range(number)]
    return SimulatedFleet({f"db{n}": (host, host.clock) for n, host in enumerate(hosts, 1)}, **options)


def _states(contexts: int, *, blocks: int) -> list[ContextState]:
    arms = tuple(
        Arm(
            index=index,
            label=str(index),
            server=LocalPath(path="/x"),
            settings=(),
            workload=PgbenchWorkload(scripts=(Script(name="select-only"),)),
            dataset=Dataset(),
        )
        for index in (0, 1)
    )
    design = Design(rounds=_ROUNDS, rounds_are_given=True, fixed_blocks=blocks, seed=1)
    comparison = Comparison(arms=arms, factors=("server",), design=design)
    return [
        ContextState(Context(number=number, levels=(), comparison=comparison), contexts)
        for number in range(1, contexts + 1)
    ]


def _run(states: list[ContextState], fleet: SimulatedFleet) -> Counter[tuple[int, int]]:
    """Run all contexts; return how often each block was counted."""
    kept: Counter[tuple[int, int]] = Counter()

    def keep(state: ContextState, block: Block) -> None:
        kept[state.context.number, block.number] += 1

    run_contexts(
        states,
        fleet,
        seed=1,
        budget_s=1e12,
        progress=Progress(),
        keep=keep,
        keep_preparation=lambda _: None,
    )
    return kept


if __name__ == "__main__":
    main()
