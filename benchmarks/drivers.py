"""Compare three ways to drive windows of hundredths of a second, on real servers: `make bench-drivers`.

One server is compared with itself; both arms restart before each block. *slices*: one pgbench for each arm, stopped and
continued. *transactions*: pgbench -t for each window. *own*: sessions to both arms from this program, one thread for
each client, without pgbench's scripts. For each load and way, the table shows the spread of a block's log ratio, its
wall time, the standard error after one minute of wall time, and the throughput. The ways take turns. The host must be
idle.
"""

import argparse
import math
import os
import random
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from benchmarks.common_methods import two_servers
from benchmarks.real_blocks import SERVER, SPIN, RealBlock, real_blocks
from pgversus.postgres.server import Server

_WINDOW_S, _LONGEST_SLICE_S = 0.02, 0.999
_BLOCK_S = 1.0
_WARM_UP_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A statement and the number of clients that send it."""

    name: str
    clients: int
    latency_s: float
    """Approximate, of a single client."""
    statement: str


CASES = tuple(
    Case(name=f"{name}, {clients} clients", clients=clients, latency_s=latency_s, statement=statement)
    for name, latency_s, statement, numbers in (
        ("0.05 ms", 0.00005, "SELECT 1", (1, 4, 24)),
        ("6 ms", 0.006, "SELECT spin(200000)", (1, 4, 24)),
        ("500 ms", 0.5, "SELECT spin(16000000)", (1, 4)),
    )
    for clients in numbers
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3, help="turns of 2 blocks for each way; default 3")
    parser.add_argument("--case", action="append", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    ways = {"slices": _slices, "transactions": _transactions, "own": _own}
    print(f"{2 * arguments.turns} blocks of each way")
    print(f"{'load':<22}{'way':<14}{'sd':>9}{'wall s':>8}{'error after 1 min':>19}{'tps':>9}")
    for case in CASES:
        if case.name not in (arguments.case or [case.name]):
            continue
        found: dict[str, list[RealBlock]] = {way: [] for way in ways}
        for turn in range(arguments.turns):
            for way in sorted(ways, reverse=bool(turn % 2)):
                found[way] += ways[way](case)
        for way, blocks in found.items():
            deviation = statistics.stdev(block.log_ratio for block in blocks)
            wall_s = statistics.fmean(block.wall_s for block in blocks)
            tps = statistics.fmean(block.tps for block in blocks)
            error = 100 * deviation * math.sqrt(wall_s / 60)
            print(f"{case.name:<22}{way:<14}{deviation:9.4f}{wall_s:8.1f}{error:17.2f} %{tps:9.0f}", flush=True)


def _slices(case: Case) -> list[RealBlock]:
    # Without an explicit length, the windows of several clients would be single executions with -t.
    is_slow = case.clients > 1 and _latency_s(case) > _LONGEST_SLICE_S
    return _pgbench(case, *(("--window", f"{1000 * _LONGEST_SLICE_S:.0f}ms") if is_slow else ()))


def _transactions(case: Case) -> list[RealBlock]:
    return _pgbench(case, "--window", f"{max(1, round(_WINDOW_S / _latency_s(case)))}tx")


def _latency_s(case: Case) -> float:
    """Return the approximate latency with all clients together, in seconds."""
    return case.latency_s * max(1.0, case.clients / len(os.sched_getaffinity(0)))


def _pgbench(case: Case, *arguments: str) -> list[RealBlock]:
    files = {"setup.sql": f"{SPIN};\n", "script.sql": f"{case.statement};\n"}
    data_options = ("--setup", "setup.sql", "-f", "script.sql", "-c", str(case.clients), "--blocks", "2")
    return real_blocks((SERVER, SERVER, *data_options, *arguments), files)


def _own(case: Case) -> list[RealBlock]:
    with two_servers((SERVER, SERVER), (SPIN, SPIN), ({}, {})) as servers:
        for server in servers:
            server.stop()
        return [_own_block(case, servers) for _ in range(2)]


def _own_block(case: Case, servers: Sequence[Server]) -> RealBlock:
    began = time.monotonic()
    for server in servers:
        server.start()
    arms = [_OwnArm(server, case) for server in servers]
    for arm in arms:
        arm.run(_WARM_UP_S)
        arm.transactions, arm.seconds = 0, 0.0
    while arms[0].seconds < _BLOCK_S:
        first, second = random.sample(arms, 2)
        for arm in (first, second, second, first):
            arm.run(_WINDOW_S)
    for arm, server in zip(arms, servers, strict=True):
        arm.close()
        server.stop()
    a, b = (arm.transactions / arm.seconds for arm in arms)
    return RealBlock(
        log_ratios=(math.log(b / a),),
        seconds=sum(arm.seconds for arm in arms),
        wall_s=time.monotonic() - began,
        tps=(a + b) / 2,
    )


class _OwnArm:
    """Sessions to one server, each with a thread that sends the statement until the window ends."""

    def __init__(self, server: Server, case: Case) -> None:
        self._statement = case.statement.encode()
        self._sessions = [psycopg.connect(server.target.conninfo, autocommit=True) for _ in range(case.clients)]
        self._begin, self._end = threading.Barrier(case.clients + 1), threading.Barrier(case.clients + 1)
        self._until = 0.0
        self._done = [0] * case.clients
        self._last = [0.0] * case.clients
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(case.clients)]
        self.transactions, self.seconds = 0, 0.0
        for thread in self._threads:
            thread.start()

    def run(self, seconds: float) -> None:
        """Run one window: at least one statement per client; every statement that begins in it runs to its end."""
        began = time.monotonic()
        self._until = began + seconds
        self._begin.wait()
        self._end.wait()
        self.transactions += sum(self._done)
        self.seconds += max(self._last) - began

    def close(self) -> None:
        """End the threads and the sessions."""
        self._until = -1.0
        self._begin.wait()
        for thread in self._threads:
            thread.join()
        for session in self._sessions:
            session.close()

    def _work(self, number: int) -> None:
        session = self._sessions[number]
        while True:
            self._begin.wait()
            if self._until < 0:
                return
            done, now = 0, 0.0
            while now < self._until:
                session.execute(self._statement).fetchall()
                done, now = done + 1, time.monotonic()
            self._done[number], self._last[number] = done, now
            self._end.wait()


if __name__ == "__main__":
    main()
