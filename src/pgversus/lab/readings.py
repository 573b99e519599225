"""Counters of servers and of their host, read before and after a measurement."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from pgversus.host.counters import read_host
from pgversus.host.processes import cpu_time, read_calls
from pgversus.lab.arm_servers import ArmServer
from pgversus.postgres.counters import CounterSession
from pgversus.stats.counters import difference

CPUS = os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All counters at one moment, by name."""

    server: dict[str, float]
    host: dict[str, float]


def read_before(server: ArmServer, session: CounterSession) -> Reading:
    """Read before a window: the host last, to exclude the cost of reading."""
    counters = session.read()
    return Reading(server=counters | _processes(server), host=read_host_of(server))


def read_after(server: ArmServer, session: CounterSession) -> Reading:
    """Read after a window: the host first; the server once the ended sessions have reported."""
    host = read_host_of(server)
    counters = session.read(settled=True)
    return Reading(server=counters | _processes(server), host=host)


def grown(before: Reading, after: Reading, own: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each counter that is present in both readings.

    own: growth caused by the first reading, which is not work of the load.
    """
    server = difference(before.server, after.server)
    load = {name: max(0.0, value - own.get(name, 0.0)) for name, value in server.items()}
    return load | difference(before.host, after.host)


def read_host_of(server: ArmServer) -> dict[str, float]:
    """Return the counters of the server's host; empty if it is a different host."""
    return read_host(server.data_directory) if server.data_directory is not None else {}


def _processes(server: ArmServer) -> dict[str, float]:
    pid = server.postmaster_pid
    times = cpu_time(pid) if pid is not None else None
    if pid is None or times is None:
        return {}
    calls = read_calls(pid)
    counted = {} if calls is None else {"server_read_calls": float(calls)}
    return {"server_cpu_user_s": times.user_s, "server_cpu_system_s": times.system_s} | counted
