"""Measure how often identical real servers are called different: `make bench-identical`.

Runs whole comparisons of 17.8 with itself, as a user would type them, under four loads in turn. Prints a line for each
comparison, and the share of comparisons that claimed a difference. The host must be idle.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.real_blocks import SERVER, pgversus

_SCRIPTS = {
    "loop.sql": "SELECT count(*) FROM generate_series(1, 100000);\n",
    "short.sql": "SELECT count(*) FROM generate_series(1, 20000);\n",
}
LOADS = {
    "loop of 18 ms, 1 client": ("-f", "loop.sql"),
    "lookup, 1 client": ("-s", "5", "-S"),
    "lookup, 4 clients": ("-s", "5", "-S", "-c", "4", "-j", "2"),
    "loop of 4 ms, 4 clients": ("-f", "short.sql", "-c", "4"),
}


def main() -> None:
    """Print a line for each comparison, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=100, help="number for all loads together; default 100")
    parser.add_argument("--budget", default="90s", help="for each comparison; default 90s")
    parser.add_argument("--seed", type=int, default=1, help="first seed; default 1")
    arguments = parser.parse_args()
    verdicts: Counter[str] = Counter()
    print(f"{'seed':>5} {'load':<25}{'verdict':<12}{'ratio':>8}{'low':>8}{'high':>8}{'blocks':>8}{'wall s':>8}")
    for number in range(arguments.comparisons):
        seed, load = arguments.seed + number, list(LOADS)[number % len(LOADS)]
        began = time.monotonic()
        document = _compared(LOADS[load], arguments.budget, seed)
        (found,) = document["verdicts"]
        verdicts[found["verdict"]] += 1
        # A verdict without a result has no ratio.
        ratios = [found[key] for key in ("ratio", "low", "high")]
        cells = "".join(f"{'-':>8}" if ratio is None else f"{ratio:8.4f}" for ratio in ratios)
        print(
            f"{seed:5} {load:<25}{found['verdict']:<12}{cells}{found['blocks']:8}{time.monotonic() - began:8.0f}",
            flush=True,
        )
    wrong = verdicts["faster"] + verdicts["slower"]
    print(f"{dict(verdicts)}: called different {100 * wrong / arguments.comparisons:.1f} %")


def _compared(load: tuple[str, ...], budget: str, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in _SCRIPTS.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        design = ("--no-plans", "--budget", budget, "--seed", str(seed), "--json")
        document: dict[str, Any] = json.loads(pgversus(("compare", SERVER, SERVER, "-i", *load, *design), folder))
    return document


if __name__ == "__main__":
    main()
