"""Simulate how often common methods call two identical servers different: `make bench-habits`.

The simulated hosts are those of calibration.py. Each habit is a common method of comparing two servers. Both servers
are equally fast, so every claimed difference is a false alarm. The last row is the engine's own rule with short windows
and one change: the servers are started once, not for every block.
"""

import argparse
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from scipy.stats import ttest_ind

from benchmarks.simulated_host import HOSTS, SimulatedHost
from benchmarks.simulated_study import simulate
from pgversus.stats.confidence import DIFFERENT
from pgversus.study.design import Design

Habit = Callable[[str, int], bool]
"""Takes a host and a seed; returns whether a difference was claimed."""
HOSTS_SHOWN = ("quiet", "cloud", "rough")
RUNS = 5
MAX_BLOCKS = 60
SIGNIFICANT = 0.05


class StartedOnce(SimulatedHost):
    """A host whose servers keep running: only the first start has an effect."""

    def start(self, arm: int) -> None:
        """Start the arm unless it is running."""
        if arm not in self._starts:
            super().start(arm)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, help="for each figure; default 1000")
    arguments = parser.parse_args()
    habits: tuple[tuple[str, Habit], ...] = (
        ("one run of 1 min each, more than 1 % apart", partial(_two_runs, 60, 0.01)),
        ("one run of 10 min each, more than 2 % apart", partial(_two_runs, 600, 0.02)),
        (f"{RUNS} runs of 1 min of A, then of B, Welch's t test", _welch),
        ("the rule of pgversus, but servers started once", _one_start),
    )
    print(f"identical servers called different, percent of {arguments.studies} studies")
    print(f"{'':<52}" + "".join(f"{host:>8}" for host in HOSTS_SHOWN))
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for name, habit in habits:
            row = []
            for host in HOSTS_SHOWN:
                claims = pool.map(partial(habit, host), range(arguments.studies), chunksize=25)
                row.append(100 * sum(claims) / arguments.studies)
            print(f"{name:<52}" + "".join(f"{share:8.1f}" for share in row), flush=True)


def _two_runs(seconds: int, limit: float, host: str, seed: int) -> bool:
    machine = _machine(host, seed, seconds)
    a, b = (_run(machine, arm) for arm in (0, 1))
    return abs(math.log(b / a)) > math.log1p(limit)


def _welch(host: str, seed: int) -> bool:
    machine = _machine(host, seed, 60)
    machine.start(0)
    a = [_measure(machine, 0) for _ in range(RUNS)]
    machine.start(1)
    b = [_measure(machine, 1) for _ in range(RUNS)]
    return bool(ttest_ind(np.log(a), np.log(b), equal_var=False).pvalue < SIGNIFICANT)


def _one_start(host: str, seed: int) -> bool:
    outcome = simulate(host, (1.0,), seed, MAX_BLOCKS, host_type=StartedOnce)
    return outcome.verdicts[0] in DIFFERENT


def _machine(host: str, seed: int, run_s: int) -> SimulatedHost:
    design = Design(window_s=float(run_s), rounds=1)
    return SimulatedHost(HOSTS[host], {0: 1.0, 1: 1.0}, design, seed=(seed, sorted(HOSTS).index(host)))


def _run(machine: SimulatedHost, arm: int) -> float:
    machine.start(arm)
    return _measure(machine, arm)


def _measure(machine: SimulatedHost, arm: int) -> float:
    """Return the throughput of one run, with sessions of its own."""
    machine.measure(arm, 0, "")
    return sum(window.transactions / window.seconds for window in machine.collect(arm))


if __name__ == "__main__":
    main()
