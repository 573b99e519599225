"""Measure the noise of a host by window length: `make bench-noise`.

A loop of about 2 ms of pure processor work runs for 80 s, without PostgreSQL. Its single record is cut into windows of
0.01 s to 2 s. White noise would shrink with the square root of the window; flicker noise stays or grows. The host must
be idle.

With `--simulated` it prints the same figures for each simulated host, next to those of the real guest to which they
were fitted (docs/statistics.md, "The simulated hosts"). This measures nothing and takes 10 s.
"""

import argparse
import math

import numpy as np

from benchmarks.simulated_host import HOSTS, HostSpeed
from pgversus.host.noise import Floats, quad_ratios, record_loops, window_speeds

WINDOWS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
LOAD_S = 8.0
"""The standard error is shown after this load of each arm."""
FITTED_NEIGHBORS = (0.080, 0.086, 0.098, 0.112, 0.134, 0.162, 0.165, 0.205)
FITTED_QUADS = (0.060, 0.067, 0.073, 0.078, 0.099, 0.130, 0.135, 0.196)
"""Standard deviations measured on two cores of a shared cloud guest (AMD EPYC), for each of WINDOWS_S."""
_RECORD_S = 80.0
_SIMULATED_RECORDS = 100


def main() -> None:
    """Print the table of this host, or of the simulated ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=_RECORD_S, help="length of the record; default 80")
    parser.add_argument("--simulated", action="store_true", help="show the simulated hosts instead of this one")
    arguments = parser.parse_args()
    if arguments.simulated:
        _print_simulated(arguments.seconds)
    else:
        _print_measured(arguments.seconds)


def neighbor_ratios(speeds: Floats) -> Floats:
    """Return the log ratio of each window to the one before it."""
    return np.diff(np.log(speeds))


def error_after_load(quad: float, window_s: float) -> float:
    """Return the standard error of a mean of quads after LOAD_S of each arm. quad: standard deviation of one quad."""
    return quad / math.sqrt(LOAD_S / (2 * window_s))


def _print_measured(seconds: float) -> None:
    ends = record_loops(seconds)
    work = np.arange(len(ends), dtype=np.float64)
    print(f"{len(ends) - 1} passes of {1000 * np.median(np.diff(ends)):.1f} ms in {ends[-1] - ends[0]:.0f} s")
    print("standard deviation of the log ratio of two windows, and standard error of a mean of quads")
    print(f"{'window s':>8}{'neighbors':>12}{'quads':>8}{f'error after {LOAD_S:g} s for each arm, %':>36}")
    for window_s in WINDOWS_S:
        speeds = window_speeds(ends, work, window_s)
        if len(speeds) < 5:
            print(f"{window_s:>8g}  the record is too short")
            continue
        quad = float(np.std(quad_ratios(speeds)))
        neighbors = float(np.std(neighbor_ratios(speeds)))
        print(f"{window_s:>8g}{neighbors:>12.3f}{quad:>8.3f}{100 * error_after_load(quad, window_s):>36.1f}")


def _print_simulated(seconds: float) -> None:
    deviations = {name: _simulated(name, seconds) for name in HOSTS}
    tables = (
        ("neighboring windows: standard deviation of the log ratio", FITTED_NEIGHBORS, 0),
        ("quads: standard deviation of the log ratio", FITTED_QUADS, 1),
    )
    for title, fitted, column in tables:
        print(title)
        print(f"{'window s':>8}{'measured':>10}" + "".join(f"{name:>9}" for name in HOSTS))
        for row, window_s in enumerate(WINDOWS_S):
            shown = "".join(f"{deviations[name][row, column]:>9.3f}" for name in HOSTS)
            print(f"{window_s:>8g}{fitted[row]:>10.3f}{shown}")
    print(f"quads: standard error after {LOAD_S:g} s for each arm, %")
    print(f"{'window s':>8}{'measured':>10}" + "".join(f"{name:>9}" for name in HOSTS))
    for row, window_s in enumerate(WINDOWS_S):
        quads = (FITTED_QUADS[row], *(float(deviations[name][row, 1]) for name in HOSTS))
        errors = [100 * error_after_load(quad, window_s) for quad in quads]
        print(f"{window_s:>8g}{errors[0]:>10.1f}" + "".join(f"{error:>9.1f}" for error in errors[1:]))


def _simulated(name: str, seconds: float) -> Floats:
    """Return the standard deviations of neighbors and quads over many records of a host, shape (windows, 2)."""
    variances = np.zeros((len(WINDOWS_S), 2))
    for seed in range(_SIMULATED_RECORDS):
        times, work = HostSpeed(np.random.default_rng([seed, 1]), HOSTS[name]).record(seconds)
        for row, window_s in enumerate(WINDOWS_S):
            speeds = window_speeds(times, work, window_s)
            variances[row] += np.var(neighbor_ratios(speeds)), np.var(quad_ratios(speeds))
    return np.sqrt(variances / _SIMULATED_RECORDS)


if __name__ == "__main__":
    main()
