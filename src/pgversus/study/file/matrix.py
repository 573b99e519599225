"""Factors with their levels, and the matrix that they span."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import CacheState, unique_labels
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key, as_toml, shown, shown_value
from pgversus.study.file.workloads import NamedDataset, NamedLoad, NamedWorkload
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting
from pgversus.text.redaction import value_without_secrets

T = TypeVar("T")

Variable = tuple[str, str]
"""Name and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Generic[T]):
    """One level of a factor."""

    word: str
    """As the file has it; numbers and booleans as postgresql.conf has them."""
    label: str
    """As outputs show it; unique in its factor."""
    value: T


# Without slots, so that what is asked of it again and again is made once.
@dataclass(frozen=True, kw_only=True)
class Factor(Generic[T]):
    """Something that is, or could be, varied."""

    name: str
    levels: tuple[Level[T], ...]
    is_named: bool = True
    """False where the file names no level, so that nothing can refer to one."""
    table: Path = ("factors",)
    """Where in the file its levels stand."""

    @property
    def path(self) -> Path:
        """The place of its list of levels."""
        return (*self.table, self.name)

    @property
    def values(self) -> list[T]:
        """What its levels stand for."""
        return [level.value for level in self.levels]

    @property
    def is_varied(self) -> bool:
        """Whether it has two levels or more."""
        return len(self.levels) > 1

    def positions(self, word: str) -> Sequence[int]:
        """Which of its levels are called so; several when a server is named twice."""
        return self._by_word.get(word) or self._by_label.get(word, ())

    @cached_property
    def _by_word(self) -> Mapping[str, Sequence[int]]:
        return _positions(level.word for level in self.levels)

    @cached_property
    def _by_label(self) -> Mapping[str, Sequence[int]]:
        return _positions(level.label for level in self.levels)


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All factors; their product is what is measured."""

    server: Factor[ServerName]
    workload: Factor[NamedWorkload]
    dataset: Factor[NamedDataset | None]
    """None stands for the workload's own."""
    load: Factor[NamedLoad]
    scale: Factor[int | None]
    """None stands for the dataset's own."""
    cache: Factor[CacheState]
    settings: tuple[Factor[Setting], ...]
    variables: tuple[Factor[Variable], ...]

    @cached_property
    def factors(self) -> tuple[Factor[Any], ...]:
        """In the order in which combinations are made and named."""
        own = (self.server, self.workload, self.dataset, self.load, self.scale, self.cache)
        return (*own, *self.settings, *self.variables)

    @cached_property
    def names(self) -> list[str]:
        """Of the factors that the file names levels of, or that have them by default."""
        return [factor.name for factor in self.factors if factor.is_named]

    def find(self, name: str) -> int | None:
        """The position of the factor of this name; capitals do not matter, as in names of settings."""
        return self._named.get(name.lower())

    @cached_property
    def _named(self) -> Mapping[str, int]:
        return {factor.name.lower(): index for index, factor in enumerate(self.factors) if factor.is_named}


def _positions(names: Iterable[str]) -> Mapping[str, Sequence[int]]:
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        found.setdefault(name, []).append(index)
    return found


def value_labels(name: str, values: Sequence[str]) -> list[str]:
    """How the levels of a setting or a variable are shown: without passwords, and no two alike."""
    labels = [value_without_secrets(name, value) for value in values]
    return labels if labels == list(values) else unique_labels(labels)


def unknown_factor(name: str, names: Sequence[str]) -> StudyError:
    """The problem of a name that no factor has."""
    meant = nearest(name, list(names))
    return StudyError(
        f"there is no factor {as_key(name)}",
        slug="study-unknown-level",
        found=as_key(name),
        expected=listed(names, show=as_key),
        to_do=f"{as_key(meant)}, if that is meant" if meant else f"give it levels in [factors]: {as_key(name)} = [...]",
    )


def unknown_level(word: str, factor: Factor[Any]) -> StudyError:
    """The problem of a level that its factor does not have."""
    labels = [level.label for level in factor.levels]
    meant = nearest(word, labels)
    return StudyError(
        f"{shown_value(factor.name, word)} is no level of {as_key(factor.name)}",
        slug="study-unknown-level",
        found=shown_value(factor.name, word),
        expected=listed(labels, show=shown, joint=" or ") or "a level that it has",
        to_do=f"{as_key(factor.name)} = {as_toml(meant)}, if that is meant"
        if meant
        else f"add it to {as_key(factor.name)} in [{'.'.join(map(str, factor.table))}], or take one of these",
    )


def refuse_repeats(path: Path, words: Sequence[str], problems: Problems) -> None:
    """Add a problem for each level that stands twice in the list at this path."""
    seen: set[str] = set()
    for index, word in enumerate(words):
        if word in seen:
            problems.add(
                (*path, index),
                StudyError(
                    f"the levels of {as_key(str(path[-1]))} are not all different",
                    slug="study-repeated-level",
                    found=f"{shown_value(str(path[-1]), word)} again",
                    expected="each level once",
                    to_do="leave it out, or name the same server twice for an A/A comparison",
                ),
                spoils=False,
            )
        seen.add(word)
