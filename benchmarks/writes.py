"""Measure how short the windows of loads that write may be, on real servers: `make bench-writes`.

The writes of an arm are flushed later: by the WAL writer, the checkpointer, the kernel. With short windows, part of
this work falls into the windows of the other arm. Two settings change the writes or the waits of a TPC-B load. For each
window length, with the same load per block, the table shows the ratio of throughput and twice its standard error. The
lengths take turns. Windows that find a smaller difference than long windows are too short. The host must be idle.
"""

import argparse
import math
import statistics

from benchmarks.real_blocks import SERVER, RealBlock, real_blocks

_LOAD = ("-i", "-s", "10", "-b", "tpcb-like", "-c", "4", "-j", "2", "--warmup", "2s", "--blocks", "2")
_LOAD_S = 10.0
"""Seconds of load of each arm in a block."""
LENGTHS_S = (0.02, 0.2, 1.0, 5.0)
CASES = {
    "the same": (SERVER,),
    "synchronous_commit on, off": ("--set", "synchronous_commit=on,off"),
    # With a checkpoint every few seconds, after which pages are written in full, or not.
    "full_page_writes on, off": ("--set", "full_page_writes=on,off", "--set", "max_wal_size=64MB"),
}
"""Arguments that set the two arms, by name of the case."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="turns of 2 blocks of each length; default 3")
    parser.add_argument("--case", action="append", choices=list(CASES))
    arguments = parser.parse_args()
    print(
        f"{2 * arguments.turns} blocks per length, {_LOAD_S:g} s of load of each arm in a block; contender's tps in %"
    )
    print(f"{'arms':<28}" + "".join(f"{f'{1000 * length_s:g} ms':>18}" for length_s in LENGTHS_S), flush=True)
    for name, arms in CASES.items():
        if name not in (arguments.case or [name]):
            continue
        found: dict[float, list[RealBlock]] = {length_s: [] for length_s in LENGTHS_S}
        for turn in range(arguments.turns):
            for length_s in LENGTHS_S[:: -1 if turn % 2 else 1]:
                windows = ("--window", f"{1000 * length_s:g}ms", "--windows", f"{_LOAD_S / length_s:.0f}")
                found[length_s] += real_blocks((SERVER, *arms, *_LOAD, *windows), {})
        print(f"{name:<28}" + "".join(f"{_cell(blocks):>18}" for blocks in found.values()), flush=True)


def _cell(blocks: list[RealBlock]) -> str:
    logs = [block.log_ratio for block in blocks]
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{100 * math.exp(statistics.fmean(logs)):.1f} ±{200 * error:.1f}"


if __name__ == "__main__":
    main()
