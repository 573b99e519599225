"""Load in windows of hundredths of a second: runs of a few transactions. Slices of longer runs are in slices.py.

The server's counters are read once before all windows of a block and once after them, since reading takes longer than a
window. What sessions did outside the windows that count is taken out in proportion to the transactions.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from pgversus.errors import PgversusError
from pgversus.host.lost_time import LostTime
from pgversus.lab.measuring.load import Load, finished_transactions, read_window
from pgversus.lab.measuring.postgres_apparatus import WarmApparatus, trial_failed
from pgversus.lab.measuring.readings import Reading, grown, read_after, read_before, read_host_of
from pgversus.lab.measuring.server_set import ServerSet
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.stats.counters import difference
from pgversus.study.counters import COUNTERS

_SHORTEST_S = 1e-6
_WARM_UP_EXECUTIONS = 2
_NOTHING_READ = Reading(server={}, host={})


@dataclass(slots=True)
class Done:
    """What the load of an arm has done since its warm-up in this block."""

    before: Reading = _NOTHING_READ
    transactions: int = 0

    def counters(self, after: Reading, own_growth: Mapping[str, float], transactions: int) -> dict[str, float]:
        """Return the server's counters; what grows with the load only in the share of so many transactions."""
        share = transactions / self.transactions if self.transactions else 0.0
        growth = grown(self.before, after, own_growth)
        return {
            name: value * share if COUNTERS[name].per_transaction else value
            for name, value in growth.items()
            if name in after.server
        }


class ShortApparatus(WarmApparatus):
    """The servers of one context under load in short windows."""

    def __init__(
        self, servers: ServerSet, loads: Sequence[Load], preparation: Preparation, *, prewarms: bool = False
    ) -> None:
        """Take the same as WarmApparatus."""
        super().__init__(servers, loads, preparation, prewarms=prewarms)
        self._preparation = preparation
        self._done: dict[int, Done] = {}

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm up, then read the counters from which the windows are counted."""
        levels = super().warm_up(arm, seed)
        try:
            before = read_before(self._set.servers[arm], self._set.counters(arm))
            # What the warm-up did is not among it.
            self._done[arm] = Done(before=before)
        except PgversusError as error:
            raise trial_failed(error) from error
        return levels

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return what the server counted; what host and client did is with each window."""
        try:
            after = read_after(self._set.servers[arm], self._set.counters(arm))
        except PgversusError as error:
            raise trial_failed(error) from error
        return self._done[arm].counters(after, self._own_growth(arm), transactions)

    def _own_growth(self, arm: int) -> Mapping[str, float]:
        """What pgversus itself has added to the counters."""
        return self._set.own_growth(arm)


class TransactionApparatus(ShortApparatus):
    """Windows of a number of transactions, each a run of pgbench (-t)."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        window = self._run(arm, self._preparation.design.window_transactions or 1, seed, name)
        self._done[arm].transactions += window.transactions
        self._windows[arm].append(window)

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run a few executions: a session is new in each window anyway."""
        design = self._preparation.design
        windows = design.warm_up_s / max(design.window_s, _SHORTEST_S)
        transactions = max(_WARM_UP_EXECUTIONS, math.ceil(windows * (design.window_transactions or 1)))
        self._run(arm, transactions, seed, None)

    def _run(self, arm: int, transactions: int, seed: int, name: str | None) -> Window:
        load, target = self._loads[arm], self._set.servers[arm].target
        design = self._preparation.design
        seconds = design.window_s * transactions / (design.window_transactions or 1)
        server = self._set.servers[arm]
        before = read_host_of(server)
        with ExitStack() as stack:
            with LostTime(server.postmaster_pid) as time:
                finished = stack.enter_context(
                    finished_transactions(load, target, transactions, seed, seconds=seconds, log_name=name)
                )
            host = difference(before, read_host_of(server))
            window = read_window(load, finished)
        return replace(window, counters={**window.counters, **host}, was_disturbed=time.was_lost)
