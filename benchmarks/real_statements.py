"""Check 30 statements on two versions, and compare the findings with the truth: `make bench-statements`.

The statements come from the release notes of 15 to 18 (statements/statements.sql). The truth comes from pgbench, which
runs each statement for a minute on each server, in turns of ten seconds. Its results are appended to a file, from which
the benchmark continues when it is started again. Then upgrade checks classify all statements, in both directions, and
checks of each version against itself look for false findings. A statement is *missed* if its true difference is at
least 10 % and the check does not find it. It is *wrong* if the check claims a difference of the other sign, or any
difference although the true one is within 2 %. The host must be idle.
"""

import argparse
import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common_methods import tps_of, two_servers
from benchmarks.real_blocks import pgversus
from pgversus.data.loading import settle
from pgversus.postgres import catalog
from pgversus.postgres.server import Server
from pgversus.postgres.session import connect
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_sql

_FILES = Path(__file__).with_name("statements")
_VERSIONS = ("15.14", "18.0")
_TURNS = 6
_MISSED, _SAME = math.log(1.1), math.log(1.02)
_SIGNS = {"slower": -1, "likely slower": -1, "faster": 1, "likely faster": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A statement's speeds, as pgbench measured them."""

    name: str
    versions: tuple[str, str]
    tps: tuple[float, float]
    """Transactions per second on each version."""

    def log_ratio(self, source: str) -> float:
        """Return the log ratio of the speed on the other version to that on the source."""
        found = math.log(self.tps[1] / self.tps[0])
        return found if source == self.versions[0] else -found


def main() -> None:
    """Measure the truth where it is unknown, then print a table for each direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", nargs=2, default=_VERSIONS, help=f"default {' '.join(_VERSIONS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of pgbench for each statement; default 60")
    parser.add_argument("--truth", type=Path, default=Path("bench-statements.jsonl"), help="results of pgbench")
    parser.add_argument("--budget", default="60s", help="for confirming in a check; default 60s")
    parser.add_argument("--same", type=int, default=1, help="checks of each version against itself; default 1")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    a, b = arguments.versions
    texts = _statements()
    truths = _truths(texts, (a, b), arguments.truth, arguments.seconds)
    for source, target in ((a, b), (b, a)):
        document, wall_s = _checked(source, target, arguments.budget, arguments.seed)
        print(f"\n{source} to {target}: {wall_s:.0f} s")
        print(f"{'statement':<32}{'pgbench':>9}{'pgversus':>10}{'low':>8}{'high':>8}  finding")
        for name in texts:
            print(_row(truths[name].log_ratio(source), _found(document, name)))
    for version in (a, b):
        for number in range(arguments.same):
            document, wall_s = _checked(version, version, arguments.budget, arguments.seed + number)
            claimed = [one["statement"]["name"] for one in _all_found(document) if one["finding"] in _SIGNS]
            print(f"{version} to {version}: {wall_s:.0f} s, {len(claimed)} differences found {claimed}", flush=True)


def _statements() -> dict[str, str]:
    """Return the text of each statement by name."""
    collection = Collection()
    file = _FILES / "statements.sql"
    read_sql(file.name, file.read_text(encoding="utf-8"), file.stem, collection)
    return {one.name: one.text for one in collection.statements}


def _truths(texts: Mapping[str, str], versions: tuple[str, str], file: Path, seconds: float) -> dict[str, Truth]:
    """Return the truth of each statement, from the file if it is there; otherwise measure and append it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    known = [Truth(**{**found, "versions": tuple(found["versions"])}) for found in map(json.loads, lines)]
    truths = {one.name: one for one in known if one.versions == versions}
    if missing := [name for name in texts if name not in truths]:
        setup = (_FILES / "setup.sql").read_text(encoding="utf-8")
        with two_servers(versions, (setup, setup), ({}, {})) as servers:
            for server in servers:
                settle(server.target, is_restored=False)
                with connect(server.target) as connection:
                    catalog.analyze_fully(connection)
            for name in missing:
                truths[name] = Truth(name=name, versions=versions, tps=_tps(texts[name], servers, seconds))
                with file.open("a", encoding="utf-8") as output:
                    output.write(json.dumps(asdict(truths[name])) + "\n")
    return truths


def _tps(text: str, servers: Sequence[Server], seconds: float) -> tuple[float, float]:
    """Return the mean speed on each server (1/s). The turns take the servers in alternating order."""
    found: dict[int, list[float]] = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "statement.sql"
        # The servers' user reads the script.
        script.parent.chmod(0o755)
        reads = text.lstrip().upper().startswith(("SELECT", "WITH"))
        script.write_text(f"{text};\n" if reads else f"BEGIN;\n{text};\nROLLBACK;\n", encoding="utf-8")
        speed = tps_of(script)
        for turn in range(_TURNS):
            for arm in (0, 1)[:: -1 if turn % 2 else 1]:
                found[arm].append(speed(servers[arm], seconds / _TURNS))
    return math.fsum(found[0]) / _TURNS, math.fsum(found[1]) / _TURNS


def _checked(source: str, target: str, budget: str, seed: int) -> tuple[dict[str, Any], float]:
    """Return the answer of an upgrade check, and its wall time in seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        data = ["--setup", str(_FILES / "setup.sql"), "--full-statistics"]
        statements = ["--statements", str(_FILES / "statements.sql"), "--coverage", "100%"]
        design = ["--budget", budget, "--seed", str(seed), "--no-plans", "--json"]
        text = pgversus(["upgrade-check", source, target, *data, *statements, *design], folder)
    document: dict[str, Any] = json.loads(text)
    return document, time.monotonic() - began


def _all_found(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    (upgrade,) = document["upgrades"]
    yield from upgrade["statements"]


def _found(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    (found,) = (one for one in _all_found(document) if one["statement"]["name"] == name)
    return found


def _row(truth: float, found: Mapping[str, Any]) -> str:
    ratios = (found["ratio"], found["low"], found["high"])
    cells = "".join(
        f"{'-':>{width}}" if one is None else f"{one:{width}.3f}" for one, width in zip(ratios, (10, 8, 8), strict=True)
    )
    claimed = _SIGNS.get(found["finding"], 0)
    if claimed and (claimed * truth < 0 or abs(truth) < _SAME):
        remark = "  WRONG"
    else:
        remark = "  MISSED" if not claimed and abs(truth) >= _MISSED else ""
    return f"{found['statement']['name']:<32}{math.exp(truth):9.3f}{cells}  {found['finding']}{remark}"


if __name__ == "__main__":
    main()
