"""Check 30 statements on two versions, and compare the findings with the truth: `make bench-statements`.

The statements come from the release notes of 15 to 18 (statements/statements.sql). --statements held_out.sql checks 14
others on the same data; --work names a folder with data and statements.
The truth comes from pgbench, which runs each statement for a minute on each server: ten seconds in each of six turns,
each turn on newly loaded and restarted servers. Upgrade checks classify all statements, in both directions, and checks
of each version against itself look for false findings. Each turn and each check is stored in --folder, from which the
benchmark continues when it is started again. The host must be idle.

A statement is *wrong* if the check claims a difference although the 95 % interval of the truth lies on the other side,
or within 2 % of no difference, and *not confirmed* if that interval includes no difference. A difference that is not
claimed is *missed* if the interval lies beyond 10 %, and *small* if it lies on one side of no difference.
"""

import argparse
import hashlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

from benchmarks.common_methods import tps_of, two_servers
from pgversus.data.loading import settle
from pgversus.errors import ExitCode
from pgversus.postgres import catalog
from pgversus.postgres.server import Server
from pgversus.postgres.session import connect
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_sql
from pgversus.statements.statement import RecordedStatement, StatementKind
from pgversus.store.folder import confirmation_folder, holds_results
from pgversus.store.reading import read_results

_WORK = Path(__file__).with_name("statements")
_VERSIONS = ("15.14", "18.0")
_TURNS = 6
_MISSED, _SAME = math.log(1.1), math.log(1.02)
_LARGE = 1000.0
"""Ratios from here on are shown without decimals."""
_SIGNS = {"slower": -1, "likely slower": -1, "faster": 1, "likely faster": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """The speeds of one statement in one turn."""

    key: str
    """Identifies the data, the text, and the time of pgbench."""
    name: str
    versions: tuple[str, str]
    turn: int
    tps: tuple[float, float]
    """Transactions per second on each version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The log ratio of a statement's speeds, with its 95 % interval."""

    point: float
    error: float
    """Half the width."""

    def reversed(self) -> "Truth":
        """Return the truth of the other direction."""
        return Truth(point=-self.point, error=self.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The stored answer of one upgrade check."""

    document: Mapping[str, Any]
    wall_s: float
    load_s: float
    """Seconds of load on both servers, in the screening and the confirmation."""

    @property
    def findings(self) -> dict[str, Mapping[str, Any]]:
        """The findings by name of the statement."""
        (upgrade,) = self.document["upgrades"]
        return {one["statement"]["name"]: one for one in upgrade["statements"]}


def main() -> None:
    """Measure what is missing, then print a table for each direction and a line for the checks of equal versions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, help="results, of one file only; default bench-statements, after the name of the file"
    )
    parser.add_argument("--work", type=Path, default=_WORK, help="folder with setup.sql and the statements")
    parser.add_argument("--statements", default="statements.sql", help="a file in it; default statements.sql")
    parser.add_argument("--versions", nargs=2, default=_VERSIONS, help=f"default {' '.join(_VERSIONS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of pgbench for each statement; default 60")
    parser.add_argument("--budget", default="10m", help="for confirming in a check; default 10m")
    parser.add_argument("--same", type=int, default=20, help="checks of equal versions, in turn; default 20")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin nothing after this time; 0 prints results"
    )
    arguments = parser.parse_args()
    begin_before = time.monotonic() + 60 * arguments.minutes
    folder = arguments.folder or Path(f"bench-{Path(arguments.statements).stem}")
    folder.mkdir(parents=True, exist_ok=True)
    work = _Work(arguments.work.absolute(), arguments.statements, arguments.seconds)
    a, b = arguments.versions
    checks = _Checks(work, folder.absolute(), arguments.budget, begin_before)
    directions = [(source, target, checks.get(source, target, 1)) for source, target in ((a, b), (b, a))]
    truths = _truths(work, (a, b), folder / "truth.jsonl", begin_before)
    equal = [(a, b)[number % 2] for number in range(arguments.same)]
    same = [checks.get(version, version, number) for number, version in enumerate(equal)]
    for source, target, check in directions:
        if check is not None:
            print(f"\n{source} to {target}: {check.wall_s:.0f} s, {check.load_s:.0f} s of load")
            _print_table(check, {name: one if source == a else one.reversed() for name, one in truths.items()})
    _print_same([one for one in same if one is not None])


