"""Factors with their levels, and the matrix that they span."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import CacheState, unique_labels
from pgversus.study.dataset import Dataset
from pgversus.study.file import schema
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.document import Path, as_key, as_toml, shown, shown_value
from pgversus.study.file.problems import Problems
from pgversus.study.file.workloads import NamedLoad, NamedWorkload
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting
from pgversus.text.redaction import value_without_secrets

T = TypeVar("T")

Variable = tuple[str, str]
"""(name, value)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorLevel(Generic[T]):
    """One level of a factor."""

    word: str
    """The level in the file; numbers and booleans as in postgresql.conf."""
    label: str
    """The level in output; unique in its factor."""
    value: T


# Without slots, because cached properties need a dict.
@dataclass(frozen=True, kw_only=True)
class Factor(Generic[T]):
    """A property that is varied, or could be."""

    name: str
    levels: tuple[FactorLevel[T], ...]
    is_named: bool = True
    """False if the file gives no levels, so that nothing can refer to one."""
    table: Path = ("factors",)
    """The table of the file that holds its levels."""

    @property
    def path(self) -> Path:
        """The path of its list of levels."""
        return (*self.table, self.name)

    @property
    def values(self) -> list[T]:
        """The values of its levels."""
        return [level.value for level in self.levels]

    @property
    def is_varied(self) -> bool:
        """Whether it has at least two levels."""
        return len(self.levels) > 1

    def positions(self, word: str) -> Sequence[int]:
        """Return the positions of levels with this name; several if a level is repeated."""
        return self._by_word.get(word) or self._by_label.get(word, ())

    @cached_property
    def _by_word(self) -> Mapping[str, Sequence[int]]:
        return _positions(level.word for level in self.levels)

    @cached_property
    def _by_label(self) -> Mapping[str, Sequence[int]]:
        return _positions(level.label for level in self.levels)


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """All factors; combinations of their levels are measured."""

    server: Factor[ServerName]
    workload: Factor[NamedWorkload]
    dataset: Factor[Dataset | None]
    """None stands for the workload's own dataset."""
    load: Factor[NamedLoad]
    scale: Factor[int | None]
    """None stands for the dataset's own scale."""
    cache: Factor[CacheState]
    settings: tuple[Factor[Setting], ...]
    variables: tuple[Factor[Variable], ...]

    @cached_property
    def factors(self) -> tuple[Factor[Any], ...]:
        """All factors, in the order in which combinations are created and named."""
        own = (self.server, self.workload, self.dataset, self.load, self.scale, self.cache)
        return (*own, *self.settings, *self.variables)

    @cached_property
    def names(self) -> list[str]:
        """The names of factors with levels from the file or by default."""
        return [factor.name for factor in self.factors if factor.is_named]

    def find(self, name: str) -> int | None:
        """Return the position of the factor with this name, ignoring case, as for names of settings."""
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
    """Return labels for the levels of a setting or variable: without passwords, and unique."""
    return unique_labels([value_without_secrets(name, value) for value in values])


def unknown_factor(name: str, names: Sequence[str]) -> StudyError:
    """Return the problem of an unknown factor name."""
    meant = nearest(name, list(names))
    return StudyError(
        f"unknown factor {as_key(name)}",
        slug="study-unknown-level",
        found=as_key(name),
        expected=listed(names, show=as_key),
        to_do=f"did you mean {as_key(meant)}?" if meant else f"give it levels in [factors]: {as_key(name)} = [...]",
    )


def unknown_level(word: str, factor: Factor[Any]) -> StudyError:
    """Return the problem of a level that its factor does not have."""
    labels = [level.label for level in factor.levels]
    meant = nearest(word, labels)
    return StudyError(
        f"unknown level {shown_value(factor.name, word)} of {as_key(factor.name)}",
        slug="study-unknown-level",
        found=shown_value(factor.name, word),
        expected=listed(labels, show=shown, joint=" or ") or "an existing level",
        to_do=f"did you mean {as_key(factor.name)} = {as_toml(meant)}?"
        if meant
        else f"add it to {as_key(factor.name)} in [{'.'.join(map(str, factor.table))}], or use one of these",
    )


def check_values_for_repeats(matrix: Matrix, compared: int | None, problems: Problems) -> None:
    """Add a problem for each repeated level of a setting or variable that is not compared.

    Repeated levels of the compared factor are an A/A comparison.
    """
    factors: tuple[Factor[Any], ...] = (*matrix.settings, *matrix.variables)
    for factor in factors:
        if compared is None or factor is not matrix.factors[compared]:
            words = [value.value if isinstance(value, Setting) else value[1] for value in factor.values]
            check_for_repeats(factor.path, words, problems)


def check_for_repeats(path: Path, words: Sequence[str], problems: Problems) -> None:
    """Add a problem for each repeated level in the list at this path."""
    seen: set[str] = set()
    for index, word in enumerate(words):
        if word in seen:
            problems.add(
                (*path, index),
                StudyError(
                    f"duplicate level of {as_key(str(path[-1]))}",
                    slug="study-repeated-level",
                    found=f"{shown_value(str(path[-1]), word)} again",
                    expected="each level once",
                    to_do="remove it; only servers, and levels of a compared setting or variable, may be repeated "
                    "(A/A comparison)",
                ),
                spoils=False,
            )
        seen.add(word)


