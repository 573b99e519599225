"""Compare pgversus with common methods on real servers and known differences: `make bench-real`.

One version is compared with itself, without a difference and with known differences of 1, 3 and 10 %: a loop with more
rounds (tps, and p95 under a rate), or VACUUM of a table with more rows. Meanwhile, another program keeps one processor
busy for a quarter of the time, for seconds at a time. The methods take turns in random order. Each result is appended
to a file, from which the benchmark continues when it is started again, so it can run whenever the host is idle. The
table shows how often each method claimed a difference, and how often the claim was right; for pgversus also how often
its interval included the truth.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.common_methods import METHODS, Claim, Speed, repeated, tps_of, two_servers
from benchmarks.real_blocks import SERVER, SPIN, pgversus

EFFECTS = (0.0, 0.01, 0.03, 0.1)
PGVERSUS = "pgversus"
_ROUNDS = 200_000
_RATE = ("-R", "50")
_ROWS = 400_000
_LOOP = "SELECT spin(current_setting('my.rounds')::int);\n"
_FILL = "CREATE TABLE filled AS SELECT i AS id, 0 AS changed, repeat('x', 80) AS text FROM generate_series(1, {}) AS i"
_DIRTY = "UPDATE filled SET changed = changed + 1"
_VACUUM = "VACUUM filled"
_STUDY = f"""
title = "VACUUM"
compare = "dataset"
[factors]
server = ["{SERVER}"]
dataset = ["a", "b"]
[workload]
operation = "{_VACUUM}"
prepare = ["dirty.sql"]
[datasets.a]
setup = ["a.sql"]
[datasets.b]
setup = ["b.sql"]
"""
_BUSY = """
import random, sys, time
random.seed(int(sys.argv[1]))
while True:
    end = time.monotonic() + random.expovariate(1 / 5)
    while time.monotonic() < end:
        pass
    time.sleep(random.expovariate(1 / 15))
"""
"""Busy for 5 s and idle for 15 s on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A comparison that is repeated."""

    load: str
    effect: float
    """By how much B is slower: the share by which it has more work."""
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Cell):
    """A method's verdict in one comparison."""

    seed: int
    verdict: str
    ratio: float
    """Ratio of speeds, B / A."""
    wall_s: float
    low: float | None = None
    high: float | None = None


CELLS = tuple(
    Cell(load=load, effect=effect, method=method)
    for load in ("tps", "p95 at a rate", "VACUUM")
    for effect in EFFECTS
    for method in (PGVERSUS, *METHODS)
    # pgbench prints no percentile.
    if method == PGVERSUS or load != "p95 at a rate"
)


