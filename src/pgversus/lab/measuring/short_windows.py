"""Load in windows of hundredths of a second: runs of a few transactions. Slices of longer runs are in slices.py.

Counters are read once before all windows of a block and once after them, since reading takes longer than a window. What
sessions did outside the windows is taken out in proportion to the transactions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgversus.errors import PgversusError
from pgversus.lab.measuring.load import Load, finished_transactions, read_window
from pgversus.lab.measuring.postgres_apparatus import WarmApparatus, trial_failed
from pgversus.lab.measuring.readings import Reading, grown, read_after, read_before, read_host_of
from pgversus.lab.measuring.server_set import ServerSet
from pgversus.stats.counters import difference
from pgversus.stats.trials import Window
from pgversus.study.counters import COUNTERS
from pgversus.study.preparation import Preparation

_SHORTEST_S = 1e-6
_WARM_UP_EXECUTIONS = 2
_NOTHING_READ = Reading(server={}, host={})


@dataclass(slots=True)
class Done:
    """What the load of an arm has done since its warm-up in this block."""

    before: Reading = _NOTHING_READ
    host: dict[str, float] = field(default_factory=dict)
    """Growth of the host's counters within the windows."""
    client: dict[str, float] = field(default_factory=dict)
    """Processor time of pgbench."""
    transactions: int = 0
    in_windows: int = 0

    def add_host(self, before: Mapping[str, float], after: Mapping[str, float]) -> None:
        """Add what the host counted in a window."""
        _add(self.host, difference(before, after))

    def add_run(self, *, transactions: int, in_windows: int, client: Mapping[str, float]) -> None:
        """Add a run of pgbench. in_windows: those of its transactions that count."""
        self.transactions += transactions
        self.in_windows += in_windows
        _add(self.client, client)

    def counters(self, after: Reading, own_growth: Mapping[str, float]) -> dict[str, float]:
        """Return the counters of the windows alone; what grows with the load is theirs by their transactions."""
        share = self.in_windows / self.transactions if self.transactions else 0.0
        server = {name: value for name, value in grown(self.before, after, own_growth).items() if name in after.server}
        scaled = {
            name: value * share if COUNTERS[name].per_transaction else value
            for name, value in {**server, **self.client}.items()
        }
        return {**scaled, **self.host}


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

    def counted(self, arm: int) -> Mapping[str, float]:
        """Return what was counted in all windows of the arm in this block."""
        try:
            after = read_after(self._set.servers[arm], self._set.counters(arm))
        except PgversusError as error:
            raise trial_failed(error) from error
        return self._done[arm].counters(after, self._own_growth(arm))

    def _own_growth(self, arm: int) -> Mapping[str, float]:
        """What pgversus itself has added to the counters."""
        return self._set.own_growth(arm)


class TransactionApparatus(ShortApparatus):
    """Windows of a number of transactions, each a run of pgbench (-t)."""

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        window = self._run(arm, self._preparation.design.window_transactions or 1, seed, name)
        done = window.transactions
        self._done[arm].add_run(transactions=done, in_windows=done, client=window.counters)
        self._windows[arm].append(replace(window, counters={}))

    def _load_until_steady(self, arm: int, seed: int) -> None:
        """Run a few executions: a session is new in each window anyway."""
        design = self._preparation.design
        windows = design.warm_up_s / max(design.window_s, _SHORTEST_S)
        transactions = max(_WARM_UP_EXECUTIONS, math.ceil(windows * (design.window_transactions or 1)))
        self._done[arm] = Done()
        self._run(arm, transactions, seed, None)

    def _run(self, arm: int, transactions: int, seed: int, name: str | None) -> Window:
        load, target = self._loads[arm], self._set.servers[arm].target
        design = self._preparation.design
        seconds = design.window_s * transactions / (design.window_transactions or 1)
        before = read_host_of(self._set.servers[arm])
        with finished_transactions(load, target, transactions, seed, seconds=seconds, log_name=name) as finished:
            self._done[arm].add_host(before, read_host_of(self._set.servers[arm]))
            return read_window(load, finished)


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0.0) + value
