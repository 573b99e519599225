"""Compare pgversus with common methods on real servers and known differences: `make bench-real`.

One version is compared with itself, without a difference and with known differences of 1, 3 and 10 %: a loop with more
rounds (tps, and p95 under a rate), or VACUUM of a table with more rows. Meanwhile, another program keeps one processor
busy for a quarter of the time, for seconds at a time. Half of the comparisons have no difference. The common methods
share their runs (common_methods.py) and are measured once for every three comparisons by pgversus. Each result is
appended to a file, from which the benchmark continues when it is started again, so it can run whenever the host is
idle; results/real_methods.jsonl has those of one host. The table shows how often each method claimed a
difference, and how often the claim was right; for pgversus also how often its interval included the truth. With a
difference, it does if it reaches the part of the planted one that a transaction or operation shows: nine tenths to all.

The loop under a rate keeps its processor busy for a twenty-fifth of the time, so that hardly any transaction waits for
another one, and p95 grows like the loop. The table is unlogged, because one segment of WAL more would take longer than
some of the differences. With --at-once 2, two comparisons run at the same time, each with its other program on a
processor of its own.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common_methods import METHODS, Claim, Speed, p95_of, repeated, shared_runs, tps_of, two_servers
from benchmarks.real_blocks import SERVER, SPIN, pgversus

EFFECTS = (0.0, 0.01, 0.03, 0.1)
PGVERSUS = "pgversus"
_ROUNDS, _ROUNDS_AT_RATE = 200_000, 33_000
_RATE = ("-R", "40", "-c", "4")
_ROWS = 800_000
_LOOP = "SELECT spin(current_setting('my.rounds')::int);\n"
_FILL = (
    "CREATE UNLOGGED TABLE filled AS "
    "SELECT i AS id, 0 AS changed, repeat('x', 80) AS text FROM generate_series(1, {}) AS i"
)
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
    at_once: int = 1
    """Number of comparisons that ran at the same time."""
    low: float | None = None
    high: float | None = None


LOADS = ("tps", "p95 at a rate", "VACUUM")
CELLS = tuple(
    Cell(load=load, effect=effect, method=method)
    for load in LOADS
    for effect in EFFECTS
    for method in (PGVERSUS, *METHODS)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A comparison by pgversus, or by all common methods."""

    load: str
    effect: float
    by_pgversus: bool

    @property
    def weight(self) -> float:
        """How often it is due, compared with others: no difference as often as all differences together."""
        return (1.0 if self.effect else len(EFFECTS) - 1.0) * (3.0 if self.by_pgversus else 1.0)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods whose results it has."""
        return (PGVERSUS,) if self.by_pgversus else tuple(METHODS)


TASKS = tuple(
    Task(load=load, effect=effect, by_pgversus=by_pgversus)
    for load in LOADS
    for effect in EFFECTS
    for by_pgversus in (True, False)
)


def main() -> None:
    """Run for some hours, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0, help="0 prints the results so far; default 1")
    parser.add_argument("--results", type=Path, default=Path("bench-real.jsonl"), help="default bench-real.jsonl")
    parser.add_argument("--budget", default="2m", help="for each comparison by pgversus; default 2m")
    parser.add_argument("--at-once", type=int, default=1, choices=(1, 2), help="comparisons at a time; default 1")
    arguments = parser.parse_args()
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < arguments.at_once:
        parser.error(f"--at-once {arguments.at_once} needs as many processors")
    queue = _Queue(_read(arguments.results))
    end = time.monotonic() + 3600 * arguments.hours

    def run(place: int) -> None:
        if arguments.at_once > 1:
            # For this thread and the programs that it starts.
            os.sched_setaffinity(0, {processors[place]})
        while time.monotonic() < end:
            seed, task = queue.take()
            try:
                with _other_program(seed):
                    found = _measured(task, seed, arguments.budget)
            except (SystemExit, Exception) as failure:  # noqa: BLE001 - see below
                # One comparison that fails must not end hours of others.
                print(f"{task} failed: {failure}", file=sys.stderr)
                continue
            with arguments.results.open("a", encoding="utf-8") as file:
                found = [replace(result, at_once=arguments.at_once) for result in found]
                file.write("".join(json.dumps(asdict(result)) + "\n" for result in found))

    with ThreadPoolExecutor(arguments.at_once) as pool:
        list(pool.map(run, range(arguments.at_once)))
    _print(_read(arguments.results))


class _Queue:
    """Hands out the task that is most overdue, and a new seed."""

    def __init__(self, results: Sequence[Result]) -> None:
        counts = Counter((one.load, one.effect, one.method) for one in results)
        self._begun = Counter({task: counts[task.load, task.effect, task.methods[0]] for task in TASKS})
        self._seed = max((one.seed for one in results), default=0)
        self._lock = threading.Lock()

    def take(self) -> tuple[int, Task]:
        """Return the next seed, and one of the tasks that are most overdue, at random."""
        with self._lock:
            self._seed += 1
            due = {task: self._begun[task] / task.weight for task in TASKS}
            first = [task for task in TASKS if due[task] == min(due.values())]
            task = first[int(np.random.default_rng(self._seed).integers(len(first)))]
            self._begun[task] += 1
            return self._seed, task


def _read(file: Path) -> list[Result]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Result(**json.loads(line)) for line in lines]


