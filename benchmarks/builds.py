"""Measure the builds of six block sizes of one release: time, processor time, ccache hits. `make bench-builds`.

The command line builds them into a separate cache that is empty at first. The first build shows the full cost. The
others show the effect of ccache if only the block size differs. The last one is removed and built again, which shows
the effect of ccache if nothing differs.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RELEASE = "17"
SIZES = (8, 1, 2, 4, 16, 32)
PROGRAM = Path(sys.executable).with_name("pgversus")


def main() -> None:
    """Print the table. A directory given as the argument becomes the cache and is not removed."""
    if len(sys.argv) > 1:
        _print_table(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory(prefix="pgversus-builds-") as name:
        _print_table(Path(name))


def _print_table(cache: Path) -> None:
    cache.mkdir(exist_ok=True)
    # Under root, the servers' user must be able to enter it.
    cache.chmod(0o755)
    environment = {**os.environ, "PGVERSUS_CACHE": str(cache)}
    print(f"{'build':<20}{'wall s':>8}{'CPU s':>8}{'ccache hits':>16}", flush=True)
    names = [_print_row(f"{RELEASE}+blocksize={size}", cache, environment) for size in SIZES]
    subprocess.run([PROGRAM, "servers", "remove", names[-1]], env=environment, check=True, capture_output=True)
    _print_row(f"{RELEASE}+blocksize={SIZES[-1]}", cache, environment)


def _print_row(server: str, cache: Path, environment: dict[str, str]) -> str:
    """Build, print the row, and return the name of the build."""
    before, began, used = _hits(cache), time.perf_counter(), _cpu_s()
    command = [str(PROGRAM), "servers", "build", server]
    reported = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wall_s, cpu_s = time.perf_counter() - began, _cpu_s() - used
    hits, calls = (now - then for now, then in zip(_hits(cache), before, strict=True))
    print(f"{server:<20}{wall_s:>8.0f}{cpu_s:>8.0f}{f'{hits} of {calls}':>16}", flush=True)
    return Path(reported.stdout.decode().split()[-1]).parent.name


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _hits(cache: Path) -> tuple[int, int]:
    """Return the number of ccache hits and the number of cacheable calls."""
    environment = {**os.environ, "CCACHE_DIR": str(cache / "ccache")}
    reported = subprocess.run(["ccache", "--print-stats"], env=environment, check=True, capture_output=True)
    found = {name: int(value) for name, value in re.findall(r"^(\w+)\s+(\d+)$", reported.stdout.decode(), re.MULTILINE)}
    hits = found.get("direct_cache_hit", 0) + found.get("preprocessed_cache_hit", 0)
    return hits, hits + found.get("cache_miss", 0)


if __name__ == "__main__":
    main()
