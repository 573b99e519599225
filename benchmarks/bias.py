"""Whether short windows give the same ratio as long ones, on real servers: `make bench-bias`.

One server is compared with itself under a loop that a setting makes longer by a known share. Each length of window that
the rule may choose has to find that share within its interval: slices of fast statements of one client and of several,
and single executions. Nothing else may run meanwhile.
"""

import argparse
import math
import statistics
from dataclasses import dataclass

from benchmarks.real_blocks import SERVER, SPIN, real_blocks

_SCRIPT = "SELECT spin(current_setting('my.rounds')::int);\n"
_LEVEL = 2.0
# Standard errors of an interval of 95 % where there are many blocks.


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A load, by how long its loop is."""

    name: str
    rounds: int
    arguments: tuple[str, ...] = ()


CASES = (
    Case(name="0.3 ms, 1 client", rounds=10_000),
    Case(name="0.3 ms, 4 clients", rounds=10_000, arguments=("-c", "4")),
    Case(name="6 ms, 1 client", rounds=200_000),
    Case(name="20 ms, 1 client", rounds=600_000),
    Case(name="20 ms, 4 clients", rounds=600_000, arguments=("-c", "4")),
    Case(name="200 ms, 1 client", rounds=6_000_000),
    Case(name="200 ms, 4 clients", rounds=6_000_000, arguments=("-c", "4")),
    Case(name="20 ms, 1 client, runs of -t 1", rounds=600_000, arguments=("--window", "1tx")),
    Case(name="20 ms, 1 client, windows of 1 s", rounds=600_000, arguments=("--window", "1s")),
)
EFFECTS = (0.01, 0.03, 0.1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12, help="of each case and effect; default 12")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    print(f"{arguments.blocks} blocks; estimate and twice its standard error, in % of the baseline's throughput")
    print(f"{'load':<34}" + "".join(f"{f'planted {100 * effect:+g} %':>22}" for effect in EFFECTS), flush=True)
    for case in CASES:
        if case.name in (arguments.case or [case.name]):
            cells = [_cell(*_estimate(case, effect, arguments.blocks), effect) for effect in EFFECTS]
            print(f"{case.name:<34}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


def _cell(mean: float, error: float, effect: float) -> str:
    """The estimate; marked where what was planted is outside."""
    mark = " " if abs(mean - math.log1p(effect)) <= _LEVEL * error else "!"
    return f"{100 * math.expm1(mean):+.2f} ±{100 * _LEVEL * error:.2f}{mark}"


def _estimate(case: Case, effect: float, blocks: int) -> tuple[float, float]:
    """Mean log ratio of the blocks, and its standard error."""
    levels = f"my.rounds={round(case.rounds * (1 + effect))},{case.rounds}"
    asked = (SERVER, "--set", levels, "--setup", "spin.sql", "-f", "script.sql", "--blocks", str(blocks))
    found = real_blocks((*asked, *case.arguments), {"spin.sql": f"{SPIN};\n", "script.sql": _SCRIPT})
    logs = [block.log_ratio for block in found]
    return statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))


if __name__ == "__main__":
    main()
