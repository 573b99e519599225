"""Windows of load that several hosts send to one server at once, merged into one.

The clients and the rate of the workload are divided among the hosts. Only the interval in which all of them work
counts, and their latencies are added up as histograms, so that a percentile is as exact as that of one host.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from pgversus.errors import StudyError
from pgversus.lab.arm_servers import ServerSet
from pgversus.lab.failures import failing_the_trial
from pgversus.lab.load_windows import BlockWork, WarmTrialRunner, run_until_steady
from pgversus.lab.readings import read_after, read_before
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window, merge
from pgversus.study.comparison import Arm
from pgversus.study.workload import PgbenchWorkload, threads_used
from pgversus.text.units import count
from pgversus.workload.pgbench_run import PgbenchLoad

_SEEDS_APART = 104_729
# Hosts must not draw the same keys at the same time. A prime, so that seeds of other windows are not met.
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JointWindow:
    """One window of all hosts."""

    windows: tuple[Window, ...]
    """Of each host."""
    transactions: int
    """Of the runs that contained the windows, with those before and after them."""
    clock_error_s: float
    """The largest possible difference between the clock of a host and that of the driver."""


class LoadHosts(Protocol):
    """The hosts that send the load."""

    @property
    def names(self) -> Sequence[str]:
        """Their names, in a fixed order."""

    def run(self, loads: Sequence[PgbenchLoad], arm: Arm, seconds: float, seeds: Sequence[int]) -> JointWindow | None:
        """Let all hosts send their load to an external server at once, for one window; None if it must be repeated.

        loads, seeds: of each host. TrialFailedError if the load fails on one of them, HostError if a host fails.
        """


def divided(workload: PgbenchWorkload, hosts: int) -> list[PgbenchWorkload]:
    """Return the workload of each host: an equal part of the clients, or one more, and their part of the rate.

    StudyError with fewer clients than hosts.
    """
    clients = workload.clients
    if clients < hosts:
        raise StudyError(
            "the workload has fewer clients than the fleet has hosts",
            slug="fleet-few-clients",
            where=f"-c {clients}",
            found=count(hosts, "host"),
            expected="at least one client for each host",
            to_do=f"use -c {hosts} or more (clients in a study file), or stop some of the workers",
        )
    parts = [clients // hosts + (number < clients % hosts) for number in range(hosts)]
    return [
        replace(
            workload,
            clients=part,
            threads=threads_used(workload.threads, part),
            rate=None if workload.rate is None else workload.rate * part / clients,
        )
        for part in parts
    ]


def merged(joint: JointWindow) -> Window:
    """Return the windows of all hosts as one."""
    windows = joint.windows
    names = sorted({name for one in windows for name in one.counters})
    return Window(
        transactions=sum(one.transactions for one in windows),
        seconds=windows[0].seconds,
        failed=sum(one.failed for one in windows),
        latency_sum_s=math.fsum(one.latency_sum_s for one in windows),
        latency_max_s=max(one.latency_max_s for one in windows),
        histogram=merge([one.histogram for one in windows]),
        unclocked=sum(one.unclocked for one in windows),
        connect_s=max(one.connect_s for one in windows),
        output="\n".join(one.output for one in windows),
        counters={name: math.fsum(one.counters[name] for one in windows) for name in names},
        gauges={"load_hosts": float(len(windows)), "load_clock_error_s": joint.clock_error_s},
        was_disturbed=any(one.was_disturbed for one in windows),
    )


class JointTrialRunner(WarmTrialRunner):
    """The external servers of one context under the load of several hosts."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[PgbenchLoad], preparation: Preparation, hosts: LoadHosts
    ) -> None:
        """Take the arguments of WarmTrialRunner, and the hosts that send the load instead of this one."""
        super().__init__(servers, loads, preparation)
        self._hosts = hosts
        self._of_hosts = [
            [replace(load, workload=one) for one in divided(load.workload, len(hosts.names))] for load in loads
        ]

    def _load_until_steady(self, arm: int, seed: int) -> None:
        def window(seconds: float, seed: int) -> Window:
            while (joint := self._joint(arm, seconds, seed)) is None:
                pass
            return merged(joint)

        if self._loads[arm].workload.is_open_loop:
            window(self._design.warm_up_s, seed)
        else:
            run_until_steady(window, self._design.warm_up_s, seed)

    def _measured(self, arm: int, seed: int, name: str) -> Window:
        """Measure one window; the counters include what the runs did outside it, which is removed in proportion."""
        del name
        server = self._set.servers[arm]
        with failing_the_trial():
            counters = self._set.counters(arm)
            joint = None
            while joint is None:
                work = BlockWork(before=read_before(server, counters))
                joint = self._joint(arm, self._design.window_s, seed)
            work.transactions = joint.transactions
            after = read_after(server, counters)
            self._set.pause_like_others(arm)
        window = merged(joint)
        of_server = work.counters(after, self._set.own_growth(arm), window.transactions)
        return replace(window, counters={**window.counters, **of_server})

    def _joint(self, arm: int, seconds: float, seed: int) -> JointWindow | None:
        seeds = [(seed + number * _SEEDS_APART) % _LARGEST_SEED for number in range(len(self._hosts.names))]
        return self._hosts.run(self._of_hosts[arm], self._set.servers[arm].arm, seconds, seeds)
