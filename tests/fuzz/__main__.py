"""`python -m tests.fuzz`: read external inputs of every kind for the given time; exit code 1 if there are findings.

Target name and seed determine an input, so the output of a finding reproduces it.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping

from tests.fuzz.targets import TARGETS
from tests.fuzz.workers import Tally, tallies_of

_SECONDS = 60.0


def main() -> int:
    """Run the fuzzer and return the exit code."""
    options = _options()
    targets = [TARGETS[name] for name in options.target or TARGETS]
    seconds = _SECONDS if options.seconds is None and options.inputs is None else options.seconds
    tallies = tallies_of(targets, first=options.seed, workers=options.workers, inputs=options.inputs, seconds=seconds)
    print(_table(tallies))  # noqa: T201 - a command prints
    return int(any(tally.findings for tally in tallies.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, metavar="N", help=f"how long  [default: {_SECONDS:.0f}]")
    parser.add_argument("--inputs", type=int, metavar="N", help="how many, of all targets together")
    parser.add_argument("--target", action="append", choices=TARGETS, help="these alone; repeatable")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="with which each target begins  [default: 0]")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    return parser.parse_args()


def _table(tallies: Mapping[str, Tally]) -> str:
    """Return a line per target, followed by the findings."""
    lines = [f"{'target':<18}{'inputs':>9}{'accepted':>10}{'refused':>10}{'slowest s':>11}  {'of seed':<12}findings"]
    for name, one in tallies.items():
        refused = one.inputs - one.accepted - len(one.findings)
        lines.append(
            f"{name:<18}{one.inputs:>9}{one.accepted:>10}{refused:>10}{one.slowest_s:>11.3f}  {one.slowest_seed:<12}"
            f"{len(one.findings)}"
        )
    findings = [finding for one in tallies.values() for finding in one.findings]
    lines.append(f"{'together':<18}{sum(one.inputs for one in tallies.values()):>9}{'':>45}{len(findings)}")
    # Print only one of several findings at the same place.
    places = Counter((found.target, found.where) for found in findings)
    for found in {(found.target, found.where): found for found in reversed(findings)}.values():
        again = f"python -m tests.fuzz --target '{found.target}' --seed {found.seed} --inputs 1"
        alike = places[found.target, found.where]
        lines += [
            "",
            f"{again}  ({alike} alike)",
            f"  {found.what}",
            *(f"    {one}" for one in found.where.split("\n")),
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
