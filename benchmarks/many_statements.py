"""Check a thousand statements, and kill the check in the middle: `make bench-many-statements`.

The application has 50 tables of 2,000 to 40,000 rows and 1,000 statements of ten kinds, each over some of the tables.
The benchmark prints the estimate of the dry run, starts the check, kills it after an hour (kill -9), and starts it
again. Then it prints the times, the most memory that pgversus itself used, and the most that the disk was filled.
"""

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pgversus.statements.parsing import parsed
from pgversus.text.units import duration, size

_TABLES, _STATEMENTS = 50, 1000
_LOOK_S = 0.5
_COLUMNS = ("id", "kind", "amount", "parent", "created")
_TABLE = """
CREATE TABLE {name} AS
SELECT i AS id, i % 100 AS kind, i * 7919 % 10007 AS amount, i / 10 AS parent, date '2024-01-01' + i % 700 AS created,
       repeat('x', 60) AS text
FROM generate_series(1, {rows}) AS i;
ALTER TABLE {name} ADD PRIMARY KEY (id);
CREATE INDEX ON {name} (kind, created);
CREATE INDEX ON {name} (parent);
"""
_KINDS = (
    "SELECT {columns} FROM {a} WHERE id = {id}",
    "SELECT {columns}, count(*), sum(amount) FROM {a} WHERE kind = {kind} GROUP BY {columns} LIMIT 100",
    "SELECT {columns} FROM {a} WHERE kind = {kind} ORDER BY created DESC LIMIT 20",
    "SELECT {columns} FROM {a} WHERE kind IN ({kind}, {other}, 3) AND amount > {amount} ORDER BY id LIMIT 50",
    "SELECT a.kind, count(*) FROM {a} a JOIN {b} b ON b.id = a.parent WHERE b.kind = {kind} GROUP BY a.kind",
    "SELECT {columns} FROM {a} a WHERE EXISTS (SELECT FROM {b} b WHERE b.parent = a.id AND b.kind = {kind}) LIMIT 30",
    "SELECT DISTINCT ON (kind) {columns} FROM {a} WHERE amount < {amount} ORDER BY kind, amount DESC, id",
    "SELECT {columns}, rank() OVER (PARTITION BY kind ORDER BY amount) FROM {a} WHERE parent < {id} LIMIT 100",
    "SELECT count(*) FROM {a} a WHERE kind IN (SELECT kind FROM {b} b WHERE b.parent = a.parent AND b.id < 100)",
    "UPDATE {a} SET amount = amount + 1 WHERE id = {id} RETURNING {columns}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a run of the check has used."""

    wall_s: float
    memory_bytes: int
    """Most resident memory of its own process, without servers and pgbench."""
    disk_bytes: int
    """Most bytes of the disk beyond those used at the start."""
    exit_code: int


def main() -> None:
    """Print the estimate, then what both runs have used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs=2, default=("16.12", "17.8"), help="default 16.12 17.8")
    parser.add_argument("--statements", type=int, default=_STATEMENTS, help=f"default {_STATEMENTS}")
    parser.add_argument("--budget", default="10m", help="for confirming; default 10m")
    parser.add_argument("--kill-after-min", type=float, default=60.0, metavar="MINUTES", help="default 60")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        # The servers' user reads the setup file.
        folder.chmod(0o755)
        (folder / "setup.sql").write_text("".join(_tables()), encoding="utf-8")
        (folder / "many.sql").write_text("".join(_statements(arguments.statements, arguments.seed)), encoding="utf-8")
        sources = ("--setup", "setup.sql", "--statements", "many.sql", "--results", "results")
        design = ("--budget", arguments.budget, "--seed", str(arguments.seed), "--no-plans")
        command = [Path(sys.executable).with_name("pgversus"), "upgrade-check", *arguments.versions, *sources, *design]
        print(subprocess.run([*command, "--dry-run"], cwd=folder, capture_output=True, text=True, check=True).stdout)
        command.append("--json")
        runs = [_run(command, folder, kill_after_s=60 * arguments.kill_after_min), _run(command, folder, math.inf)]
        (upgrade,) = json.loads((folder / "answer.json").read_text(encoding="utf-8"))["upgrades"]
        measured = sum(one["ratio"] is not None for one in upgrade["statements"])
        print(f"statements: {len(upgrade['statements'])}, {measured} of them with an interval")
        print(f"killed after {duration(runs[0].wall_s)}, ended {duration(runs[1].wall_s)} after it was started again")
        print(f"exit code: {runs[1].exit_code}")
        print(f"most memory: {size(max(run.memory_bytes for run in runs))}")
        print(f"most disk: {size(max(run.disk_bytes for run in runs))}")


def _tables() -> Iterator[str]:
    """Yield the SQL of each table."""
    for number in range(1, _TABLES + 1):
        yield _TABLE.format(name=f"t{number}", rows=2000 + 38_000 * number // _TABLES)


def _statements(number: int, seed: int) -> Iterator[str]:
    rng, fingerprints = random.Random(seed), set[str]()  # noqa: S311 - not for cryptography
    while len(fingerprints) < number:
        a, b = rng.sample(range(1, _TABLES + 1), 2)
        text = _KINDS[len(fingerprints) % len(_KINDS)].format(
            a=f"t{a}",
            b=f"t{b}",
            columns=", ".join(sorted(rng.sample(_COLUMNS, rng.randint(1, len(_COLUMNS))))),
            id=rng.randint(1, 2000),
            kind=rng.randint(0, 99),
            other=rng.randint(0, 99),
            amount=rng.randint(1, 10_000),
        )
        # Statements that differ only in constants would count as one.
        if (fingerprint := parsed(text).fingerprint) not in fingerprints:
            fingerprints.add(fingerprint)
            yield f"-- name: s{len(fingerprints)}\n{text};\n"


def _run(command: Sequence[str], folder: Path, kill_after_s: float) -> Used:
    """Run the check to its end, or kill it after this time."""
    free_bytes = least_free_bytes = shutil.disk_usage(folder).free
    most_memory_bytes, began = 0, time.monotonic()
    with (folder / "answer.json").open("w") as output, subprocess.Popen(command, cwd=folder, stdout=output) as check:
        process = psutil.Process(check.pid)
        while check.poll() is None:
            if time.monotonic() - began > kill_after_s:
                check.kill()
                check.wait()
                break
            # It may have ended since.
            with suppress(psutil.NoSuchProcess):
                most_memory_bytes = max(most_memory_bytes, process.memory_info().rss)
            least_free_bytes = min(least_free_bytes, shutil.disk_usage(folder).free)
            time.sleep(_LOOK_S)
    return Used(
        wall_s=time.monotonic() - began,
        memory_bytes=most_memory_bytes,
        disk_bytes=free_bytes - least_free_bytes,
        exit_code=check.returncode,
    )


if __name__ == "__main__":
    main()
