"""Simulate the error rates of everything that is judged or shown with an interval: `make bench-error-rates`.

benchmarks/calibration.py does this for throughput. Here the real engine judges percentiles, times of operations, cold
caches, servers by URI and attributions, and throughput on a host that is always busy. Each row has a kind of load, a
host and a true effect on the speed: with +5 %, latencies and times are divided by 1.05. *wrong* is the share of studies
that claim a difference where none exists, or one of the wrong sign. *covered* is the share in which the interval at the
stop included the truth.
"""

import argparse
import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

from benchmarks.calibration import judged_cells, most_by_chance
from benchmarks.simulated_host import SimulatedHost
from benchmarks.simulated_loads import (
    CLIENTS,
    OPERATION_S,
    RATE_TPS,
    ColdCache,
    Latencies,
    Rate,
    RunningServers,
    TimedOperation,
)
from benchmarks.simulated_study import DESIGNS, FAST_READS, NEVER_S, Outcome, finished_context, simulate
from pgversus.stats.analysis import analyze
from pgversus.stats.attribution import Attribution, BoundedValue, attribution
from pgversus.study.counterfactual import BASELINE_AGAIN
from pgversus.study.design import Design
from pgversus.study.metrics import MARGINS, Metric
from pgversus.study.windows import FirstLoad, fit_operation, fit_windows

_AT_RATE = replace(FAST_READS, latency_s=0.001, latency_p99_s=0.005, rate=RATE_TPS)
_COLD = replace(FAST_READS, latency_s=0.05, latency_p99_s=0.2, is_cold=True)
_EXTERNAL = replace(FAST_READS, may_pause=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of result: a verdict, or a number with an interval."""

    design: Design
    host_type: type[SimulatedHost] = SimulatedHost
    truths: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"cloud": (1.0, 1.05), "rough": (1.0,)})
    """The true effects to simulate, by host."""
    shown: Metric | None = None
    """The metric whose interval is checked; None for that of the verdict."""


def _judging(metric: Metric) -> Design:
    return Design(metric=metric, margin=MARGINS[metric], budget_s=NEVER_S)


def _fitted(design: Design, load: FirstLoad) -> Design:
    return fit_windows(design, load, arms=2, contexts=1)


KINDS: dict[str, Kind] = {
    "p50": Kind(design=_fitted(_judging(Metric.LATENCY_P50), FAST_READS), host_type=Latencies),
    "p95": Kind(design=_fitted(_judging(Metric.LATENCY_P95), FAST_READS), host_type=Latencies),
    "p95 at a rate": Kind(design=_fitted(_judging(Metric.LATENCY_P95), _AT_RATE), host_type=Rate),
    "p99, shown": Kind(design=DESIGNS["short"], host_type=Latencies, shown=Metric.LATENCY_P99),
    "operation": Kind(design=fit_operation(_judging(Metric.TIME), slowest_s=OPERATION_S), host_type=TimedOperation),
    "cold cache": Kind(design=_fitted(_judging(Metric.TPS), _COLD), host_type=ColdCache),
    "by URI": Kind(design=_fitted(_judging(Metric.TPS), _EXTERNAL), host_type=RunningServers),
    "busy, short": Kind(design=DESIGNS["short"], truths={"swamped": (1.0, 1.05)}),
    "busy, long": Kind(design=DESIGNS["long"], truths={"swamped": (1.0, 1.05)}),
}
ATTRIBUTED: dict[str, tuple[float, float]] = {
    "no difference": (1.0, 1.0),
    "plans x2": (2.0, 1.0),
    "plans +20 %, rest +5 %": (1.2, 1.05),
    "plans +10 %, rest -5 %": (1.1, 0.95),
    "rest +10 %": (1.0, 1.1),
}
"""True factors of the speed: from plan changes, and from other changes."""
_BLOCKS_OF_ATTRIBUTIONS = (4, 8)


def main() -> None:
    """Print the tables; exit with 1 if an error rate exceeds the promise by more than chance allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="for each row; default 2000")
    parser.add_argument("--max-blocks", type=int, default=60, help="default 60")
    parser.add_argument("--seed", type=int, default=1, help="first seed; default 1")
    parser.add_argument("--kind", action="append", choices=[*KINDS, "attribution"], help="repeatable; default all")
    arguments = parser.parse_args()
    began = time.monotonic()
    print(f"{arguments.studies} studies a row, at most {arguments.max_blocks} blocks; shares in percent")
    seeds = range(arguments.seed, arguments.seed + arguments.studies)
    kinds = arguments.kind or [*KINDS, "attribution"]
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        broken = _print_judged(pool, [kind for kind in kinds if kind in KINDS], seeds, arguments.max_blocks)
        if "attribution" in kinds:
            broken = _print_attributions(pool, seeds) or broken
    print(f"done in {time.monotonic() - began:.0f} s")
    if broken:
        raise SystemExit(1)


