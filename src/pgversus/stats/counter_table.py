"""The counters of many trials as one table: a study has millions, and a step of Python for each takes seconds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from math import nan

import numpy as np
import numpy.typing as npt

from pgversus.stats.trials import Trial

Numbers = npt.NDArray[np.float64]


class CounterRow(Mapping[str, float]):
    """The counters of one trial, by name, as a row of a larger table; one that was not told is absent."""

    __slots__ = ("names", "values_in_order")

    def __init__(self, names: tuple[str, ...], values_in_order: Numbers) -> None:
        """names: one object for all rows of a table. values_in_order: nan for what was not told."""
        self.names = names
        self.values_in_order = values_in_order

    def __getitem__(self, name: str) -> float:
        value = float(self.values_in_order[_positions(self.names)[name]])
        if value != value:  # noqa: PLR0124 - only nan is not itself
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        told = zip(self.names, self.values_in_order.tolist(), strict=True)
        return (name for name, value in told if value == value)  # noqa: PLR0124 - the same

    def __len__(self) -> int:
        return int((~np.isnan(self.values_in_order)).sum())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class CounterTable:
    """The counters of some trials: a row for each trial, a column for each name."""

    names: tuple[str, ...]
    values: Numbers
    """nan for what a trial does not tell."""

    def column(self, name: str) -> Numbers:
        """A counter of each trial; nan where it is not told."""
        position = _positions(self.names).get(name)
        return np.full(len(self.values), nan) if position is None else self.values[:, position]

    def total(self, name: str) -> float | None:
        """The sum over all trials; None where there is none, or one of them does not tell."""
        total = float(self.column(name).sum()) if len(self.values) else nan
        return None if np.isnan(total) else total

    def in_order(self, names: tuple[str, ...]) -> Numbers:
        """The columns of these names, in their order; nan where there is none."""
        wanted, position = _places(self.names, names)
        found = np.full((len(self.values), len(names)), nan)
        found[:, wanted] = self.values[:, position]
        return found


def counter_table(trials: Sequence[Trial]) -> CounterTable:
    """The counters of these trials, in their order."""
    rows = [trial.counters for trial in trials]
    if rows and isinstance(first := rows[0], CounterRow):
        alike = [row.values_in_order for row in rows if isinstance(row, CounterRow) and row.names is first.names]
        if len(alike) == len(rows):
            return CounterTable(first.names, np.stack(alike))
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    values = [list(map(row.get, names, repeat(nan))) for row in rows]
    return CounterTable(names, np.array(values, dtype=np.float64).reshape(len(rows), len(names)))


@lru_cache(maxsize=16)
def _positions(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: position for position, name in enumerate(names)}


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[list[int], list[int]]:
    """Where those of the wanted names that there are stand in both."""
    known = _positions(names)
    pairs = [(place, known[name]) for place, name in enumerate(wanted) if name in known]
    return [place for place, _ in pairs], [position for _, position in pairs]