class _Work:
    """The data and the statements."""

    def __init__(self, folder: Path, statements: str, seconds: float) -> None:
        """statements: a file in the folder. seconds: time of pgbench for each statement and server."""
        self.folder, self.file = folder, folder / statements
        self.setup = (folder / "setup.sql").read_text(encoding="utf-8")
        self.turn_s = seconds / _TURNS
        collection = Collection()
        read_sql(self.file.name, self.file.read_text(encoding="utf-8"), self.file.stem, collection)
        self.statements = {one.name: one for one in collection.statements}

    def key(self, name: str) -> str:
        """Return what identifies measurements of a statement."""
        parts = (self.setup, self.statements[name].text, repr(self.turn_s))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _truths(work: _Work, versions: tuple[str, str], file: Path, begin_before: float) -> dict[str, Truth]:
    """Return the truth of each statement that was measured in at least two turns; measure missing turns first."""
    known = [one for one in _stored(file) if one.versions == versions]
    measured = {
        (one.name, one.turn): one for one in known if one.name in work.statements and one.key == work.key(one.name)
    }
    for turn in range(_TURNS):
        missing = [name for name in work.statements if (name, turn) not in measured]
        if not missing or time.monotonic() >= begin_before:
            continue
        for one in _turn(work, versions, turn, missing):
            measured[one.name, turn] = one
            with file.open("a", encoding="utf-8") as output:
                # An incomplete line before it stays alone.
                output.write("\n" + json.dumps(asdict(one)))
    ratios = {
        name: [
            math.log(measured[name, turn].tps[1] / measured[name, turn].tps[0])
            for turn in range(_TURNS)
            if (name, turn) in measured
        ]
        for name in work.statements
    }
    return {name: _truth(found) for name, found in ratios.items() if len(found) > 1}


def _truth(log_ratios: Sequence[float]) -> Truth:
    n = len(log_ratios)
    return Truth(point=fmean(log_ratios), error=float(student.ppf(0.975, n - 1)) * stdev(log_ratios) / math.sqrt(n))


def _stored(file: Path) -> Iterator[Speeds]:
    """Yield the stored speeds; the last line may be incomplete."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        yield Speeds(**{**found, "versions": tuple(found["versions"]), "tps": tuple(found["tps"])})


def _turn(work: _Work, versions: tuple[str, str], turn: int, names: Sequence[str]) -> Iterator[Speeds]:
    """Yield the speeds of these statements on newly loaded servers, in random order; those that write come last."""
    with two_servers(versions, (work.setup, work.setup), ({}, {})) as servers:
        for server in servers:
            settle(server.target, is_restored=False)
            with connect(server.target) as connection:
                catalog.analyze_fully(connection)
            # As in a check: shared buffers are empty, and the page cache is not.
            server.stop()
            server.start()
        order = random.Random(turn).sample(names, len(names))  # noqa: S311 - not for cryptography
        order.sort(key=lambda name: work.statements[name].kind is StatementKind.WRITES)
        for place, name in enumerate(order):
            arms = (0, 1)[:: -1 if (turn + place) % 2 else 1]
            found = _tps(work.statements[name], servers, arms, work.turn_s)
            yield Speeds(key=work.key(name), name=name, versions=versions, turn=turn, tps=found)


def _tps(
    statement: RecordedStatement, servers: Sequence[Server], arms: Sequence[int], seconds: float
) -> tuple[float, float]:
    """Return the speed on each server (1/s). arms: the order in which they run."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "statement.sql"
        # The servers' user reads the script.
        script.parent.chmod(0o755)
        is_writing = statement.kind is StatementKind.WRITES
        text = f"BEGIN;\n{statement.text};\nROLLBACK;\n" if is_writing else f"{statement.text};\n"
        script.write_text(text, encoding="utf-8")
        speed = tps_of(script)
        found = {arm: speed(servers[arm], seconds) for arm in arms}
    return found[0], found[1]


