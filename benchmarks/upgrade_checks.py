"""Simulate checks of many statements: `make bench-upgrade-checks`.

The real engine screens every statement on a simulated host (simulated_host.py), the real rule selects the statements
that differ, and the real engine confirms them. On the host *mixed*, statements differ in noise: a third each have that
of quiet, cloud and rough. *wrong* is the share of checks that claim any difference where none exists or with the wrong
sign; *covered* is the share in which all intervals of the statements that were not selected included the truth; *found*
is the share of true differences that were confirmed.
"""

import argparse
import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from benchmarks.calibration import most_by_chance
from benchmarks.simulated_study import DESIGNS, finished_context
from pgversus.engine.context_state import ContextState
from pgversus.stats.analysis import interim_result
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.stats.effects import LogEstimate
from pgversus.stats.moderation import moderated, selected
from pgversus.study.application import confirmation, screening

_HOSTS = {"quiet": ("quiet",), "cloud": ("cloud",), "rough": ("rough",), "mixed": ("quiet", "cloud", "rough")}
_NUMBERS = (14, 60)
_PLANTED: tuple[tuple[float, ...], ...] = ((), (0.9, 1.1), (0.5, 2.0))
"""Speeds on the target, relative to the source, of the first statements; all others are equal."""
_SCREENING = screening(DESIGNS["short"])
_CONFIRMATION = replace(confirmation(DESIGNS["short"]), max_blocks=60, rounds=DESIGNS["short"].rounds)
_SEEDS_OF_CHECK = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one check."""

    is_wrong: bool
    is_covered: bool
    found: int
    selected: int
    seconds: float


def main() -> None:
    """Print the table; exit with 1 if an error rate exceeds the promise by more than chance allows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checks", type=int, default=500, help="for each row; default 500")
    arguments = parser.parse_args()
    print(f"{arguments.checks} checks a row; shares in percent")
    print(
        f"{'host':<8}{'statements':>11}{'planted':>14}{'wrong':>8}{'covered':>9}"
        f"{'found':>7}{'selected':>10}{'wall s':>8}"
    )
    is_broken = False
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for host in _HOSTS:
            for number in _NUMBERS:
                for planted in _PLANTED:
                    study = partial(check, host, number, planted)
                    outcomes = list(pool.map(study, range(1, arguments.checks + 1), chunksize=5))
                    is_broken = _print_row(host, number, planted, outcomes) or is_broken
    if is_broken:
        raise SystemExit(1)


def check(host: str, number: int, planted: Sequence[float], seed: int) -> Outcome:
    """Screen and confirm statements, the first of which have planted differences."""
    kinds = _HOSTS[host]
    hosts = [kinds[place % len(kinds)] for place in range(number)]
    truths = [*planted, *[1.0] * (number - len(planted))]
    first_seed = seed * _SEEDS_OF_CHECK
    screened = [
        finished_context(one, (truth,), _SCREENING, first_seed + place, others=number - 1)
        for place, (one, truth) in enumerate(zip(hosts, truths, strict=True))
    ]
    estimates = moderated([_estimate(state) for state in screened])
    chosen = [place for place, is_chosen in enumerate(selected(estimates)) if is_chosen]
    confirmed = {
        place: finished_context(
            hosts[place],
            (truths[place],),
            _CONFIRMATION,
            first_seed + number + place,
            others=len(chosen) - 1,
        )
        for place in chosen
    }
    verdicts = {place: _verdict(state) for place, state in confirmed.items()}
    intervals = {place: one.interval(number) for place, one in enumerate(estimates) if place not in confirmed}
    return Outcome(
        is_wrong=any(_is_wrong(verdict, truths[place]) for place, verdict in verdicts.items()),
        is_covered=all(one.low <= math.log(truths[place]) <= one.high for place, one in intervals.items()),
        found=sum(verdicts.get(place) in DIFFERENT for place in range(len(planted))),
        selected=len(chosen),
        seconds=sum(state.wall_s for state in (*screened, *confirmed.values())),
    )


def _estimate(state: ContextState) -> LogEstimate:
    found = interim_result(state.samples, state.comparison, state.rule, 1).log_ratio
    assert found is not None
    return found


def _verdict(state: ContextState) -> Verdict:
    return interim_result(state.samples, state.comparison, state.rule, 1).verdict


def _is_wrong(verdict: Verdict, truth: float) -> bool:
    return verdict in DIFFERENT and (truth == 1 or (verdict is Verdict.FASTER) != (truth > 1))


def _print_row(host: str, number: int, planted: Sequence[float], outcomes: Sequence[Outcome]) -> bool:
    """Print one row; return whether wrong claims or missed truths exceed the promise by more than chance allows."""
    n = len(outcomes)
    wrong, covered = fmean(one.is_wrong for one in outcomes), fmean(one.is_covered for one in outcomes)
    found = f"{100 * fmean(one.found for one in outcomes) / len(planted):7.1f}" if planted else f"{'-':>7}"
    name = " ".join(f"{100 * (truth - 1):+.0f} %" for truth in planted) or "none"
    print(
        f"{host:<8}{number:>11}{name:>14}{100 * wrong:8.1f}{100 * covered:9.1f}{found}"
        f"{fmean(one.selected for one in outcomes):10.1f}{fmean(one.seconds for one in outcomes):8.0f}",
        flush=True,
    )
    return wrong > most_by_chance(n) or 1 - covered > most_by_chance(n)


if __name__ == "__main__":
    main()
