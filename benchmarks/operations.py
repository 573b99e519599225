"""Measure the gain from timing the operations of a block right after each other: `make bench-operations`.

The operation is a VACUUM of dead rows on two identical arms, on real servers. In *one by one*, each arm is copied,
started, timed and stopped before the next; in *together*, both start on their copies first. The two ways take turns
after every four blocks. The table shows the standard deviations of the log time of an arm and of the log ratio of a
block. Without any common noise, the latter would be sqrt(2) times the former. *second* is the mean log ratio of the arm
that ran second to the one that ran first, with its standard error. Measuring each arm twice in mirrored order would
cancel this effect, and reduce the variance of a block by its square. The host must be idle.
"""

import argparse
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.real_blocks import SERVER
from pgversus.api import run
from pgversus.engine.block_runner import block_schedule
from pgversus.study.metrics import Metric
from pgversus.study.needs import CHEAP_COPY_BYTES

_BLOCKS = 4
_DIRTY = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 2 = 0;\n"
_STUDY = f"""
title = "VACUUM"
compare = "server"
[factors]
server = ["{SERVER}", "{SERVER}"]
[workload]
operation = "VACUUM pgbench_accounts"
prepare = ["dirty.sql"]
[dataset]
scale = {{scale}}
[design]
blocks = {_BLOCKS}
"""
WAYS = {"one by one": 0, "together": CHEAP_COPY_BYTES}
"""The largest copy that may exist together with those of other arms, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The times of both arms in one block, in seconds."""

    times: tuple[float, float]
    first: int
    """The arm that ran first."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=6, help=f"turns of {_BLOCKS} blocks in each way; default 6")
    parser.add_argument("--scale", type=int, default=20, choices=range(1, 31), help="pgbench's scale; default 20")
    arguments = parser.parse_args()
    pairs: dict[str, list[Pair]] = {way: [] for way in WAYS}
    for turn in range(arguments.turns):
        for way in list(WAYS)[:: -1 if turn % 2 else 1]:
            pairs[way] += _pairs(WAYS[way], arguments.scale, turn + 1)
    print(f"{_BLOCKS * arguments.turns} blocks in each way, VACUUM of {SERVER} against itself, scale {arguments.scale}")
    print(f"{'':<12}{'seconds':>10}{'sd of log time':>18}{'sd of log ratio':>18}{'second':>18}")
    variances = {way: _print_row(way, found) for way, found in pairs.items()}
    print(f"ratio of variances, one by one / together: {variances['one by one'] / variances['together']:.1f}")


def _print_row(way: str, pairs: Sequence[Pair]) -> float:
    """Print the row of a way and return the variance of its log ratios."""
    logs = [[math.log(time) for time in side] for side in zip(*(pair.times for pair in pairs), strict=True)]
    of_arm = statistics.fmean(map(statistics.stdev, logs))
    of_ratio = statistics.stdev(new - old for old, new in zip(*logs, strict=True))
    mean = statistics.fmean(time for pair in pairs for time in pair.times)
    later = [math.log(pair.times[1 - pair.first] / pair.times[pair.first]) for pair in pairs]
    error = statistics.stdev(later) / math.sqrt(len(later))
    second = f"{statistics.fmean(later):+.3f} ±{error:.3f}"
    print(f"{way:<12}{mean:>10.2f}{of_arm:>18.3f}{of_ratio:>18.3f}{second:>18}", flush=True)
    return float(of_ratio**2)


def _pairs(most_bytes: int, scale: int, seed: int) -> list[Pair]:
    """Run some blocks and return those in which both arms have finished."""
    with tempfile.TemporaryDirectory() as folder, patch("pgversus.lab.arm_servers.CHEAP_COPY_BYTES", most_bytes):
        (Path(folder) / "dirty.sql").write_text(_DIRTY, encoding="utf-8")
        file = Path(folder) / "vacuum.toml"
        file.write_text(_STUDY.format(scale=scale), encoding="utf-8")
        results = run(file, results=Path(folder) / "results", seed=seed)
        return [
            Pair(times=(old, new), first=_first_arm(seed, block.number))
            for block in results.answer.answers[0].blocks
            if (old := block.trials[0].value(Metric.TIME)) and (new := block.trials[1].value(Metric.TIME))
        ]


def _first_arm(seed: int, block: int) -> int:
    """Return the arm that runs first in a block of the only context of a study, as its engine draws it."""
    return block_schedule(np.random.default_rng([seed, block, 0]), (0, 1), 1).rounds[0][0]


if __name__ == "__main__":
    main()
