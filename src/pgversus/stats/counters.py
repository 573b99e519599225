"""The counters of trials: growth between readings, ratios between arms, disturbance of windows.

Disturbance is judged by what the host reports, never by how fast a window was: measuring again what looks slow would
find what one looks for.

All counters of an arm are one table with a row for each block, since a study has hundreds of thousands of ratios.
About sixty are tested beside each verdict, about eighty where VACUUM reports its own, so the rule for certainty
counts that many times the verdicts.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import isnan, nan
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pgversus.records.trials import Block, Trial
from pgversus.stats.confidence import CONFIDENCE, LookRule
from pgversus.study.counters import COUNTERS, PAGE_BYTES, TOLD_BY_VACUUM, CounterUnit


def difference(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """How much each counter grew between two readings, in the counter's unit.

    A counter that is missing on one side is left out, and so is one that went backwards: its statistics were reset.
    """
    return {name: after[name] - value for name, value in before.items() if name in after and after[name] >= value}


Numbers = npt.NDArray[np.float64]


class Columns:
    """Names of counters and where each stands: one object for all rows of a table."""

    __slots__ = ("_orders", "names", "positions")

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.positions = {name: position for position, name in enumerate(self.names)}
        self._orders: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}

    def places(self, wanted: tuple[str, ...]) -> tuple[list[int], list[int]]:
        """Where those of the wanted names that there are stand among the wanted, and here."""
        if wanted not in self._orders:
            pairs = [(place, self.positions[name]) for place, name in enumerate(wanted) if name in self.positions]
            self._orders[wanted] = [place for place, _ in pairs], [position for _, position in pairs]
        return self._orders[wanted]


class CounterRow(Mapping[str, float]):
    """The counters of one trial, by name, as a row of a larger table; one that was not told is absent."""

    __slots__ = ("columns", "index", "table")

    def __init__(self, columns: Columns, table: Numbers, index: int) -> None:
        """table: nan for what was not told. index: of the row in it."""
        self.columns = columns
        self.table = table
        self.index = index

    @property
    def row(self) -> Numbers:
        """Its values, in the order of the columns."""
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


class CounterTable:
    """The counters of some trials: a row for each trial, a column for each name."""

    __slots__ = ("_columns", "_totals", "_values")

    def __init__(self, columns: Columns, values: Numbers) -> None:
        """values: nan for what a trial does not tell."""
        self._columns = columns
        self._values = values
        # All at once: a sum for each name that is asked for would take ten times as long.
        self._totals = dict(zip(columns.names, values.sum(axis=0).tolist(), strict=True)) if len(values) else {}

    def total(self, name: str) -> float | None:
        """The sum over all trials; None where there is none, or one of them does not tell."""
        total = self._totals.get(name, nan)
        return None if isnan(total) else total

    def column(self, name: str) -> Numbers:
        """A counter of each trial; nan where it is not told."""
        position = self._columns.positions.get(name)
        return np.full(len(self._values), nan) if position is None else self._values[:, position]

    def told(self) -> set[str]:
        """Names that some trial tells."""
        return {self._columns.names[column] for column in np.flatnonzero(~np.isnan(self._values).all(axis=0))}

    def in_order(self, names: tuple[str, ...]) -> Numbers:
        """The columns of these names, in their order; nan where there is none."""
        wanted, position = self._columns.places(names)
        found = np.full((len(self._values), len(names)), nan)
        found[:, wanted] = self._values[:, position]
        return found


def counter_table(trials: Sequence[Trial]) -> CounterTable:
    """The counters of these trials, in their order."""
    rows = [trial.counters for trial in trials]
    first = rows[0] if rows else None
    if isinstance(first, CounterRow):
        table = first.table
        indexes = [row.index for row in rows if isinstance(row, CounterRow) and row.table is table]
        if len(indexes) == len(rows):
            # In one step: made of single rows it would take several times as long.
            return CounterTable(first.columns, table[indexes])
        alike = [row.row for row in rows if isinstance(row, CounterRow) and row.columns is first.columns]
        if len(alike) == len(rows):
            return CounterTable(first.columns, np.array(alike))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    values = [list(map(row.get, names, repeat(nan))) for row in rows]
    return CounterTable(Columns(names), np.array(values, dtype=np.float64).reshape(len(rows), len(names)))


_NAMES = tuple(COUNTERS)
_PER_TRANSACTION = np.array([counter.per_transaction for counter in COUNTERS.values()])
_TOLD_BY_VACUUM = np.array([name in TOLD_BY_VACUUM for name in _NAMES])
# Pages, steps of the processors' clock, or what counts itself: how many single things a value stands for.
_SMALLEST = {CounterUnit.BYTES: float(PAGE_BYTES), CounterUnit.SECONDS: 0.01, CounterUnit.COUNT: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRatio:
    """A counter of a contender over that of the baseline, with its interval."""

    value: float
    low: float | None
    """Bounds by the rule of the verdicts, for who asks for this counter alone; None where none is promised yet."""
    high: float | None
    n: int
    """Blocks behind it."""
    is_sure: bool
    """Whether both differ, by the stricter rule for whoever looks at all counters."""
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedCounter:
    """A counter that was zero in every block of one arm and in none of the other: there is no ratio to be told."""

    baseline: float
    """Mean over the blocks, as a level."""
    contender: float
    n: int
    """Blocks behind it."""
    is_sure: bool
    """Whether the interval of their difference excludes that both are the same, by the stricter rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEstimates:
    """All that is said of counters in one comparison."""

    levels: tuple[Mapping[str, float], ...]
    """For each arm, in order: the mean over its blocks, in the counter's unit for a transaction, or as it is. A counter
    that one of the blocks does not tell is absent."""
    ratios: tuple[Mapping[str, CounterRatio], ...]
    """For each contender, in order, by blocks, as throughput is compared. A counter that was zero or not told in a
    block of either arm is absent: nothing has no ratio."""
    one_sided: tuple[Mapping[str, OneSidedCounter], ...]
    """For each contender, in order."""


