"""CPU pinning of clients and servers.

On a host with few processors, most start-to-start variation comes from where the kernel places client and server; with
dedicated processors, placement is the same for every arm (docs/statistics.md, "Processors").
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from pgversus.errors import HostError
from pgversus.text.units import AUTO, OFF, parse_processors

_FEWEST = 4
# With fewer, a dedicated processor for the client takes too much from the server to be the default.


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """Processor numbers; empty tuples if nothing is pinned."""

    clients: tuple[int, ...] = ()
    servers: tuple[int, ...] = ()


def split_processors(pin: str) -> Processors:
    """Divide the processors that this process may use between clients and servers.

    pin: the value of --pin. With `auto` and four or more processors, the clients get a quarter of them.
    HostError for unavailable processors, and for a list that leaves none to the servers.
    """
    usable = tuple(sorted(os.sched_getaffinity(0)))
    if pin == OFF or (pin == AUTO and len(usable) < _FEWEST):
        return Processors()
    clients = usable[: len(usable) // 4] if pin == AUTO else parse_processors(pin, "--pin")
    servers = tuple(cpu for cpu in usable if cpu not in clients)
    if not servers or not set(clients) <= set(usable):
        raise HostError(
            "pgbench and the servers cannot be pinned to these processors",
            slug="host-processors",
            where=f"--pin {pin}",
            found=f"usable processors: {', '.join(map(str, usable))}",
            expected="one or more of these for pgbench, and at least one left for the servers",
            to_do=f"--pin {usable[0]}, or --pin off" if len(usable) > 1 else "--pin off",
        )
    return Processors(clients=clients, servers=servers)


@contextmanager
def started_on(processors: Sequence[int]) -> Iterator[None]:
    """Pin programs started in this context, and their descendants, to these processors; on any if empty."""
    if not processors:
        yield
        return
    before = os.sched_getaffinity(0)
    # Children inherit the affinity, so that none of their threads ever runs elsewhere.
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def threads_of(pid: int) -> list[int]:
    """Return the thread ids of a process in ascending order; empty if it has ended."""
    try:
        return sorted(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir())
    except FileNotFoundError:
        return []


def place(tasks: Sequence[int], processors: Sequence[int]) -> bool:
    """Pin each process or thread to one of these processors, in turn.

    Return whether this is permitted: a process of another user requires CAP_SYS_NICE, which containers often lack.
    """
    permitted = [_allow(task, (processor,)) for task, processor in zip(tasks, cycle(processors), strict=False)]
    return all(permitted)


def release(tasks: Sequence[int], processors: Sequence[int]) -> None:
    """Let each process or thread run on any of these processors."""
    for task in tasks:
        _allow(task, processors)


def _allow(task: int, processors: Sequence[int]) -> bool:
    try:
        os.sched_setaffinity(task, processors)
    except PermissionError:
        return False
    except OSError:
        # It has ended.
        return True
    return True
