"""Measure a study of 10,000 treatments: expansion, a dry run, and reports over 100,000 trials. `make bench-study`.

Each command runs as a user runs it, in its own process. The table shows the wall-clock time, the minimum of three runs
because other work on the host only adds to it, and the peak memory. The results are synthetic blocks written by the
real store. The exit code is 1 if a command reaches 500 MB or its time limit: 5 s, or 30 s for the two commands that
write every counter of every trial, six million numbers.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from pgversus.lab.studies import open_study
from pgversus.records.preparation import ArmFacts, Preparation
from pgversus.records.trials import Block, LatencyHistogram, Trial, Window, trial_of
from pgversus.store.writing import Results
from pgversus.study.counters import COUNTERS, MAINTENANCE, REPORTED_BY_VACUUM, ROWS_WRITTEN
from pgversus.study.study import Study

TREATMENTS, TRIALS = 10_000, 100_000
TOLD_OF_LOADS = [name for name in COUNTERS if name not in REPORTED_BY_VACUUM]
MOST_S, MOST_S_OF_DUMP, MOST_BYTES = 5.0, 30.0, 500e6
DUMPS = frozenset({"trials-csv", "json"})
RUNS = 3
BLOCKS = TRIALS // TREATMENTS

STUDY_FILE = """
title = "Ten thousand treatments"
compare = "server"

[factors]
server = ["16.12", "17.8"]
work_mem = [{work_mem}]
random_page_cost = [{cost}]

[workloads.a]
builtin = "select-only"

[workloads.b]
sql = "SELECT count(*) FROM pgbench_accounts;"

[dataset]
scale = 1
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work_mem = ", ".join(f'"{size}kB"' for size in range(64, 64 + 50))
        cost = ", ".join(str(1 + step / 10) for step in range(50))
        (folder / "big.toml").write_text(STUDY_FILE.format(work_mem=work_mem, cost=cost))
        os.chdir(folder)
        study = open_study("big.toml", seed=1).study
        assert study.treatments == TREATMENTS
        _write_results(study, folder / "results")
        # The first dry run may fetch the lists of released versions; network time must not count.
        _run("run", "big.toml", "--dry-run", "--results", "none")
        print(f"{'action':<44}{'s':>7}{'MB':>7}    of {TREATMENTS} treatments, {TRIALS} trials")
        rows = {
            "read and expand": ("-c", "from pgversus.lab.studies import open_study; open_study('big.toml', seed=1)"),
            "pgversus run --dry-run": _pgversus("run", "big.toml", "--dry-run", "--results", "none"),
            "pgversus report": _pgversus("report", "results"),
            "pgversus report --format markdown": _pgversus("report", "results", "--format", "markdown"),
            "pgversus report --format csv": _pgversus("report", "results", "--format", "csv"),
            "pgversus report --format trials-csv": _pgversus("report", "results", "--format", "trials-csv"),
            "pgversus report --format json": _pgversus("report", "results", "--format", "json"),
        }
        too_much = False
        for what, arguments in rows.items():
            runs = [_measured(arguments) for _ in range(RUNS)]
            seconds, most = min(seconds for seconds, _ in runs), max(most for _, most in runs)
            print(f"{what:<44}{seconds:>7.2f}{most / 1e6:>7.0f}", flush=True)
            limit_s = MOST_S_OF_DUMP if DUMPS & set(arguments) else MOST_S
            too_much = too_much or seconds >= limit_s or most >= MOST_BYTES
    if too_much:
        raise SystemExit(1)


def _pgversus(*arguments: str) -> tuple[str, ...]:
    return ("-c", "import sys; from pgversus.cli.main import main; sys.argv[0] = 'pgversus'; main()", *arguments)


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *_pgversus(*arguments)], check=True, capture_output=True)


def _measured(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the wall-clock seconds and the peak memory in bytes of one Python process."""
    began = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - began, used.ru_maxrss * 1024


def _write_results(study: Study, folder: Path) -> None:
    rng = np.random.default_rng(1)
    first = {"host": {"cpus": 2}, "client": {"version": "18.6", "origin": "made up"}, "ended": "budget"}
    results = Results.begin(folder, study.metadata, study.contexts, first)
    # The results are thrown away after the benchmark, so no fsync is needed.
    results._database.execute("PRAGMA synchronous = off")  # noqa: SLF001
    facts = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="-O2", sha256=None, data="d")
    histogram = LatencyHistogram.from_microseconds(rng.lognormal(6, 1, 2000).astype(np.int64))
    for context in study.contexts:
        design = context.comparison.design
        found = Preparation(design=design, arms=(facts, facts), differences=(), writes=False, connect_allowance_s=0)
        results.add_preparation(context.number, found, None)
        for number in range(1, BLOCKS + 1):
            trials = {arm: _trial(arm, histogram, rng) for arm in (0, 1)}
            results.add_block(context.number, Block(number=number, trials=trials, wall_s=20.0))
    results.close()


def _trial(arm: int, histogram: LatencyHistogram, rng: np.random.Generator) -> Trial:
    window = Window(
        transactions=2000,
        seconds=1.0 + 0.05 * float(rng.random()),
        latency_sum_s=1.0,
        latency_max_s=0.1,
        histogram=histogram,
    )
    # Both workloads are read-only, their servers are otherwise idle, and nothing waited for memory or disk.
    quiet = dict.fromkeys((*ROWS_WRITTEN, *MAINTENANCE, "pressure_memory_s", "pressure_io_s"), 0.0)
    return trial_of(arm, [window])._replace(counters={name: float(rng.random()) + 1 for name in TOLD_OF_LOADS} | quiet)


if __name__ == "__main__":
    main()
