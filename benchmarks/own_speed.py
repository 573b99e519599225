"""Measure the speed of pgversus itself: start-up, log parsing, looks. `make bench`.

Each row takes turns with a yardstick in the same run. Quote the ratio.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.simulated_study import simulate
from pgversus.workload.pgbench_log import read_latencies

TRANSACTIONS = 1_000_000
REPEATS = 7


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        log = _write_log(Path(directory) / "log.1")
        rows = [
            (
                "pgversus --help",
                _command("-m", "pgversus.cli.main", "--help"),
                "python -c pass",
                _command("-c", "pass"),
            ),
            (
                "read a log of 1,000,000",
                lambda: read_latencies([log], is_open_loop=False),
                "count its lines",
                lambda: _count(log),
            ),
            (
                "40 looks, simulated",
                lambda: simulate("rough", (1.0,), 1, 40),
                "import numpy",
                _command("-c", "import numpy"),
            ),
        ]
        print(f"{'action':<28}{'s':>8}   {'yardstick':<18}{'s':>8}{'ratio':>8}    medians of {REPEATS}, in turn")
        for name, action, yardstick_name, yardstick in rows:
            ours, theirs = _in_turn(action, yardstick)
            print(f"{name:<28}{ours:>8.3f}   {yardstick_name:<18}{theirs:>8.3f}{ours / theirs:>8.2g}")


def _in_turn(action: Callable[[], object], yardstick: Callable[[], object]) -> tuple[float, float]:
    action(), yardstick()
    times = [(_timed(action), _timed(yardstick)) for _ in range(REPEATS)]
    return median(a for a, _ in times), median(b for _, b in times)


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def _count(file: Path) -> int:
    with file.open() as lines:
        return sum(1 for _ in lines)


def _write_log(file: Path) -> Path:
    rng = np.random.default_rng(1)
    latencies = rng.lognormal(6, 1, TRANSACTIONS).astype(int)
    with file.open("w") as out:
        out.writelines(f"{i % 4} {i // 4} {latency} 0 1763750000 {i % 10**6}\n" for i, latency in enumerate(latencies))
    return file


if __name__ == "__main__":
    main()
