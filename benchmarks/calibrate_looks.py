"""Compute the nominal levels behind every sequential interval, by Monte Carlo: `make bench-looks`.

A study looks at its interval after block 4, 5, ... up to a cap, and may stop at any look. The level of a single look,
p*, must be so small that the probability that ANY of these looks misses the truth is alpha. The t statistics of
Gaussian log-ratios do not depend on their mean or variance, so simulation gives p* to any precision: it is the
alpha-quantile of the smallest p-value along the way.

Prints the table of src/pgversus/stats/confidence.py, and its standard errors.
"""

import argparse

import numpy as np
from scipy.special import stdtr

FIRST_LOOK = 4
CAPS = (10, 20, 30, 50, 100)
COMPARISONS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50)
ALPHA = 0.05
CHUNK = 20_000


def smallest_p_values(rng: np.random.Generator, studies: int) -> dict[int, np.ndarray]:
    """Return, for each cap, the smallest two-sided p-value of each sequence up to the cap, shape (studies,)."""
    x = rng.standard_normal((studies, max(CAPS)))
    n = np.arange(1, max(CAPS) + 1)
    total, squares = np.cumsum(x, axis=1), np.cumsum(x * x, axis=1)
    smallest = np.ones(studies)
    result = {}
    for look in range(FIRST_LOOK, max(CAPS) + 1):
        mean = total[:, look - 1] / look
        variance = (squares[:, look - 1] - look * mean**2) / (look - 1)
        t = np.abs(mean) / np.sqrt(variance / look)
        smallest = np.minimum(smallest, 2 * stdtr(n[look - 1] - 1, -t))
        if look in CAPS:
            result[look] = smallest.copy()
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=4_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    chunks = [smallest_p_values(rng, CHUNK) for _ in range(arguments.studies // CHUNK)]
    print(f"{arguments.studies} sequences, first look at {FIRST_LOOK} blocks; rows: comparisons, columns: cap")
    print("k    " + "".join(f"{cap:>12}" for cap in CAPS) + "   standard error at the largest cap")
    by_cap = {cap: np.concatenate([chunk[cap] for chunk in chunks]) for cap in CAPS}
    for k in COMPARISONS:
        alpha = ALPHA / k
        levels = [float(np.quantile(by_cap[cap], alpha)) for cap in CAPS]
        # Error of a quantile: sqrt(alpha (1 - alpha) / N) over the density, estimated from a neighboring quantile.
        spread = float(np.quantile(by_cap[CAPS[-1]], alpha * 1.05)) - levels[-1]
        error = np.sqrt(alpha / arguments.studies) * spread / (alpha * 0.05)
        print(f"{k:<5}" + "".join(f"{level:12.3g}" for level in levels) + f"   {error:.1g}")


if __name__ == "__main__":
    main()
