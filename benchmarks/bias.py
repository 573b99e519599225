"""Check that short windows give the same ratio as long ones, on real servers: `make bench-bias`.

One server is compared with itself under a loop that a setting makes longer by known shares, one arm for each. For every
kind of window that pgversus may choose, the intervals must include these shares: slices of fast statements with one or
several clients, single executions, and windows of 1 s of a load that writes. Part of the time of a statement does not
grow with its loop; this part is measured first, in windows of 1 s. The host must be idle.

One 95 % interval in twenty misses by chance. A cell that misses is therefore measured again, alone, with twice as many
blocks: if it is biased, it misses again.
"""

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import t

from benchmarks.real_blocks import SERVER, SPIN, real_blocks

_SCRIPT = "SELECT spin(current_setting('my.rounds')::int);\n"
_PAUSING = f"\\sleep 0 us\n{_SCRIPT}"
"""A script that must not be stopped, so each window is a run of pgbench."""
_WRITING = f"{_SCRIPT}UPDATE written SET id = id + 1 WHERE client = :client_id;\n"  # noqa: S608 - SQL of this file
_SETUP = f"{SPIN};\nCREATE TABLE written AS SELECT client, 0 AS id FROM generate_series(0, 3) AS client;\n"  # noqa: S608 - the same
_CONFIDENCE = 0.95
_LONG = ("--window", "1s", "--windows", "4")
_BLOCKS_OF_LONG = 4
_FOUR_QUADS = ("--windows", "8")
"""For executions so long that one quad fills a block. On a host that changes between two speeds, a quad has few
possible results, so three or four blocks agree in one of them by chance too often for a t interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A load with a loop of a given length."""

    name: str
    rounds: int
    arguments: tuple[str, ...] = ()
    script: str = _SCRIPT


CASES = (
    Case(name="0.3 ms, 1 client", rounds=10_000),
    Case(name="0.3 ms, 4 clients", rounds=10_000, arguments=("-c", "4")),
    Case(name="6 ms, 1 client", rounds=200_000),
    Case(name="20 ms, 1 client", rounds=600_000),
    Case(name="20 ms, 4 clients", rounds=600_000, arguments=("-c", "4")),
    Case(name="200 ms, 1 client", rounds=6_000_000, arguments=_FOUR_QUADS),
    Case(name="200 ms, 4 clients", rounds=6_000_000, arguments=("-c", "4", *_FOUR_QUADS)),
    Case(name="0.3 ms, 1 client, new sessions", rounds=10_000, script=_PAUSING),
    Case(name="0.3 ms, 4 clients, new sessions", rounds=10_000, arguments=("-c", "4"), script=_PAUSING),
    Case(name="20 ms, 1 client, new sessions", rounds=600_000, script=_PAUSING),
    Case(name="2 ms and an update, 4 clients", rounds=60_000, arguments=("-c", "4"), script=_WRITING),
    Case(name="20 ms, 1 client, windows of 1 s", rounds=600_000, arguments=("--window", "1s")),
)
EFFECTS = (0.01, 0.03, 0.1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12, help="blocks for each case and effect; default 12")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    print(f"{arguments.blocks} blocks; estimate and its interval of 95 %, in % of the baseline's throughput")
    print("in brackets: the planted effect, less the part of a statement that does not grow with its loop")
    print(f"{'load':<34}{'fixed':>7}" + "".join(f"{f'loop {100 * effect:+g} %':>24}" for effect in EFFECTS), flush=True)
    for case in CASES:
        if case.name in (arguments.case or [case.name]):
            fixed = _fixed_share(case)
            cells = _cells(case, EFFECTS, arguments.blocks, fixed)
            print(f"{case.name:<34}{fixed.value:7.1%}" + "".join(f"{cell!s:>24}" for cell in cells), flush=True)
            for effect, cell in zip(EFFECTS, cells, strict=True):
                if not cell.holds:
                    (again,) = _cells(case, (effect,), 2 * arguments.blocks, fixed)
                    found = "holds" if again.holds else "misses again: biased"
                    print(
                        f"  again, loop {100 * effect:+g} %, {2 * arguments.blocks} blocks: {again} {found}", flush=True
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean and its standard error."""

    value: float
    error: float


def _fixed_share(case: Case) -> Estimate:
    """Return the share of a statement's time that does not grow with its rounds, measured in long windows."""
    (found,) = _slowdowns(case, (case.rounds // 2, case.rounds), _LONG, _BLOCKS_OF_LONG)
    # With half of the rounds a statement takes (1 + fixed) / 2 of its time.
    half_time = math.exp(-found.value)
    return Estimate(value=2 * half_time - 1, error=2 * half_time * found.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A measured effect and the planted one, as log ratios."""

    measured: float
    half_width: float
    planted: float

    @property
    def holds(self) -> bool:
        """Return whether the interval includes the planted effect."""
        return abs(self.measured - self.planted) <= self.half_width

    def __str__(self) -> str:
        """Return estimate, half width and (planted effect) in percent; ! marks an interval that misses the effect."""
        planted = f"({100 * math.expm1(self.planted):+.2f}){' ' if self.holds else '!'}"
        return f"{100 * math.expm1(self.measured):+.2f} ±{100 * self.half_width:.2f} {planted}"


def _cells(case: Case, effects: Sequence[float], blocks: int, fixed: Estimate) -> list[Cell]:
    """Measure planted effects in one comparison; the intervals include the error of the fixed share."""
    longer = [round(case.rounds * (1 + effect)) for effect in effects]
    critical = float(t.ppf((1 + _CONFIDENCE) / 2, blocks - 1))
    return [
        Cell(
            measured=found.value,
            half_width=critical * math.hypot(found.error, effect * fixed.error),
            planted=math.log1p(effect * (1 - fixed.value)),
        )
        for effect, found in zip(effects, _slowdowns(case, (case.rounds, *longer), (), blocks), strict=True)
    ]


def _mean(logs: Sequence[float]) -> Estimate:
    return Estimate(value=statistics.fmean(logs), error=statistics.stdev(logs) / math.sqrt(len(logs)))


def _slowdowns(case: Case, rounds: Sequence[int], windows: Sequence[str], blocks: int) -> list[Estimate]:
    """Return the log ratio of throughput with the first number of rounds to that with each of the others."""
    levels = ",".join(map(str, rounds))
    arguments = (SERVER, "--set", f"my.rounds={levels}", "--setup", "spin.sql", "-f", "script.sql")
    design = ("--blocks", str(blocks), *case.arguments, *windows)
    found = real_blocks((*arguments, *design), {"spin.sql": _SETUP, "script.sql": case.script})
    return [_mean([-log for log in logs]) for logs in zip(*(block.log_ratios for block in found), strict=True)]


if __name__ == "__main__":
    main()
