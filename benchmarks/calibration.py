"""Simulate false alarms, coverage and time to verdict of the whole engine: `make bench-calibration`.

The real engine runs every study with the real rule on a simulated host (simulated_host.py); only the clock and the load
are simulated. The truth is known, so every wrong claim can be counted. Prints one table for short windows and one for
long ones, with a row for each host and true effect. The A/A rows give the false-alarm rate. With --precision, it shows
instead how far estimates are from the truth if measuring stops at the verdict, and if it stops at this precision.
"""

import argparse
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from statistics import fmean, stdev

from benchmarks.simulated_host import HOSTS
from benchmarks.simulated_study import DESIGNS, Outcome, simulate
from pgversus.stats.confidence import DIFFERENT, Verdict

CASES: tuple[tuple[float, ...], ...] = ((1.0,), (1.01,), (1.03,), (1.10,))
FAMILY: tuple[float, ...] = (1.0, 1.0, 1.0)
BIAS_CASES = (1.0, 1.01, 1.02, 1.03)
REPEATS = ("stolen", "hidden")
"""Hosts that only serve to show the effect of repeating disturbed rounds; two rows are enough."""
PROMISE = 0.05


def main() -> None:
    """Print the tables; exit with 1 if an error rate exceeds the promise by more than chance allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, help="for each row; default 1000")
    parser.add_argument("--max-blocks", type=int, default=60, help="default 60")
    parser.add_argument("--seed", type=int, default=1, help="first seed; default 1")
    parser.add_argument("--host", action="append", choices=list(HOSTS), help="repeatable; default all")
    parser.add_argument("--windows", action="append", choices=list(DESIGNS), help="repeatable; default all")
    parser.add_argument("--precision", type=float, metavar="PERCENT", help="print the bias of estimates instead")
    arguments = parser.parse_args()
    began = time.monotonic()
    print(f"{arguments.studies} studies a row, at most {arguments.max_blocks} blocks, margin 2 %; shares in percent")
    seeds = range(arguments.seed, arguments.seed + arguments.studies)
    broken = False
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for windows in arguments.windows or DESIGNS:
            hosts = arguments.host or list(HOSTS)
            if arguments.precision:
                precision = arguments.precision / 100
                broken = _print_bias(pool, windows, hosts, seeds, arguments.max_blocks, precision) or broken
            else:
                broken = _print_table(pool, windows, hosts, seeds, arguments.max_blocks) or broken
    print(f"done in {time.monotonic() - began:.0f} s")
    if broken:
        raise SystemExit(1)


def _print_table(pool: Executor, windows: str, hosts: list[str], seeds: range, max_blocks: int) -> bool:
    """Print the table of one kind of windows; return whether an error rate breaks the promise."""
    design = DESIGNS[windows]
    print(
        f"\n{windows} windows: {design.rounds} of {design.window_s:g} s for each arm and block, "
        f"{design.rounds_per_session} in a session, warm-up of {design.warm_up_s:g} s"
    )
    print(
        f"{'host':<9}{'truth':<15}{'faster':>8}{'slower':>8}{'equal':>8}{'undec.':>8}{'wrong':>8}{'covered':>9}"
        f"{'blocks':>8}{'repeated':>10}{'measured s':>12}{'wall s':>8}"
    )
    broken = False
    for host in hosts:
        for truth in ((1.0,), (1.03,)) if host in REPEATS else (*CASES, FAMILY):
            outcomes = list(pool.map(partial(_study, host, truth, max_blocks, windows), seeds, chunksize=25))
            broken = _print_row(host, truth, outcomes) or broken
    return broken


def _print_bias(
    pool: Executor, windows: str, hosts: list[str], seeds: range, max_blocks: int, precision: float
) -> bool:
    """Print the mean estimates without and with a precision; return whether coverage breaks the promise."""
    print(
        f"\n{windows} windows\n{'host':<9}{'truth':<8}{'stop':<9}{'mean':>7}{'error':>7}{'claims':>8}{'their mean':>12}"
        f"{'covered':>9}{'always':>8}{'reached':>9}{'blocks':>8}{'wall s':>8}"
    )
    broken = False
    for host in hosts:
        for truth in BIAS_CASES:
            for stop, wanted in (("verdict", None), (f"±{100 * precision:g} %", precision)):
                study = partial(_study, host, (truth,), max_blocks, windows, precision=wanted)
                name = f"{host:<9}{f'{100 * (truth - 1):+.0f} %':<8}{stop:<9}"
                broken = _print_bias_row(name, precision, list(pool.map(study, seeds, chunksize=25))) or broken
    return broken


def _print_bias_row(name: str, precision: float, outcomes: list[Outcome]) -> bool:
    """Print the mean of all estimates, its standard error, and the mean of those that claim a difference."""
    n = len(outcomes)
    logs = [outcome.log_ratio for outcome in outcomes]
    claimed = [outcome.log_ratio for outcome in outcomes if outcome.verdicts[0] in DIFFERENT]
    always = fmean(outcome.covered_always for outcome in outcomes)
    reached = fmean(outcome.half_width <= math.log1p(precision) for outcome in outcomes)
    mean_of_claims = f"{100 * math.expm1(fmean(claimed)):+12.2f}" if claimed else f"{'-':>12}"
    print(
        f"{name}{100 * math.expm1(fmean(logs)):+7.2f}{100 * stdev(logs) / n**0.5:7.2f}{100 * len(claimed) / n:8.1f}"
        f"{mean_of_claims}{100 * fmean(o.covered for o in outcomes):9.1f}{100 * always:8.1f}{100 * reached:9.1f}"
        f"{fmean(o.blocks for o in outcomes):8.1f}{fmean(o.wall_s for o in outcomes):8.0f}",
        flush=True,
    )
    return 1 - always > most_by_chance(n)


def _study(
    host: str, truth: tuple[float, ...], max_blocks: int, windows: str, seed: int, precision: float | None = None
) -> Outcome:
    return simulate(host, truth, seed, max_blocks, design=DESIGNS[windows], precision=precision)


def _print_row(host: str, truth: tuple[float, ...], outcomes: list[Outcome]) -> bool:
    """Print one row; return whether wrong claims or missed truths exceed the promise by more than chance allows."""
    cells, is_broken = judged_cells(outcomes, truth)
    name = "A/A" if truth == (1.0,) else "A/A/A/A (any)" if len(truth) > 1 else f"+{100 * (truth[0] - 1):.0f} %"
    print(
        f"{host:<9}{name:<15}{cells}"
        f"{fmean(o.blocks for o in outcomes):8.1f}{fmean(o.repeated_rounds for o in outcomes):10.1f}"
        f"{fmean(o.measured_s for o in outcomes):12.0f}{fmean(o.wall_s for o in outcomes):8.0f}",
        flush=True,
    )
    return is_broken


def judged_cells(outcomes: Sequence[Outcome], truth: tuple[float, ...]) -> tuple[str, bool]:
    """Return verdicts, wrong claims and coverage in percent, as cells, and whether the last two break the promise."""
    n = len(outcomes)
    counts = Counter(outcome.verdicts[0] for outcome in outcomes)
    wrong = sum(_is_wrong(outcome, truth) for outcome in outcomes) / n
    covered = fmean(outcome.covered for outcome in outcomes)
    verdicts = (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.UNDECIDED)
    cells = "".join(f"{percent:8.1f}" for percent in (*(100 * counts[one] / n for one in verdicts), 100 * wrong))
    return f"{cells}{100 * covered:9.1f}", bool(wrong > most_by_chance(n) or 1 - covered > most_by_chance(n))


def most_by_chance(studies: int) -> float:
    """Return the largest share of errors that the promise and chance explain: three standard errors above it."""
    return float(PROMISE + 3 * (PROMISE * (1 - PROMISE) / studies) ** 0.5)


def _is_wrong(outcome: Outcome, truth: tuple[float, ...]) -> bool:
    """Return whether a study claims, for any contender, a difference that does not exist or has the other sign."""
    for verdict, ratio in zip(outcome.verdicts, truth, strict=True):
        if verdict is Verdict.FASTER and ratio <= 1:
            return True
        if verdict is Verdict.SLOWER and ratio >= 1:
            return True
    return False


if __name__ == "__main__":
    main()
