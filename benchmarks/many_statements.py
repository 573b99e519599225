"""Check a thousand statements in pieces that end by kill -9: `make bench-many-statements`.

The application has 50 tables of 2,000 to 40,000 rows and 1,000 statements of ten kinds, each over some of the tables.
The benchmark prints the estimate of the dry run and starts the check. After an hour (--kill-after-min), it kills it
with SIGKILL; started again with the same --folder, it resumes. When the check has ended, it prints what all pieces have
used, next to the estimate: time, the most memory of pgversus itself, and the most disk space. The exit code is 1 if it
used more than 500 MB of memory.
"""

import argparse
import json
import math
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pgversus.host.directories import open_cache
from pgversus.host.files import tree_bytes
from pgversus.host.processes import peak_resident_bytes
from pgversus.statements.parsing import parsed
from pgversus.store.folder import holds_results
from pgversus.store.reading import read_results
from pgversus.text.units import duration, size

_TABLES, _STATEMENTS = 50, 1000
_LOOK_S, _DISK_LOOK_S = 0.05, 10.0
_MOST_MEMORY_BYTES = 500e6
_RESULTS, _ANSWER, _PIECES = "results", "answer.json", "pieces.jsonl"
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
class Piece:
    """What one run of the check has used."""

    wall_s: float
    memory_bytes: int
    """Most resident memory of its own process, without servers and pgbench."""
    disk_bytes: int
    """Most bytes of its running directory, of new snapshots and of the results."""
    exit_code: int
    """-9 if it was killed."""
    blocks_before: int
    """Stored blocks when it began."""
    blocks: int


def main() -> None:
    """Print the estimate and measure a piece; after the last one, print what all have used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=Path("bench-many-statements"), help="default bench-many-statements"
    )
    parser.add_argument("--versions", nargs=2, default=("16.12", "17.8"), help="default 16.12 17.8")
    parser.add_argument("--statements", type=int, default=_STATEMENTS, help=f"default {_STATEMENTS}")
    parser.add_argument("--budget", default="1h", help="for confirming; default 1h")
    parser.add_argument("--kill-after-min", type=float, default=60.0, metavar="MINUTES", help="default 60")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    # The servers' user reads the setup file.
    folder.chmod(0o755)
    (folder / "setup.sql").write_text("".join(_tables()), encoding="utf-8")
    (folder / "many.sql").write_text("".join(_statements(arguments.statements, arguments.seed)), encoding="utf-8")
    sources = ("--setup", "setup.sql", "--statements", "many.sql", "--results", _RESULTS)
    design = ("--budget", arguments.budget, "--seed", str(arguments.seed))
    command = [Path(sys.executable).with_name("pgversus"), "upgrade-check", *arguments.versions, *sources, *design]
    print(subprocess.run([*command, "--dry-run"], cwd=folder, capture_output=True, text=True, check=True).stdout)
    pieces = list(_stored(folder / _PIECES))
    if not pieces or pieces[-1].exit_code == -signal.SIGKILL:
        pieces.append(_run([*command, "--json"], folder, 60 * arguments.kill_after_min))
        with (folder / _PIECES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(pieces[-1])) + "\n")
    for piece in pieces:
        print(
            f"{duration(piece.wall_s)}, exit code {piece.exit_code}, {piece.blocks_before} to {piece.blocks} blocks, "
            f"memory {size(piece.memory_bytes)}, disk {size(piece.disk_bytes)}"
        )
    most_memory_bytes = max(piece.memory_bytes for piece in pieces)
    if pieces[-1].exit_code == -signal.SIGKILL:
        print("killed; start it again to continue")
    else:
        _print_answer(folder, pieces)
    sys.exit(int(most_memory_bytes > _MOST_MEMORY_BYTES))


def _print_answer(folder: Path, pieces: Sequence[Piece]) -> None:
    wall_s = sum(piece.wall_s for piece in pieces)
    memory, disk = (max(values) for values in zip(*((one.memory_bytes, one.disk_bytes) for one in pieces), strict=True))
    print(f"{len(pieces)} pieces, {duration(wall_s)}; most memory {size(memory)}, most disk {size(disk)}")
    (upgrade,) = json.loads((folder / _ANSWER).read_text(encoding="utf-8"))["upgrades"]
    findings = Counter(one["finding"] for one in upgrade["statements"])
    measured = sum(one["ratio"] is not None for one in upgrade["statements"])
    print(f"statements: {len(upgrade['statements'])}, {measured} of them with an interval")
    print(", ".join(f"{number} {finding}" for finding, number in findings.most_common()))


def _stored(file: Path) -> Iterator[Piece]:
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        yield Piece(**json.loads(line))


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


def _run(command: Sequence[str | Path], folder: Path, kill_after_s: float) -> Piece:
    """Run the check to its end, or kill it after this time."""
    cache, results = open_cache(), folder / _RESULTS
    earlier, before = set(cache.snapshots.glob("*")), _blocks(results)
    memory_bytes, disk_bytes, began, looked = 0, 0, time.monotonic(), -math.inf
    with (folder / _ANSWER).open("w") as output, subprocess.Popen(command, cwd=folder, stdout=output) as check:
        while check.poll() is None:
            now = time.monotonic()
            if now - began > kill_after_s:
                check.kill()
                check.wait()
                break
            # None if it has ended since.
            memory_bytes = max(memory_bytes, peak_resident_bytes(check.pid) or 0)
            if now - looked > _DISK_LOOK_S:
                new = (path for path in cache.snapshots.glob("*") if path not in earlier)
                disk_bytes = max(disk_bytes, sum(map(tree_bytes, (*cache.runs.glob("*"), *new, results))))
                looked = now
            time.sleep(_LOOK_S)
    return Piece(
        wall_s=time.monotonic() - began,
        memory_bytes=memory_bytes,
        disk_bytes=disk_bytes,
        exit_code=check.returncode,
        blocks_before=before,
        blocks=_blocks(results),
    )


def _blocks(results: Path) -> int:
    return sum(len(one.blocks) for one in read_results(results).contexts) if holds_results(results) else 0


if __name__ == "__main__":
    main()