@contextmanager
def _other_program(seed: int) -> Iterator[None]:
    """Keep a processor busy now and then, as another guest or program would."""
    with subprocess.Popen([sys.executable, "-c", _BUSY, str(seed)]) as program:
        try:
            yield
        finally:
            program.kill()


def _measured(task: Task, seed: int, budget: str) -> list[Result]:
    """Return the result of every method of a task."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        # The servers' user reads the scripts.
        directory.chmod(0o755)
        for name, text in _files(task.effect).items():
            (directory / name).write_text(text, encoding="utf-8")
        found = (
            {PGVERSUS: _by_pgversus(task, directory, seed, budget)}
            if task.by_pgversus
            else {name: asdict(claim) for name, claim in _by_common_methods(task, directory).items()}
        )
    wall_s = time.monotonic() - began
    return [
        Result(load=task.load, effect=task.effect, method=method, seed=seed, wall_s=wall_s, **values)
        for method, values in found.items()
    ]


def _files(effect: float) -> dict[str, str]:
    return {
        "loop.sql": _LOOP,
        "spin.sql": f"{SPIN};\n",
        "dirty.sql": f"{_DIRTY};\n",
        "vacuum.toml": _STUDY,
        "a.sql": f"{_FILL.format(_ROWS)};\n",
        "b.sql": f"{_FILL.format(round(_ROWS * (1 + effect)))};\n",
    }


def _by_pgversus(task: Task, directory: Path, seed: int, budget: str) -> dict[str, Any]:
    usual = ["--no-plans", "--budget", budget, "--seed", str(seed), "--json"]
    if task.load == "VACUUM":
        arguments = ["run", "vacuum.toml", *usual]
    else:
        rate = (*_RATE, "--windows", "2") if task.load == "p95 at a rate" else ()
        # A level cannot be compared with itself, but a server can.
        levels = dict.fromkeys(map(str, _levels(task)))
        loop = ["--set", f"my.rounds={','.join(levels)}", "--setup", "spin.sql", "-f", "loop.sql"]
        arguments = ["compare", *[SERVER] * (3 - len(levels)), *loop, *rate, *usual]
    ((found,),) = (context["verdicts"] for context in json.loads(pgversus(arguments, directory))["contexts"])
    # Ratios of latencies and times are the inverse of those of speeds.
    ends = [None if found[key] is None else float(found[key]) for key in ("ratio", "low", "high")]
    ratio, low, high = ends if task.load == "tps" else [1 / end if end else None for end in (ends[0], ends[2], ends[1])]
    return {"verdict": found["verdict"], "ratio": ratio, "low": low, "high": high}


def _levels(task: Task) -> tuple[int, int]:
    rounds = _ROUNDS_AT_RATE if task.load == "p95 at a rate" else _ROUNDS
    return rounds, round(rounds * (1 + task.effect))


def _by_common_methods(task: Task, directory: Path) -> dict[str, Claim]:
    files, speed = _files(task.effect), _speed(task, directory)
    if task.load == "VACUUM":
        setups = files["a.sql"], files["b.sql"]
        settings: tuple[dict[str, str], dict[str, str]] = {"autovacuum": "off"}, {"autovacuum": "off"}
    else:
        setups = files["spin.sql"], files["spin.sql"]
        a, b = _levels(task)
        settings = {"my.rounds": str(a)}, {"my.rounds": str(b)}
    with two_servers((SERVER, SERVER), setups, settings) as (one, other):
        a_speeds, b_speeds = shared_runs(one, other, speed)
    may_merge = task.load != "VACUUM"
    return {name: method.claim(a_speeds, b_speeds, may_merge=may_merge) for name, method in METHODS.items()}


def _speed(task: Task, directory: Path) -> Speed:
    if task.load == "VACUUM":
        return repeated(_DIRTY, _VACUUM)
    script = directory / "loop.sql"
    return p95_of(script, _RATE) if task.load == "p95 at a rate" else tps_of(script)


def _print(results: Sequence[Result]) -> None:
    print("number of comparisons; a claim is faster or slower; if A and B differ, B is slower; seconds: medians")
    print(
        f"{'load':<15}{'method':<19}{'effect':>7}{'number':>8}{'claims':>8}{'right':>7}{'undecided':>11}{'covered':>9}"
        f"{'wall s':>8}{'s to a claim':>14}"
    )
    for cell in CELLS:
        found = [one for one in results if (one.load, one.effect, one.method) == (cell.load, cell.effect, cell.method)]
        if found:
            print(_row(cell, found))


def _row(cell: Cell, found: Sequence[Result]) -> str:
    claims = [one for one in found if one.verdict in {"faster", "slower"}]
    bounded = [one for one in found if one.low is not None and one.high is not None]
    right = sum(one.verdict == "slower" for one in found) if cell.effect else None
    undecided = sum(one.verdict == "undecided" for one in found) if cell.method == PGVERSUS else None
    seconds = round(median(one.wall_s for one in claims)) if claims else None
    return (
        f"{cell.load:<15}{cell.method:<19}{f'+{100 * cell.effect:g} %' if cell.effect else 'none':>7}{len(found):>8}"
        f"{len(claims):>8}{_or_dash(right):>7}{_or_dash(undecided):>11}"
        f"{_or_dash(sum(map(_covers, bounded)) if bounded else None):>9}"
        f"{median(one.wall_s for one in found):8.0f}{_or_dash(seconds):>14}"
    )


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)


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
