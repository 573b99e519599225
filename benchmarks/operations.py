"""Measure what is gained by timing the operations of a block right after each other: `make bench-operations`.

A VACUUM of dead rows on two identical arms, on real servers. In *one by one* each arm is copied, started, timed and
stopped before the next; in *together* both start on their copies first. The two ways take turns, in pieces of four
blocks. The table shows the standard deviation of the log time of an arm and of the log ratio of a block. Without any
common noise the latter would be sqrt(2) times the former. The host must be idle.
"""

import argparse
import math
import statistics
import tempfile
from pathlib import Path
from unittest.mock import patch

from benchmarks.real_blocks import SERVER
from pgversus.api import run
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=6, help=f"of {_BLOCKS} blocks in each way; default 6")
    parser.add_argument("--scale", type=int, default=20, choices=range(1, 31), help="of pgbench; default 20")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for turn in range(arguments.turns):
        for way in list(WAYS)[:: -1 if turn % 2 else 1]:
            times[way] += _times(WAYS[way], arguments.scale, turn)
    print(f"{_BLOCKS * arguments.turns} blocks in each way, VACUUM of {SERVER} against itself, scale {arguments.scale}")
    print(f"{'':<12}{'seconds':>10}{'sd of log time':>18}{'sd of log ratio':>18}")
    variances = {}
    for way, pairs in times.items():
        logs = [[math.log(time) for time in side] for side in zip(*pairs, strict=True)]
        of_arm = statistics.fmean(map(statistics.stdev, logs))
        of_ratio = statistics.stdev(new - old for old, new in zip(*logs, strict=True))
        variances[way] = of_ratio**2
        mean = statistics.fmean(time for pair in pairs for time in pair)
        print(f"{way:<12}{mean:>10.2f}{of_arm:>18.3f}{of_ratio:>18.3f}")
    print(f"ratio of variances, one by one / together: {variances['one by one'] / variances['together']:.1f}")


def _times(most_bytes: int, scale: int, seed: int) -> list[tuple[float, float]]:
    """Return the times of both arms in each block, in seconds."""
    with tempfile.TemporaryDirectory() as folder, patch("pgversus.lab.arm_servers.CHEAP_COPY_BYTES", most_bytes):
        (Path(folder) / "dirty.sql").write_text(_DIRTY, encoding="utf-8")
        file = Path(folder) / "vacuum.toml"
        file.write_text(_STUDY.format(scale=scale), encoding="utf-8")
        results = run(file, results=Path(folder) / "results", seed=seed + 1)
        blocks = results.answer.answers[0].blocks
        return [
            (old, new)
            for block in blocks
            if (old := block.trials[0].value(Metric.TIME)) and (new := block.trials[1].value(Metric.TIME))
        ]


if __name__ == "__main__":
    main()
