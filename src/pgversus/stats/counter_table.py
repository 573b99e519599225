"""The counters of many trials as one table: a study has millions, and a step of Python for each takes seconds."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from math import isnan, nan

import numpy as np
import numpy.typing as npt

from pgversus.stats.trials import Trial

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
