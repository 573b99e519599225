"""Compare short windows with windows of 1 s on real servers: `make bench-real-noise`.

One server is compared with itself under several loads. Blocks of short windows and blocks of 8 windows of 1 s take
turns, so both see the same host. The loads take turns as well: how much short windows gain changes with the noise of
the host from minute to minute, and each load sees all of it. For each load, the table shows the standard deviation of a
block's log ratio and the wall time of a block. The last column is the quotient of the variances at equal wall time
(variance of a block times its wall time): how many times longer long windows would have to run for the same precision.
Next to it is its 95 % interval, from the F distribution, because a few blocks determine a variance only roughly. Loads
that write have windows of 1 s anyway, so TPC-B shows how far two equal designs differ by chance. The host must be idle.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import f

from benchmarks.real_blocks import SERVER, RealBlock, real_blocks

Kind = tuple[str, ...]
"""Options that determine the windows of a block."""
SHORT: Kind = ()
LONG: Kind = ("--window", "1s", "--windows", "8", "--warmup", "2s")
BLOCKS = 2
"""Number of successive blocks of one kind: the minimum of a comparison."""
_LOOP = "SELECT count(*) FROM generate_series(1, 100000);\n"
_JOIN = "SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b USING (aid);\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A load."""

    name: str
    arguments: tuple[str, ...]
    script: str = ""
    """Text of a script file; empty for a built-in one."""


CASES = (
    Case(name="loop of 18 ms, 1 client", arguments=("-i",), script=_LOOP),
    Case(name="lookup, 1 client", arguments=("-i", "-s", "5", "-S")),
    Case(name="lookup, 1 client, pinned", arguments=("-i", "-s", "5", "-S", "--pin", "0")),
    Case(name="lookup, 4 clients", arguments=("-i", "-s", "5", "-S", "-c", "4", "-j", "2")),
    Case(name="lookup, 4 clients, pinned", arguments=("-i", "-s", "5", "-S", "-c", "4", "--pin", "0")),
    Case(name="join of 100 ms, 1 client", arguments=("-i", "-s", "3"), script=_JOIN),
    Case(name="TPC-B, 4 clients", arguments=("-i", "-s", "5", "-b", "tpcb-like", "-c", "4", "-j", "2")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The spread of blocks of one kind."""

    deviation: float
    """Standard deviation of the log ratio of a block."""
    wall_s: float
    """Mean wall time of a block."""
    blocks: int

    @property
    def cost(self) -> float:
        """Variance of a mean after one second of wall time."""
        return self.deviation**2 * self.wall_s


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=4, help=f"turns of {BLOCKS} blocks of each kind; default 4")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    cases = [case for case in CASES if case.name in (arguments.case or [case.name])]
    found = _turns(cases, arguments.turns)
    print(f"{arguments.turns * BLOCKS} blocks of each kind; sd of the log ratio and wall time of a block")
    print(
        f"{'load':<28}{'short sd':>10}{'wall s':>8}{'long sd':>10}{'wall s':>8}{'variance at equal wall':>25}  95 % CI"
    )
    for case in cases:
        short, long = (_spread(found[case, kind]) for kind in (SHORT, LONG))
        quotient = long.cost / short.cost
        low, high = (quotient / f.ppf(level, long.blocks - 1, short.blocks - 1) for level in (0.975, 0.025))
        print(
            f"{case.name:<28}{short.deviation:10.4f}{short.wall_s:8.1f}{long.deviation:10.4f}{long.wall_s:8.1f}"
            f"{quotient:23.1f}x  {low:.1f}x to {high:.1f}x"
        )


def _turns(cases: Sequence[Case], turns: int) -> dict[tuple[Case, Kind], list[RealBlock]]:
    """Measure all cases in each turn, and return the blocks of each case and kind."""
    found: dict[tuple[Case, Kind], list[RealBlock]] = {(case, kind): [] for case in cases for kind in (SHORT, LONG)}
    for turn in range(turns):
        for case in cases:
            # The order alternates, so that neither kind always follows the other.
            for kind in (SHORT, LONG)[:: 1 if turn % 2 else -1]:
                found[case, kind] += _blocks(case, kind, turn)
        print(f"turn {turn + 1} of {turns}", file=sys.stderr)
    return found


def _spread(blocks: list[RealBlock]) -> Spread:
    return Spread(
        deviation=statistics.stdev(block.log_ratio for block in blocks),
        wall_s=statistics.fmean(block.wall_s for block in blocks),
        blocks=len(blocks),
    )


def _blocks(case: Case, kind: Kind, seed: int) -> list[RealBlock]:
    file = ("-f", "script.sql") if case.script else ()
    design = ("--blocks", str(BLOCKS), "--seed", str(seed))
    return real_blocks((SERVER, SERVER, *case.arguments, *file, *kind, *design), {"script.sql": case.script})


if __name__ == "__main__":
    main()
