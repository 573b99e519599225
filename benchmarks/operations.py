"""Measure what the order of copies, starts and operations in a block gains: `make bench-operations`.

The operation is a VACUUM of dead rows on four identical arms, on real servers. In *together*, all servers of a block
start on their copies first, and the operations then run right after each other; in *one by one*, each arm is copied,
started, timed and stopped before the next. *With a file*, a file fills the page cache before each operation and is
removed. The ways take turns after every four blocks.

*first* is the mean log ratio of the time of the arm that ran first in a block to the mean of the others, with its
standard error. *gain* is the variance of a block's log ratios in *together*, divided by that of this way, for equal
numbers of blocks and for equal wall times. *mirrored* counts the four operations of a block as A B B A. It is the
variance of a ratio of two operations to two in any order, divided by the variance of this one: how much precision the
mirrored order gains. The host must be idle.
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
from pgversus.host.directories import open_cache
from pgversus.lab.operation_runner import OperationTrialRunner
from pgversus.study.metrics import Metric

_BLOCKS = 4
_FILE_BYTES = 256 * 2**20
_ARMS = 4
_DIRTY = "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid % 2 = 0;\n"
_STUDY = f"""
title = "VACUUM"
compare = "server"
[factors]
server = {[SERVER] * _ARMS}
[workload]
operation = "VACUUM pgbench_accounts"
prepare = ["dirty.sql"]
[dataset]
scale = {{scale}}
[design]
blocks = {_BLOCKS}
"""


class _StartingFirst(OperationTrialRunner):
    """Starts all servers of a block on their copies before the first operation."""

    def start(self, arm: int) -> None:
        """Start the server of an arm on a fresh copy."""
        self._repetitions.prepare(arm)


class _WithFile(OperationTrialRunner):
    """Fills the page cache before each operation."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Run the operation once."""
        # In the cache, which lies on a disk.
        with tempfile.TemporaryFile(dir=open_cache().runs) as file:
            file.write(bytes(_FILE_BYTES))
        super().measure(arm, seed, name)


class _StartingFirstWithFile(_StartingFirst, _WithFile):
    """Does both."""


_REFERENCE = "together"
WAYS: dict[str, type[OperationTrialRunner]] = {
    _REFERENCE: _StartingFirst,
    "together, with a file": _StartingFirstWithFile,
    "one by one": OperationTrialRunner,
    "one by one, with a file": _WithFile,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A block."""

    times: tuple[float, ...]
    """Of each arm, in seconds."""
    order: tuple[int, ...]
    """The arms as they ran."""
    wall_s: float

    @property
    def log_ratios(self) -> list[float]:
        """Log ratios of the times of the other arms to that of the first one in the study."""
        return [math.log(time / self.times[0]) for time in self.times[1:]]

    @property
    def of_first(self) -> float:
        """Log ratio of the time of the arm that ran first to the mean of the others."""
        first, *others = self._ordered
        return first - statistics.fmean(others)

    @property
    def mirrored(self) -> float:
        """Log ratio of the mean times of two arms in mirrored order: A B B A."""
        first, second, third, fourth = self._ordered
        return (first + fourth - second - third) / 2

    @property
    def _ordered(self) -> list[float]:
        return [math.log(self.times[arm]) for arm in self.order]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=4, help=f"turns of {_BLOCKS} blocks in each way; default 4")
    parser.add_argument("--scale", type=int, default=10, choices=range(1, 31), help="pgbench's scale; default 10")
    arguments = parser.parse_args()
    found: dict[str, list[Measured]] = {way: [] for way in WAYS}
    for turn in range(arguments.turns):
        for way in list(WAYS)[:: -1 if turn % 2 else 1]:
            found[way] += _measured(WAYS[way], arguments.scale, turn + 1)
    print(f"{_BLOCKS * arguments.turns} blocks in each way, VACUUM of {SERVER} against itself, scale {arguments.scale}")
    columns = (
        f"{'seconds':>9}{'wall s':>8}{'sd of log ratio':>17}{'first':>16}{'gain':>8}{'in time':>9}{'mirrored':>10}"
    )
    print(f"{'':<25}{columns}")
    for way, blocks in found.items():
        _print_row(way, blocks, found[_REFERENCE])


def _print_row(way: str, blocks: Sequence[Measured], reference: Sequence[Measured]) -> None:
    seconds = statistics.fmean(time for block in blocks for time in block.times)
    firsts = [block.of_first for block in blocks]
    first = f"{statistics.fmean(firsts):+.3f} ±{statistics.stdev(firsts) / math.sqrt(len(firsts)):.3f}"
    gain = _variance(reference) / _variance(blocks)
    print(
        f"{way:<25}{seconds:>9.2f}{_wall_s(blocks):>8.1f}{math.sqrt(_variance(blocks)):>17.3f}{first:>16}{gain:>8.1f}"
        f"{gain * _wall_s(reference) / _wall_s(blocks):>9.1f}{_gain_of_mirrored(blocks):>10.2f}",
        flush=True,
    )


def _wall_s(blocks: Sequence[Measured]) -> float:
    return statistics.fmean(block.wall_s for block in blocks)


def _variance(blocks: Sequence[Measured]) -> float:
    """Return the mean variance of the log ratios of a block, over the arms."""
    return statistics.fmean(map(statistics.variance, zip(*(block.log_ratios for block in blocks), strict=True)))


def _gain_of_mirrored(blocks: Sequence[Measured]) -> float:
    # The mean of two ratios has half the variance of one.
    return _variance(blocks) / 2 / statistics.fmean(block.mirrored**2 for block in blocks)


def _measured(runner: type[OperationTrialRunner], scale: int, seed: int) -> list[Measured]:
    """Run some blocks and return those in which all arms have finished."""
    with tempfile.TemporaryDirectory() as folder, patch("pgversus.lab.operation_runner.OperationTrialRunner", runner):
        (Path(folder) / "dirty.sql").write_text(_DIRTY, encoding="utf-8")
        file = Path(folder) / "vacuum.toml"
        file.write_text(_STUDY.format(scale=scale), encoding="utf-8")
        results = run(file, results=Path(folder) / "results", seed=seed)
        return [
            Measured(times=times, order=_order(seed, block.number), wall_s=block.wall_s)
            for block in results.answer.answers[0].blocks
            if len(times := tuple(filter(None, (one.value(Metric.TIME) for one in block.trials.values())))) == _ARMS
        ]


def _order(seed: int, block: int) -> tuple[int, ...]:
    """Return the arms in the order of a block of the only context of a study, as its engine draws it."""
    return block_schedule(np.random.default_rng([seed, block, 0]), tuple(range(_ARMS)), 1).rounds[0]


if __name__ == "__main__":
    main()