def counter_estimates(blocks: Sequence[Block], arms: int, rule: LookRule) -> CounterEstimates:
    """Levels and ratios of all counters. arms: how many there are, the first the baseline."""
    baseline, *contenders = tables = [_table(blocks, arm) for arm in range(arms)]
    strict = rule.shared_by(_looked_at(tables))
    pairs = [_pair(baseline, contender) for contender in contenders]
    return CounterEstimates(
        levels=tuple(_levels(table) for table in tables),
        ratios=tuple(_ratios(pair, rule, strict) for pair in pairs),
        one_sided=tuple(_one_sided(pair, strict) for pair in pairs),
    )


def _looked_at(tables: Sequence["_Table"]) -> int:
    """How many counters are looked at beside a verdict. Beside that of a load nobody looks at what VACUUM tells."""
    is_vacuum = any(not np.isnan(table.values[:, _TOLD_BY_VACUUM]).all() for table in tables)
    return len(_NAMES) if is_vacuum else len(_NAMES) - len(TOLD_BY_VACUUM)


def sure_ratios(ratios: Mapping[str, CounterRatio]) -> dict[str, CounterRatio]:
    """Those that are sure to differ, the largest difference first."""
    sure = {name: ratio for name, ratio in ratios.items() if ratio.is_sure}
    return dict(sorted(sure.items(), key=lambda item: -abs(math.log(item[1].value))))


@dataclass(frozen=True, slots=True)
class _Table:
    """The counters of one arm."""

    values: Numbers
    """A row for each block, a column for each counter, as it was counted; nan for what was not told."""
    transactions: Numbers
    """Of each block; nan where it does not hold the arm."""

    def shares(self) -> Numbers:
        """For a transaction where that means something."""
        return np.where(_PER_TRANSACTION, self.values / self.transactions[:, np.newaxis], self.values)

    def measured(self) -> npt.NDArray[np.bool_]:
        """Whether a block holds the arm."""
        return ~np.isnan(self.transactions)

    def only(self, rows: npt.NDArray[np.bool_]) -> "_Table":
        """These blocks alone."""
        return _Table(self.values[rows], self.transactions[rows])


def _table(blocks: Sequence[Block], arm: int) -> _Table:
    trials = [block.trials.get(arm) for block in blocks]
    measured = np.array([trial is not None for trial in trials], dtype=np.bool_)
    values = np.full((len(trials), len(_NAMES)), math.nan)
    values[measured] = counter_table([trial for trial in trials if trial is not None]).in_order(_NAMES)
    transactions = [math.nan if trial is None else trial.transactions for trial in trials]
    return _Table(values=values, transactions=np.array(transactions, dtype=np.float64))


def _pair(baseline: _Table, contender: _Table) -> tuple[_Table, _Table]:
    """The blocks that hold both."""
    paired = baseline.measured() & contender.measured()
    return baseline.only(paired), contender.only(paired)


