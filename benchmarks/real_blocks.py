"""Run blocks of a comparison on real servers, for benchmarks of the engine."""

import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.records.trials import Block
from pgversus.store.reading import read_results

SERVER = "17.8"
SPIN = """CREATE OR REPLACE FUNCTION spin(rounds int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE total int := 0;
BEGIN
    FOR i IN 1..rounds LOOP
        total := total + 1;
    END LOOP;
    RETURN total;
END $$"""
"""A loop of processor work: 0.03 ms for 1,000 rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealBlock:
    """The result of one block."""

    log_ratios: tuple[float, ...]
    """Log ratios of throughput, contender / baseline, by contender."""
    seconds: float
    """Seconds of load of all arms together."""
    wall_s: float
    tps: float
    """Mean of all arms."""

    @property
    def log_ratio(self) -> float:
        """The log ratio of the first contender."""
        return self.log_ratios[0]


def pgversus(arguments: Sequence[str], folder: str | Path) -> str:
    """Run pgversus in a folder and return its output; raise SystemExit with its error message if it fails."""
    finished = subprocess.run(
        [Path(sys.executable).with_name("pgversus"), *arguments],
        cwd=folder,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise SystemExit(finished.stderr)
    return finished.stdout


def real_blocks(arguments: Sequence[str], files: Mapping[str, str]) -> list[RealBlock]:
    """Run `pgversus compare` and return its blocks in order, except those without a result of every arm.

    arguments: those of the command line.
    files: texts by file name, written to its working directory.
    Raises SystemExit with the error message of pgversus if it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        pgversus(("compare", *arguments, "--no-plans", "--results", "results"), folder)
        (stored,) = read_results(Path(folder) / "results").contexts
        arms = [arm.index for arm in stored.context.comparison.arms]
        return [_real_block(block) for block in stored.blocks if block.has(*arms)]


def _real_block(block: Block) -> RealBlock:
    trials = [trial for _, trial in sorted(block.trials.items())]
    baseline, *contenders = (math.log(trial.tps) for trial in trials)
    return RealBlock(
        log_ratios=tuple(contender - baseline for contender in contenders),
        seconds=sum(trial.seconds for trial in trials),
        wall_s=block.wall_s,
        tps=statistics.fmean(trial.tps for trial in trials),
    )
