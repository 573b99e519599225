"""False alarms, coverage and time to verdict of the whole engine, simulated: `make bench-calibration`.

Every study is run by the real engine with the real rule on a simulated host (simulated_host.py): only the clock and
the load are not real. The truth is known, so that every wrong claim can be counted. Prints one row for each host and
true effect; the A/A rows are the false-alarm rate.
"""

import argparse
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean

from benchmarks.simulated_host import HOSTS
from benchmarks.simulated_study import Outcome, simulate
from pgversus.stats.verdict import Verdict

CASES: tuple[tuple[float, ...], ...] = ((1.0,), (1.01,), (1.03,), (1.10,))
FAMILY: tuple[float, ...] = (1.0, 1.0, 1.0)
PROMISE = 0.05


def main() -> None:
    """Print the table; exit with 1 when a promise is broken beyond what chance allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="for each row; default 2000")
    parser.add_argument("--max-blocks", type=int, default=60, help="default 60")
    parser.add_argument("--seed", type=int, default=1, help="first seed; default 1")
    parser.add_argument("--host", action="append", choices=list(HOSTS))
    arguments = parser.parse_args()
    began = time.monotonic()
    print(f"{arguments.studies} studies a row, at most {arguments.max_blocks} blocks, margin 2 %; shares in percent")
    print(
        f"{'host':<9}{'truth':<18}{'faster':>8}{'slower':>8}{'equal':>8}{'undec.':>8}{'wrong':>8}{'covered':>9}"
        f"{'blocks':>8}{'measured s':>12}{'wall s':>9}"
    )
    broken = False
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for host in arguments.host or HOSTS:
            for truth in (*CASES, FAMILY):
                run = partial(_study, host, truth, arguments.max_blocks)
                seeds = range(arguments.seed, arguments.seed + arguments.studies)
                outcomes = list(pool.map(run, seeds, chunksize=25))
                broken = _print_row(host, truth, outcomes) or broken
    print(f"done in {time.monotonic() - began:.0f} s")
    if broken:
        raise SystemExit(1)


def _study(host: str, truth: tuple[float, ...], max_blocks: int, seed: int) -> Outcome:
    return simulate(host, truth, seed, max_blocks)


def _print_row(host: str, truth: tuple[float, ...], outcomes: list[Outcome]) -> bool:
    n = len(outcomes)
    counts = Counter(outcome.verdicts[0] for outcome in outcomes)
    wrong = sum(_is_wrong(outcome, truth) for outcome in outcomes) / n
    shares = "".join(
        f"{100 * counts[verdict] / n:8.1f}"
        for verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.UNDECIDED)
    )
    name = "A/A" if truth == (1.0,) else "A/A/A/A (any)" if len(truth) > 1 else f"+{100 * (truth[0] - 1):.0f} %"
    print(
        f"{host:<9}{name:<18}{shares}{100 * wrong:8.1f}{100 * fmean(o.covered for o in outcomes):9.1f}"
        f"{fmean(o.blocks for o in outcomes):8.1f}{fmean(o.measured_s for o in outcomes):12.0f}"
        f"{fmean(o.wall_s for o in outcomes):9.0f}",
        flush=True,
    )
    standard_error = (PROMISE * (1 - PROMISE) / n) ** 0.5
    return bool(wrong > PROMISE + 3 * standard_error)


def _is_wrong(outcome: Outcome, truth: tuple[float, ...]) -> bool:
    """A difference where there is none, or a difference of the wrong sign, on any contender."""
    for verdict, ratio in zip(outcome.verdicts, truth, strict=True):
        if verdict is Verdict.FASTER and ratio <= 1:
            return True
        if verdict is Verdict.SLOWER and ratio >= 1:
            return True
    return False


if __name__ == "__main__":
    main()