class _Checks:
    """Upgrade checks and their stored answers."""

    def __init__(self, work: _Work, folder: Path, budget: str, begin_before: float) -> None:
        """begin_before: moment of the monotonic clock after which no check begins."""
        self._work = work
        self._folder = folder
        self._budget = budget
        self._begin_before = begin_before

    def get(self, source: str, target: str, seed: int) -> Checked | None:
        """Return the answer of a check, from the folder or by measuring; None if it is missing and may not begin."""
        results = self._folder / f"{source}-{target}-{seed}"
        answer = results.with_name(f"{results.name}.json")
        if not answer.exists():
            if time.monotonic() >= self._begin_before:
                return None
            self._measure(source, target, seed, results, answer)
        stored = json.loads(answer.read_text(encoding="utf-8"))
        checked = Checked(document=stored["document"], wall_s=stored["wall_s"], load_s=stored["load_s"])
        if not checked.findings.keys() & self._work.statements.keys():
            raise SystemExit(f"{answer}: a check of other statements")
        return checked

    def _measure(self, source: str, target: str, seed: int, results: Path, answer: Path) -> None:
        """Run a check, or resume it, and store its answer. SystemExit if it ends without an answer."""
        data = ("--setup", str(self._work.folder / "setup.sql"), "--full-statistics")
        statements = ("--statements", str(self._work.file), "--coverage", "100%")
        design = ("--budget", self._budget, "--seed", str(seed), "--results", str(results), "--json")
        command = [
            str(Path(sys.executable).with_name("pgversus")),
            "upgrade-check",
            source,
            target,
            *data,
            *statements,
            *design,
        ]
        began = time.monotonic()
        finished = subprocess.run(
            command, env=os.environ | {"LC_ALL": "C.UTF-8"}, capture_output=True, text=True, check=False
        )
        if finished.returncode not in (ExitCode.DONE, ExitCode.FAILED_TRIALS):
            raise SystemExit(finished.stderr)
        stored = {
            "wall_s": time.monotonic() - began,
            "load_s": sum(map(_load_s, (results, confirmation_folder(results)))),
            "document": json.loads(finished.stdout),
        }
        answer.write_text(json.dumps(stored), encoding="utf-8")
        print(f"{source} to {target}, seed {seed}: {stored['wall_s']:.0f} s", file=sys.stderr, flush=True)


def _load_s(results: Path) -> float:
    """Return the seconds of load in a results folder."""
    if not holds_results(results):
        return 0.0
    blocks = (block for one in read_results(results).contexts for block in one.blocks)
    return math.fsum(trial.seconds for block in blocks for trial in block.trials.values())


def _print_table(check: Checked, truths: Mapping[str, Truth]) -> None:
    print(f"{'statement':<32}{'pgbench':>9}{'+-':>7}{'pgversus':>10}{'low':>8}{'high':>8}  finding")
    remarks = Counter[str]()
    for name, found in check.findings.items():
        truth = truths.get(name)
        remark = _remark(truth, found)
        remarks[remark] += 1
        shown = (
            f"{'-':>9}{'-':>7}"
            if truth is None
            else f"{_ratio(math.exp(truth.point)):>9}{math.expm1(truth.error):7.1%}"
        )
        widths = zip((found["ratio"], found["low"], found["high"]), (10, 8, 8), strict=True)
        ours = "".join(f"{_ratio(one):>{width}}" for one, width in widths)
        plan = ", plan changed" if found["has_changed_plan"] else ""
        print(f"{name:<32}{shown}{ours}  {found['finding']}{plan}{remark and f'  {remark}'}")
    print(", ".join(f"{number} {remark or 'right'}" for remark, number in sorted(remarks.items())))


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < _LARGE else f"{value:.0f}"


def _remark(truth: Truth | None, found: Mapping[str, Any]) -> str:
    """Return what is wrong with a finding; empty if nothing is."""
    if found["low"] is None or found["high"] is None:
        return "NO INTERVAL"
    if truth is None:
        return "without truth" if found["statement"]["is_planning"] else "NO TRUTH"
    claimed = _SIGNS.get(found["finding"], 0)
    low, high = truth.point - truth.error, truth.point + truth.error
    if not claimed:
        least = max(low, -high)
        return "MISSED" if least > _MISSED else "small" if least > 0 else ""
    if max(abs(low), abs(high)) < _SAME or (high < 0 if claimed > 0 else low > 0):
        return "WRONG"
    return "" if (low > 0 if claimed > 0 else high < 0) else "not confirmed"


def _print_same(checks: Sequence[Checked]) -> None:
    """Print how many of the checks of equal versions have each finding."""
    found = Counter[str]()
    for check in checks:
        found.update({one["finding"] for one in check.findings.values()})
    print(f"\n{len(checks)} checks of equal versions; number of those with at least one statement of each finding:")
    for finding, number in found.most_common():
        print(f"{finding:<25}{number:>3}")


if __name__ == "__main__":
    main()