def _levels(table: _Table) -> dict[str, float]:
    shares = table.only(table.measured()).shares()
    if not len(shares):
        return {}
    means = shares.mean(axis=0).tolist()
    return {name: mean for name, mean in zip(_NAMES, means, strict=True) if not math.isnan(mean)}


def _ratios(pair: tuple[_Table, _Table], rule: LookRule, strict: LookRule) -> dict[str, CounterRatio]:
    bases, others = (table.shares() for table in pair)
    n = len(bases)
    if not n:
        return {}
    told = ((bases > 0) & (others > 0)).all(axis=0)
    logs = np.log(others[:, told] / bases[:, told])
    points = logs.mean(axis=0)
    is_bounded = n > 1 and rule.may_look(n)
    errors = logs.std(axis=0, ddof=1) / math.sqrt(n) if is_bounded else np.full_like(points, math.inf)
    half = rule.half_widths(n) * errors
    sure = np.abs(points) > strict.half_widths(n) * errors
    names = (_NAMES[column] for column in np.flatnonzero(told))
    with np.errstate(over="ignore"):
        columns = zip(*(np.exp(logs).tolist() for logs in (points, points - half, points + half)), strict=True)
    return {
        name: CounterRatio(value=value, low=_bound(low), high=_bound(high), n=n, is_sure=is_sure)
        for name, (value, low, high), is_sure in zip(names, columns, sure.tolist(), strict=True)
    }


def _bound(ratio: float) -> float | None:
    """None for one that is not promised, or so far away that no number holds it."""
    return ratio if 0 < ratio < math.inf else None


def _one_sided(pair: tuple[_Table, _Table], strict: LookRule) -> dict[str, OneSidedCounter]:
    found: dict[str, OneSidedCounter] = {}
    for side, (none, some) in enumerate((pair, pair[::-1])):
        happened = (none.values == 0).all(axis=0) & (some.values > 0).all(axis=0)
        shares = some.shares()
        for column in np.flatnonzero(happened) if len(shares) else ():
            name, mean = _NAMES[column], float(shares[:, column].mean())
            events = float(some.values[:, column].sum()) / _SMALLEST[COUNTERS[name].unit]
            found[name] = OneSidedCounter(
                baseline=mean if side else 0.0,
                contender=0.0 if side else mean,
                n=len(shares),
                is_sure=_excludes_zero(shares[:, column], events, strict),
            )
    return found


def _excludes_zero(values: Numbers, events: float, rule: LookRule) -> bool:
    """Whether an interval of their mean does. events: in all of them; their root is the least uncertainty there is."""
    n, mean = len(values), float(values.mean())
    if n < 2 or not rule.may_look(n):  # noqa: PLR2004 - one value has no spread
        return False
    error = max(float(values.std(ddof=1)) / math.sqrt(n), mean / math.sqrt(events))
    return mean > rule.half_widths(n) * error


FOREIGN = 0.10
STEAL = 0.05
"""Shares of all processors of the host."""

_TICKS_S = 0.05
"""Host and processes count in steps of 0.01 s, each clock for itself: of less nothing can be said."""

Amount = TypeVar("Amount", float, npt.NDArray[np.float64])


def foreign_cpu_s(told: Callable[[str], Amount]) -> Amount:
    """Processor time that programs other than servers and pgbench spent in their own code; nan where it is not told.

    Time in the kernel is left out: its threads encrypt, compress and write back for whichever arm has asked for it, and
    taken for work of others it would be held against the arm that moves more data. The clocks of host and processes
    tick apart, so that in a short window it may be a little below 0.

    told: a counter by its name, of one window or of each trial; nan where it is not told.
    """
    return told("host_cpu_user_s") - told("server_cpu_user_s") - told("client_cpu_user_s")


def is_disturbed(counters: Mapping[str, float], seconds: float, cpus: int) -> bool:
    """Whether other programs or other guests had more of the processors than a comparison can bear.

    counters: of a window of so many seconds. False for a host that does not tell.
    """
    capacity = cpus * seconds
    # What is not told compares as false.
    foreign = foreign_cpu_s(lambda name: counters.get(name, math.nan))
    steal = counters.get("host_steal_s", 0.0)
    return foreign > max(FOREIGN * capacity, _TICKS_S) or steal > max(STEAL * capacity, _TICKS_S)
