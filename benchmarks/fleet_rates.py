"""Simulate the error rates of verdicts over the hosts of a fleet: `make bench-fleet-rates`.

The real engine measures one comparison on three hosts at once, which may differ in noise and in the true effect.
*wrong* is the share of verdicts that contradict the mean effect over the hosts, each weighted by its number of blocks.
*wrong somewhere* is the share of verdicts that contradict the effect on at least one host: it is zero or has the other
sign, or it exceeds the margin although the verdict is equivalent. *covered* is the share of studies in which the
interval at the stop included the mean.
"""

import argparse
import math
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.simulated_fleet import SimulatedFleet
from benchmarks.simulated_host import HOSTS, SimulatedHost, SimulatedSite
from benchmarks.simulated_study import DESIGNS, NEVER_S, SERVER, WORKLOAD
from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_contexts
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.study import Context

_MOST_BLOCKS = 60
_ALIKE = ("cloud", "cloud", "cloud")
_UNLIKE = ("quiet", "cloud", "rough")
CASES: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "no effect, hosts alike": (_ALIKE, (1.0, 1.0, 1.0)),
    "no effect, noise differs": (_UNLIKE, (1.0, 1.0, 1.0)),
    "+5 %, noise differs": (_UNLIKE, (1.05, 1.05, 1.05)),
    "+8, +5, +2 %": (_ALIKE, (1.08, 1.05, 1.02)),
    "+3, 0, -3 %": (_ALIKE, (1.03, 1.0, 0.97)),
    "+3, 0, -3 %, noise differs": (_UNLIKE, (1.03, 1.0, 0.97)),
    "+10, +10, -10 %": (_ALIKE, (1.1, 1.1, 0.9)),
}
"""For each case, the profiles of the hosts, and the true ratio on each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The verdict of one study, and whether it is wrong."""

    verdict: Verdict
    is_wrong: bool
    is_wrong_somewhere: bool
    is_covered: bool
    blocks: int


def simulate(case: str, seed: int) -> Rates:
    """Return the outcome of one study."""
    profiles, ratios = CASES[case]
    design = replace(DESIGNS["short"], seed=seed, max_blocks=_MOST_BLOCKS)
    arms = tuple(
        Arm(index=index, label=str(index), server=SERVER, settings=(), workload=WORKLOAD, dataset=Dataset())
        for index in (0, 1)
    )
    comparison = Comparison(arms=arms, factors=("server",), design=design)
    machines = [
        SimulatedHost(HOSTS[profile], {0: 1.0, 1: ratio}, design, seed=(seed, number))
        for number, (profile, ratio) in enumerate(zip(profiles, ratios, strict=True))
    ]
    names = [f"db{number}" for number in range(1, len(machines) + 1)]
    fleet = SimulatedFleet(
        {name: (SimulatedSite(machine), machine.clock) for name, machine in zip(names, machines, strict=True)}
    )
    state = ContextState(Context(number=1, levels=(), comparison=comparison), 1)
    run_contexts(
        [state],
        fleet,
        seed=seed,
        budget_s=NEVER_S,
        progress=Progress(),
        keep=lambda _state, _block: None,
        keep_preparation=lambda _state: None,
    )
    found = state.interim_results[1]
    truths = dict(zip(names, map(math.log, ratios), strict=True))
    weights = Counter(block.host for block in state.blocks if block.has(0, 1))
    mean = sum(truths[name] * blocks for name, blocks in weights.items()) / weights.total()
    return Rates(
        verdict=found.verdict,
        is_wrong=_contradicts(found.verdict, mean, design.log_margin),
        is_wrong_somewhere=any(_contradicts(found.verdict, truth, design.log_margin) for truth in truths.values()),
        is_covered=found.interval.low <= mean <= found.interval.high,
        blocks=len(state.blocks),
    )


def _contradicts(verdict: Verdict, truth: float, margin: float) -> bool:
    """Return whether a verdict contradicts this effect. Without an effect, any claimed difference is wrong."""
    match verdict:
        case Verdict.FASTER:
            return truth <= 0
        case Verdict.SLOWER:
            return truth >= 0
        case Verdict.EQUIVALENT:
            return abs(truth) > margin
        case _:
            return False


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000, help="for each row; default 2000")
    arguments = parser.parse_args()
    print(f"{arguments.studies} studies in each row, three hosts, margin 2 %, at most {_MOST_BLOCKS} blocks")
    print(
        f"{'true effects':<30}{'wrong':>9}{'wrong somewhere':>17}{'covered':>10}"
        f"{'faster':>9}{'slower':>9}{'equivalent':>12}{'undecided':>11}{'blocks':>8}"
    )
    with ProcessPoolExecutor(os.cpu_count()) as executor:
        for case in CASES:
            found = list(executor.map(partial(simulate, case), range(arguments.studies), chunksize=20))
            verdicts = Counter(one.verdict for one in found)
            shares = [
                sum(one.is_wrong for one in found),
                sum(one.is_wrong_somewhere for one in found),
                sum(one.is_covered for one in found),
                *(verdicts[verdict] for verdict in (Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT)),
                verdicts[Verdict.UNDECIDED],
            ]
            wrong, somewhere, covered, *others = (f"{100 * share / len(found):.1f} %" for share in shares)
            faster, slower, equivalent, undecided = others
            blocks = sum(one.blocks for one in found) / len(found)
            print(
                f"{case:<30}{wrong:>9}{somewhere:>17}{covered:>10}"
                f"{faster:>9}{slower:>9}{equivalent:>12}{undecided:>11}{blocks:>8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