def _print_judged(pool: Executor, kinds: Sequence[str], seeds: range, max_blocks: int) -> bool:
    """Print a row for each kind, host and effect; return whether an error rate breaks the promise."""
    print(
        f"{'load':<15}{'host':<9}{'truth':<8}{'faster':>8}{'slower':>8}{'equal':>8}{'undec.':>8}{'wrong':>8}"
        f"{'covered':>9}{'blocks':>8}{'wall s':>8}",
        flush=True,
    )
    broken = False
    for name in kinds:
        kind = KINDS[name]
        for host, effects in kind.truths.items():
            for effect in effects:
                outcomes = list(pool.map(partial(_study, name, host, effect, max_blocks), seeds, chunksize=25))
                broken = _print_row(f"{name:<15}{host:<9}", effect, outcomes) or broken
    return broken


def _study(name: str, host: str, effect: float, max_blocks: int, seed: int) -> Outcome:
    kind = KINDS[name]
    return simulate(host, (effect,), seed, max_blocks, design=kind.design, host_type=kind.host_type, shown=kind.shown)


def _print_row(name: str, effect: float, outcomes: Sequence[Outcome]) -> bool:
    cells, is_broken = judged_cells(outcomes, (effect,))
    truth = "A/A" if effect == 1.0 else f"+{100 * (effect - 1):.0f} %"
    print(
        f"{name}{truth:<8}{cells}{fmean(o.blocks for o in outcomes):8.1f}{fmean(o.wall_s for o in outcomes):8.0f}",
        flush=True,
    )
    return is_broken


def _print_attributions(pool: Executor, seeds: range) -> bool:
    """Print how often all intervals of an attribution are right; return whether that breaks the promise."""
    print(f"\n{'attribution':<24}{'host':<9}{'blocks':>7}{'covered':>9}{'share known':>13}{'its width':>11}")
    broken = False
    for name, truths in ATTRIBUTED.items():
        for host in ("cloud", "rough"):
            for blocks in _BLOCKS_OF_ATTRIBUTIONS:
                found = list(pool.map(partial(attributed, name, host, blocks), seeds, chunksize=25))
                covered = fmean(holds(one, *truths) for one in found)
                widths = sorted(one.share.high - one.share.low for one in found if one.share is not None)
                width = f"{100 * widths[len(widths) // 2]:9.0f} %" if widths else f"{'-':>11}"
                print(
                    f"{name:<24}{host:<9}{blocks:>7}{100 * covered:9.1f}{100 * len(widths) / len(found):13.1f}{width}",
                    flush=True,
                )
                broken = 1 - covered > most_by_chance(len(found)) or broken
    return broken


def attributed(name: str, host: str, blocks: int, seed: int) -> Attribution:
    """Measure three arms: the contender with the old plans, the baseline, and the contender."""
    plans, rest = ATTRIBUTED[name]
    ratios = (1 / rest, plans)
    assert BASELINE_AGAIN == 1
    state = finished_context(host, ratios, replace(DESIGNS["short"], fixed_blocks=blocks), seed)
    found = attribution(analyze(state.samples, state.comparison, state.rule), CLIENTS)
    assert found is not None
    return found


def holds(found: Attribution, plans: float, rest: float) -> bool:
    """Return whether every interval of an attribution includes its true value."""
    parts = [(found.plans, plans), (found.rest, rest), (found.whole, plans * rest)]
    if found.share is not None and plans * rest != 1:
        parts.append((found.share, math.log(plans) / math.log(plans * rest)))
    return all(_includes(part, truth) for part, truth in parts)


def _includes(part: BoundedValue, truth: float) -> bool:
    # Rounding errors of exp and log must not affect the result.
    return part.low <= truth * (1 + 1e-9) and part.high >= truth * (1 - 1e-9)


if __name__ == "__main__":
    main()
