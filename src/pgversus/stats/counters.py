"""Counters of trials: growth between readings, ratios between arms, disturbed windows.

Disturbance is judged by host counters, never by the speed of a window: repeating windows that look slow would bias the
result.

All counters of an arm are one table with a row per block, since a study has hundreds of thousands of ratios. About
sixty counters are tested with each verdict, about eighty if VACUUM reports its own, so the rule for certain differences
multiplies the number of verdicts accordingly.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from math import isnan, nan
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pgversus.records.trials import Block, Trial
from pgversus.stats.confidence import LookRule
from pgversus.study.counters import COUNTERS, IN_BYTES, PAGE_BYTES, REPORTED_BY_VACUUM, CounterUnit, unit_of


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return the growth of each counter between two readings, in the counter's unit.

    Counters that are missing in one reading are omitted, and so are those that decreased, because they were reset.
    """
    return {name: after[name] - value for name, value in before.items() if name in after and after[name] >= value}


Numbers = npt.NDArray[np.float64]


class Columns:
    """Names of counters and their positions, shared by all rows of a table."""

    __slots__ = ("_orders", "names", "positions")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.positions = {name: position for position, name in enumerate(self.names)}
        self._orders: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}

    def places(self, wanted: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Return the positions of available names among the wanted names, and their columns here."""
        if wanted not in self._orders:
            pairs = [(place, self.positions[name]) for place, name in enumerate(wanted) if name in self.positions]
            self._orders[wanted] = [place for place, _ in pairs], [position for _, position in pairs]
        return self._orders[wanted]


class CounterRow(Mapping[str, float]):
    """The counters of one trial by name, as a row of a larger table; unavailable ones are absent."""

    __slots__ = ("columns", "index", "table")

    def __init__(self, columns: Columns, table: Numbers, index: int) -> None:
        """table: NaN for unavailable values. index: of the row."""
        self.columns = columns
        self.table = table
        self.index = index

    @property
    def row(self) -> Numbers:
        """The values, in the order of the columns."""
        found: Numbers = self.table[self.index]
        return found

    def __getitem__(self, name: str) -> float:
        value = float(self.table[self.index, self.columns.positions[name]])
        if isnan(value):
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in zip(self.columns.names, self.row.tolist(), strict=True) if not isnan(value))

    def __len__(self) -> int:
        return int((~np.isnan(self.row)).sum())


class CounterTable:
    """The counters of several trials: a row per trial, a column per name."""

    __slots__ = ("_columns", "_totals", "_values")

    def __init__(self, columns: Columns, values: Numbers) -> None:
        """values: NaN for values that a trial does not have."""
        self._columns = columns
        self._values = values
        # Computed for all names at once, which is ten times as fast as one by one.
        self._totals = dict(zip(columns.names, values.sum(axis=0).tolist(), strict=True)) if len(values) else {}

    def total(self, name: str) -> float | None:
        """Return the sum over all trials; None without trials, or if a trial has no value."""
        total = self._totals.get(name, nan)
        return None if isnan(total) else total

    def column(self, name: str) -> Numbers:
        """Return a counter of each trial; NaN for unavailable values."""
        position = self._columns.positions.get(name)
        return np.full(len(self._values), nan) if position is None else self._values[:, position]

    def reported(self) -> set[str]:
        """Return the names that at least one trial has."""
        return {self._columns.names[column] for column in np.flatnonzero(~np.isnan(self._values).all(axis=0))}

    def in_order(self, names: tuple[str, ...]) -> Numbers:
        """Return the columns of these names, in order; NaN for missing ones."""
        wanted, position = self._columns.places(names)
        found = np.full((len(self._values), len(names)), nan)
        found[:, wanted] = self._values[:, position]
        return found

    def in_bytes(self, block_bytes: Sequence[float]) -> "CounterTable":
        """Return the table with counters of blocks in bytes, under their names in bytes.

        block_bytes: the block size of each trial's server; NaN if unknown, which makes these counters unavailable.
        """
        names = self._columns.names
        factors = np.ones_like(self._values)
        factors[:, [name in IN_BYTES for name in names]] = np.array(block_bytes)[:, np.newaxis]
        return CounterTable(Columns([IN_BYTES.get(name, name) for name in names]), self._values * factors)


def counter_table(trials: Sequence[Trial]) -> CounterTable:
    """Return the counters of these trials, in order."""
    rows = [trial.counters for trial in trials]
    first = rows[0] if rows else None
    if isinstance(first, CounterRow):
        table = first.table
        indexes = [row.index for row in rows if isinstance(row, CounterRow) and row.table is table]
        if len(indexes) == len(rows):
            # Indexing the table is several times as fast as combining single rows.
            return CounterTable(first.columns, table[indexes])
        alike = [row.row for row in rows if isinstance(row, CounterRow) and row.columns is first.columns]
        if len(alike) == len(rows):
            return CounterTable(first.columns, np.array(alike))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    values = [list(map(row.get, names, repeat(nan))) for row in rows]
    return CounterTable(Columns(names), np.array(values, dtype=np.float64).reshape(len(rows), len(names)))


def comparable_counters(trials: Sequence[Trial], block_bytes: Sequence[int | None]) -> CounterTable:
    """Return the counters of these trials, in order, in units that mean the same on every arm.

    If the blocks of the arms differ in size, counters of blocks are in bytes, and unavailable for an arm whose block
    size is unknown. block_bytes: by arm; empty if they are the same.
    """
    table = counter_table(trials)
    return table.in_bytes([block_bytes[trial.arm] or nan for trial in trials]) if _differ(block_bytes) else table


def _differ(block_bytes: Sequence[int | None]) -> bool:
    return len(set(block_bytes)) > 1


_NAMES = tuple(COUNTERS)
_NAMES_IN_BYTES = tuple(IN_BYTES.get(name, name) for name in _NAMES)
_PER_TRANSACTION = np.array([counter.per_transaction for counter in COUNTERS.values()])
_REPORTED_BY_VACUUM = np.array([name in REPORTED_BY_VACUUM for name in _NAMES])
_TICK_S = 0.01
"""The step of the CPU clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRatio:
    """The ratio of a counter, contender / baseline, with its interval."""

    value: float
    low: float | None
    """Bounds by the rule of the verdicts, valid for this counter alone; None if not valid yet."""
    high: float | None
    n: int
    """Number of blocks."""
    is_sure: bool
    """Whether the arms differ by the stricter rule, which covers all counters together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedCounter:
    """A counter that was zero in every block of one arm and in no block of the other, so that it has no ratio."""

    baseline: float
    """Mean over the blocks, as for a metric."""
    contender: float
    n: int
    """Number of blocks."""
    is_sure: bool
    """Whether the interval of their difference excludes zero by the stricter rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEstimates:
    """All estimates of counters in one comparison."""

    arm_means: tuple[Mapping[str, float], ...]
    """Per arm, in order: the mean over its blocks, in the counter's unit per transaction, or absolute. Counters that
    a block does not have are absent."""
    ratios: tuple[Mapping[str, CounterRatio], ...]
    """Per contender, in order; blocks as for ratios of throughput. Counters that were zero or unavailable in a block
    of either arm are absent."""
    one_sided: tuple[Mapping[str, OneSidedCounter], ...]
    """Per contender, in order."""


def counter_estimates(
    blocks: Sequence[Block], arms: int, rule: LookRule, block_bytes: Sequence[int | None] = ()
) -> CounterEstimates:
    """Return means and ratios of all counters, in units that mean the same on every arm (comparable_counters()).

    arms: their number; the first is the baseline. block_bytes: by arm, None if unknown; empty for the usual size.
    """
    baseline, *contenders = tables = [_table(blocks, arm, block_bytes) for arm in range(arms)]
    strict = rule.shared_by(_looked_at(tables))
    pairs = [_pair(baseline, contender) for contender in contenders]
    return CounterEstimates(
        arm_means=tuple(_arm_means(table) for table in tables),
        ratios=tuple(_ratios(pair, rule, strict) for pair in pairs),
        one_sided=tuple(_one_sided(pair, strict) for pair in pairs),
    )


def _looked_at(tables: Sequence["_Table"]) -> int:
    """Return the number of counters tested with each verdict. Counters of VACUUM do not count for a load."""
    is_vacuum = any(not np.isnan(table.values[:, _REPORTED_BY_VACUUM]).all() for table in tables)
    return len(_NAMES) if is_vacuum else len(_NAMES) - len(REPORTED_BY_VACUUM)


def sure_ratios(ratios: Mapping[str, CounterRatio]) -> dict[str, CounterRatio]:
    """Return the ratios that certainly differ from 1, largest difference first."""
    sure = {name: ratio for name, ratio in ratios.items() if ratio.is_sure}
    return dict(sorted(sure.items(), key=lambda item: -abs(math.log(item[1].value))))


@dataclass(frozen=True, slots=True)
class _Table:
    """The counters of one arm."""

    values: Numbers
    """A row per block, a column per counter, absolute values; NaN for unavailable ones."""
    transactions: Numbers
    """Per block; NaN if it does not hold the arm."""
    names: tuple[str, ...]
    """Names of the columns."""
    block_bytes: int
    """Block size of its server; the usual size if unknown."""

    def shares(self) -> Numbers:
        """Return the values, per transaction where that is meaningful."""
        return np.where(_PER_TRANSACTION, self.values / self.transactions[:, np.newaxis], self.values)

    def measured(self) -> npt.NDArray[np.bool_]:
        """Return whether each block holds the arm."""
        return ~np.isnan(self.transactions)

    def only(self, rows: npt.NDArray[np.bool_]) -> "_Table":
        """Return the table of these blocks."""
        return replace(self, values=self.values[rows], transactions=self.transactions[rows])

    def smallest(self, name: str) -> float:
        """Return the amount of one event: a block, a tick of the CPU clock, or 1 for counts."""
        match unit_of(name):
            case CounterUnit.BYTES:
                return float(self.block_bytes)
            case CounterUnit.SECONDS:
                return _TICK_S
            case CounterUnit.COUNT:
                return 1.0


def _table(blocks: Sequence[Block], arm: int, block_bytes: Sequence[int | None]) -> _Table:
    names = _NAMES_IN_BYTES if _differ(block_bytes) else _NAMES
    trials = [block.trials.get(arm) for block in blocks]
    measured = np.array([trial is not None for trial in trials], dtype=np.bool_)
    values = np.full((len(trials), len(_NAMES)), math.nan)
    finished = [trial for trial in trials if trial is not None]
    values[measured] = comparable_counters(finished, block_bytes).in_order(names)
    transactions = [math.nan if trial is None else trial.transactions for trial in trials]
    return _Table(
        values=values,
        transactions=np.array(transactions, dtype=np.float64),
        names=names,
        block_bytes=(block_bytes[arm] if block_bytes else None) or PAGE_BYTES,
    )


def _pair(baseline: _Table, contender: _Table) -> tuple[_Table, _Table]:
    """Return the blocks that hold both arms."""
    paired = baseline.measured() & contender.measured()
    return baseline.only(paired), contender.only(paired)


def _arm_means(table: _Table) -> dict[str, float]:
    shares = table.only(table.measured()).shares()
    if not len(shares):
        return {}
    means = shares.mean(axis=0).tolist()
    return {name: mean for name, mean in zip(table.names, means, strict=True) if not math.isnan(mean)}


def _ratios(pair: tuple[_Table, _Table], rule: LookRule, strict: LookRule) -> dict[str, CounterRatio]:
    bases, others = (table.shares() for table in pair)
    n = len(bases)
    if not n:
        return {}
    positive = ((bases > 0) & (others > 0)).all(axis=0)
    logs = np.log(others[:, positive] / bases[:, positive])
    points = logs.mean(axis=0)
    is_bounded = n > 1 and rule.may_look(n)
    errors = logs.std(axis=0, ddof=1) / math.sqrt(n) if is_bounded else np.full_like(points, math.inf)
    half = rule.critical_value(n) * errors
    sure = np.abs(points) > strict.critical_value(n) * errors
    names = (pair[0].names[column] for column in np.flatnonzero(positive))
    with np.errstate(over="ignore"):
        columns = zip(*(np.exp(logs).tolist() for logs in (points, points - half, points + half)), strict=True)
    return {
        name: CounterRatio(value=value, low=_bound(low), high=_bound(high), n=n, is_sure=is_sure)
        for name, (value, low, high), is_sure in zip(names, columns, sure.tolist(), strict=True)
    }


def _bound(ratio: float) -> float | None:
    """Return the bound; None if it is not valid, or too large or small for a float."""
    return ratio if 0 < ratio < math.inf else None


def _one_sided(pair: tuple[_Table, _Table], strict: LookRule) -> dict[str, OneSidedCounter]:
    found: dict[str, OneSidedCounter] = {}
    for side, (none, some) in enumerate((pair, pair[::-1])):
        happened = (none.values == 0).all(axis=0) & (some.values > 0).all(axis=0)
        shares = some.shares()
        for column in np.flatnonzero(happened) if len(shares) else ():
            name, mean = some.names[column], float(shares[:, column].mean())
            events = float(some.values[:, column].sum()) / some.smallest(name)
            found[name] = OneSidedCounter(
                baseline=mean if side else 0.0,
                contender=0.0 if side else mean,
                n=len(shares),
                is_sure=_excludes_zero(shares[:, column], events, strict),
            )
    return found


def _excludes_zero(values: Numbers, events: float, rule: LookRule) -> bool:
    """Return whether an interval of the mean excludes zero. events: total; its square root limits the precision."""
    n, mean = len(values), float(values.mean())
    if n < 2 or not rule.may_look(n):  # noqa: PLR2004 - one value has no spread
        return False
    error = max(float(values.std(ddof=1)) / math.sqrt(n), mean / math.sqrt(events))
    return mean > rule.critical_value(n) * error


FOREIGN = 0.10
STEAL = 0.05
"""Shares of all CPUs of the host."""

_TICKS_S = 0.05
"""Host and processes count in steps of 0.01 s on separate clocks, so smaller amounts are not significant."""

Amount = TypeVar("Amount", float, npt.NDArray[np.float64])


def foreign_cpu_s(counter: Callable[[str], Amount]) -> Amount:
    """Return the user CPU time of programs other than servers and pgbench, in seconds; NaN if unavailable.

    Kernel time is excluded: kernel threads encrypt, compress and write back on behalf of an arm. Counting that as
    foreign would penalize the arm that moves more data. The clocks of host and processes are separate, so the result
    may be slightly negative for a short window.

    counter: returns a counter by name, of one window or of each trial; NaN if unavailable.
    """
    return counter("host_cpu_user_s") - counter("server_cpu_user_s") - counter("client_cpu_user_s")


def is_disturbed(counters: Mapping[str, float], seconds: float, cpus: int) -> bool:
    """Return whether other programs or guests used more CPU time than a comparison tolerates.

    counters: of a window with this duration in seconds. False for a host without these counters.
    """
    capacity = cpus * seconds
    # Comparisons with NaN are false.
    foreign = foreign_cpu_s(lambda name: counters.get(name, math.nan))
    steal = counters.get("host_steal_s", 0.0)
    return foreign > max(FOREIGN * capacity, _TICKS_S) or steal > max(STEAL * capacity, _TICKS_S)