def main() -> None:
    """Run for some hours, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="0 prints the results so far; default 1")
    parser.add_argument("--results", type=Path, default=Path("bench-real.jsonl"), help="default bench-real.jsonl")
    parser.add_argument("--budget", default="3m", help="for each comparison by pgversus; default 3m")
    parser.add_argument("--method", action="append", choices=[PGVERSUS, *METHODS], help="repeatable; default all")
    arguments = parser.parse_args()
    results = _read(arguments.results)
    cells = [cell for cell in CELLS if cell.method in (arguments.method or [PGVERSUS, *METHODS])]
    end = time.monotonic() + 3600 * arguments.hours
    while time.monotonic() < end:
        seed = len(results) + 1
        with _other_program(seed):
            result = _result(_next(cells, results, seed), seed, arguments.budget)
        results.append(result)
        with arguments.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
    _print(results)


def _read(file: Path) -> list[Result]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Result(**json.loads(line)) for line in lines]


def _next(cells: Sequence[Cell], results: Sequence[Result], seed: int) -> Cell:
    """Return one of the cells with the fewest results, at random."""
    counts = Counter(Cell(load=one.load, effect=one.effect, method=one.method) for one in results)
    fewest = min(counts[cell] for cell in cells)
    open_cells = [cell for cell in cells if counts[cell] == fewest]
    return open_cells[int(np.random.default_rng(seed).integers(len(open_cells)))]


@contextmanager
def _other_program(seed: int) -> Iterator[None]:
    """Keep a processor busy now and then, as another guest or program would."""
    with subprocess.Popen([sys.executable, "-c", _BUSY, str(seed)]) as program:
        try:
            yield
        finally:
            program.kill()


def _result(cell: Cell, seed: int, budget: str) -> Result:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        # The servers' user reads the scripts.
        directory.chmod(0o755)
        for name, text in _files(cell.effect).items():
            (directory / name).write_text(text, encoding="utf-8")
        if cell.method == PGVERSUS:
            found = _by_pgversus(cell, directory, seed, budget)
        else:
            claim = _by_common_method(cell, directory)
            found = {"verdict": claim.verdict, "ratio": claim.ratio}
    return Result(**asdict(cell), seed=seed, wall_s=time.monotonic() - began, **found)


def _files(effect: float) -> dict[str, str]:
    return {
        "loop.sql": _LOOP,
        "spin.sql": f"{SPIN};\n",
        "dirty.sql": f"{_DIRTY};\n",
        "vacuum.toml": _STUDY,
        "a.sql": f"{_FILL.format(_ROWS)};\n",
        "b.sql": f"{_FILL.format(round(_ROWS * (1 + effect)))};\n",
    }


def _by_pgversus(cell: Cell, directory: Path, seed: int, budget: str) -> dict[str, Any]:
    usual = ["--no-plans", "--budget", budget, "--seed", str(seed), "--json"]
    if cell.load == "VACUUM":
        arguments = ["run", "vacuum.toml", *usual]
    else:
        rate = _RATE if cell.load == "p95 at a rate" else ()
        levels = ",".join(map(str, _levels(cell)))
        loop = ["--set", f"my.rounds={levels}", "--setup", "spin.sql", "-f", "loop.sql"]
        arguments = ["compare", SERVER, *loop, *rate, *usual]
    ((found,),) = (context["verdicts"] for context in json.loads(pgversus(arguments, directory))["contexts"])
    # Ratios of latencies and times are the inverse of those of speeds.
    ends = [None if found[key] is None else float(found[key]) for key in ("ratio", "low", "high")]
    ratio, low, high = ends if cell.load == "tps" else [1 / end if end else None for end in (ends[0], ends[2], ends[1])]
    return {"verdict": found["verdict"], "ratio": ratio, "low": low, "high": high}


def _levels(cell: Cell) -> tuple[int, int]:
    return _ROUNDS, round(_ROUNDS * (1 + cell.effect))


def _by_common_method(cell: Cell, directory: Path) -> Claim:
    files, speed = _files(cell.effect), _speed(cell, directory)
    if cell.load == "VACUUM":
        setups = files["a.sql"], files["b.sql"]
        settings: tuple[dict[str, str], dict[str, str]] = {"autovacuum": "off"}, {"autovacuum": "off"}
    else:
        setups = files["spin.sql"], files["spin.sql"]
        a, b = _levels(cell)
        settings = {"my.rounds": str(a)}, {"my.rounds": str(b)}
    with two_servers((SERVER, SERVER), setups, settings) as (one, other):
        return METHODS[cell.method].claim(one, other, speed)


def _speed(cell: Cell, directory: Path) -> Speed:
    return repeated(_DIRTY, _VACUUM) if cell.load == "VACUUM" else tps_of(directory / "loop.sql")


def _print(results: Sequence[Result]) -> None:
    print("percent of the comparisons; a claim is faster or slower; if A and B differ, B is slower")
    print(f"{'load':<15}{'method':<19}{'effect':>7}{'number':>8}{'claims':>8}{'right':>8}{'covered':>9}{'wall s':>8}")
    for cell in CELLS:
        found = [one for one in results if (one.load, one.effect, one.method) == (cell.load, cell.effect, cell.method)]
        if found:
            print(_row(cell, found))


def _row(cell: Cell, found: Sequence[Result]) -> str:
    claims = fmean(one.verdict in {"faster", "slower"} for one in found)
    right = fmean(one.verdict == "slower" for one in found)
    bounded = [one for one in found if one.low is not None and one.high is not None]
    covered = f"{100 * fmean(map(_covers, bounded)):9.1f}" if bounded else f"{'-':>9}"
    return (
        f"{cell.load:<15}{cell.method:<19}{f'+{100 * cell.effect:g} %' if cell.effect else 'none':>7}{len(found):>8}"
        f"{100 * claims:8.1f}{f'{100 * right:8.1f}' if cell.effect else f'{chr(45):>8}'}{covered}"
        f"{fmean(one.wall_s for one in found):8.0f}"
    )


def _covers(one: Result) -> bool:
    """Return whether the interval includes the truth, which lies between the planted effect and nine tenths of it.

    The part of a transaction that does not grow with its loop or table is below a tenth (benchmarks/bias.py measures
    it).
    """
    assert one.low is not None
    assert one.high is not None
    least, most = (-math.log1p(one.effect * part) for part in (1.0, 0.9))
    return math.log(one.low) <= most and math.log(one.high) >= least


if __name__ == "__main__":
    main()
