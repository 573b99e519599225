"""Simulate how often the interval of the quotient of two ratios misses the truth, by Monte Carlo.

`python -m benchmarks.quotients`. Two runs stop independently, each after a look of its choice. The half width for their
quotient is the root of the sum of the squares of their half widths (report/side_by_side/agreement.py). No theorem
covers runs that stop at will, so this simulation tests the method. Some of its runs stop on purpose as soon as they are
wrong by most of their interval.
"""

import argparse

import numpy as np
from scipy.special import stdtrit

from pgversus.stats.confidence import sequential_alpha
from pgversus.study.design import FIRST_LOOK

CAP = 100
MARGIN = 0.5
# In standard deviations of a block.
WAYS = ("decided", "as wrong as 0.7 of the interval", "as wrong as 0.9 of the interval", "6 blocks", "60 blocks")
PAIRS = ((0, 0), (1, 1), (2, 2), (1, 3), (3, 3), (3, 4))
EFFECTS = (0.0, 0.8)
VERDICTS = (1, 4, 20)


def stopped(
    rng: np.random.Generator, way: int, *, effect: float, spread: float, level: float, runs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the error of each run at its stop and the half width of its interval there, shapes (runs,)."""
    n = np.arange(1, CAP + 1)
    x = rng.normal(effect, spread, (runs, CAP))
    mean = np.cumsum(x, axis=1) / n
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (np.cumsum(x * x, axis=1) - n * mean**2) / (n - 1)
    half = np.full_like(mean, np.inf)
    looks = n[FIRST_LOOK - 1 :]
    half[:, FIRST_LOOK - 1 :] = stdtrit(looks - 1, 1 - level / 2) * np.sqrt(variance[:, FIRST_LOOK - 1 :] / looks)
    stops = {
        0: (np.abs(mean) > half) | (np.abs(mean) + half < MARGIN * spread),
        1: np.abs(mean - effect) > 0.7 * half,
        2: np.abs(mean - effect) > 0.9 * half,
        3: np.broadcast_to(n == 6, mean.shape),
        4: np.broadcast_to(n == 60, mean.shape),
    }[way]
    last = np.where(stops.any(axis=1), stops.argmax(axis=1), CAP - 1)
    rows = np.arange(runs)
    return mean[rows, last] - effect, half[rows, last]


def main() -> None:
    """Print a row for each pair of stopping rules: the misses of all verdicts together, in percent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print(f"{arguments.runs} pairs of runs per number; misses in percent, the worse of no and a large effect")
    print(f"{'A stops':34}{'B stops':34}" + "".join(f"{number:>4} verdicts" for number in VERDICTS))
    for a, b in PAIRS:
        cells = []
        for number in VERDICTS:
            level, missed = sequential_alpha(CAP, number), []
            for effect in EFFECTS:
                wrong_a, half_a = stopped(rng, a, effect=effect, spread=1.0, level=level, runs=arguments.runs)
                wrong_b, half_b = stopped(rng, b, effect=effect, spread=2.0, level=level, runs=arguments.runs)
                missed.append(number * np.mean(np.abs(wrong_a - wrong_b) > np.hypot(half_a, half_b)))
            cells.append(f"{100 * max(missed):13.2f}")
        print(f"{WAYS[a]:34}{WAYS[b]:34}" + "".join(cells))


if __name__ == "__main__":
    main()