_NEVER = ("load", "scale", "cache")
# Arms with different loads or amounts of data do different work, so their ratio is meaningless.


def compared_factor(sections: schema.Sections, matrix: Matrix, problems: Problems) -> int | None:
    """Return the position of the factor whose levels are the arms; None without one, which adds a problem."""
    if sections.compare is not None:
        return _said(sections.compare, matrix, problems)
    if problems.lost("compare") or problems.concern("factors") or problems.lost_names("workload"):
        return None
    factors = matrix.factors
    varied = [index for index, factor in enumerate(factors) if factor.is_varied and factor.name not in _NEVER]
    # A variable usually changes the work, so it is compared only on request or if nothing else varies. Variables are
    # the last factors.
    varied = [index for index in varied if index < len(factors) - len(matrix.variables)] or varied
    if len(varied) == 1 or (varied and matrix.server.is_varied):
        return varied[0]
    if varied:
        problems.add(("compare",), _unclear([matrix.factors[index].name for index in varied]))
    else:
        problems.add(("factors",), _one_arm("no factor has two levels"))
    return None


def baseline_level(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> int:
    """Return the position of the baseline among the levels of the compared factor."""
    if sections.baseline is None or compared is None:
        return 0
    factor = matrix.factors[compared]
    positions = factor.positions(sections.baseline)
    if not positions and not problems.concern(*factor.path):
        problems.add(("baseline",), unknown_level(sections.baseline, factor))
    return positions[0] if positions else 0


def _said(name: str, matrix: Matrix, problems: Problems) -> int | None:
    if name.lower() in _NEVER:
        problems.add(
            ("compare",),
            StudyError(
                f"{name} cannot be compared",
                slug="study-file-bad-value",
                found=shown(name),
                expected="server, workload, dataset, a setting or a variable",
                to_do=f"leave {name.lower()} in [factors]: each of its levels is compared separately",
            ),
        )
        return None
    if problems.concern("factors", name) or problems.concern("factors", "variables", name):
        return None
    position = matrix.find(name)
    if position is None:
        if not problems.lost("factors"):
            names = [known for known in matrix.names if known not in _NEVER]
            problems.add(("compare",), unknown_factor(name, names))
        return None
    factor = matrix.factors[position]
    if not factor.is_varied and not (factor.name == "workload" and problems.lost_names("workload")):
        problems.add(("compare",), _one_arm(f"{as_key(name)} has {len(factor.levels)}"))
        return None
    return position


def _one_arm(found: str) -> StudyError:
    return StudyError(
        "nothing to compare",
        slug="study-one-arm",
        found=found,
        expected="a factor with at least two levels: server, workload, dataset, a setting or a variable",
        to_do='server = ["16.12", "17.8"] or work_mem = ["4MB", "64MB"] in [factors]',
    )


def _unclear(names: Sequence[str]) -> StudyError:
    return StudyError(
        "compare is missing: several factors could be compared",
        slug="study-file-missing-key",
        found=f"two or more levels of {', '.join(map(as_key, names))}",
        expected="the key compare, with the factor whose levels are compared",
        to_do=f"compare = {shown(names[-1])}, above the first [table]",
    )


def check_workload_kinds(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> None:
    """Add a problem for a load without a workload to use it, and for mixing loads with operations in a comparison."""
    workloads = matrix.workload.values
    if any(workload.is_broken for workload in workloads) or problems.concern("factors", "workload"):
        return
    kinds = {workload.operation is not None for workload in workloads}
    if kinds == {True}:
        _check_loads(sections, problems)
    elif len(kinds) > 1 and compared is not None and matrix.factors[compared] is matrix.workload:
        problems.add(("compare",) if sections.compare else ("factors", "workload"), _side_by_side())
    elif len(kinds) > 1 and matrix.load.is_varied:
        problems.add(("factors", "load") if sections.factors and sections.factors.load else ("loads",), _multiplied())


def _check_loads(sections: schema.Sections, problems: Problems) -> None:
    for key, table in (("load", sections.load), ("loads", sections.loads)):
        if table is not None:
            problems.add(
                (key,),
                StudyError(
                    "an operation has no load: it runs once, in one session",
                    slug="study-file-conflict",
                    found=f"[{key}], but only operations",
                    expected="a workload with script, sql, builtin or scripts",
                    to_do=f"remove [{key}]",
                ),
            )


def _side_by_side() -> StudyError:
    return StudyError(
        "a load cannot be compared with an operation",
        slug="study-file-conflict",
        found="both kinds among the compared workloads",
        expected="only loads, or only operations",
        to_do="compare another factor, or split the study",
    )


def _multiplied() -> StudyError:
    return StudyError(
        "operations do not have a load, so each would be measured once for every load",
        slug="study-file-conflict",
        found="several loads, and operations among the workloads",
        expected="one load for the other workloads",
        to_do="keep one load, or split the study",
    )
