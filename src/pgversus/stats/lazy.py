"""Mappings whose values are computed on demand: a table of verdicts needs one metric of many."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LazyValues(Mapping[K, V]):
    """Values by key, each computed at most once; keys without a value are absent."""

    def __init__(self, keys: Iterable[K], make: Callable[[K], V | None]) -> None:
        """keys: all keys that may have a value, in order. make: pure; returns None for no value."""
        self._keys = tuple(keys)
        self._make = make
        self._made: dict[K, V | None] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._made:
            self._made[key] = self._make(key) if key in self._keys else None
        value = self._made[key]
        if value is None:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[K]:
        return (key for key in self._keys if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LazyMapping(Mapping[K, V]):
    """Values by key, all computed together at the first use."""

    def __init__(self, make: Callable[[], Mapping[K, V]]) -> None:
        """make: pure; called at most once."""
        self._make = make

    @cached_property
    def _made(self) -> Mapping[K, V]:
        return self._make()

    def __getitem__(self, key: K) -> V:
        return self._made[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
