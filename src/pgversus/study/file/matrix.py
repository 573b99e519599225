"""Factors with their levels, and the matrix that they span."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import CacheState, unique_labels
from pgversus.study.file import schema
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.document import Path, as_key, as_toml, shown, shown_value
from pgversus.study.file.problems import Problems
from pgversus.study.file.workloads import NamedDataset, NamedLoad, NamedWorkload
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting
from pgversus.text.redaction import value_without_secrets

T = TypeVar("T")

Variable = tuple[str, str]
"""Name and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorLevel(Generic[T]):
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
    levels: tuple[FactorLevel[T], ...]
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


def check_for_repeats(path: Path, words: Sequence[str], problems: Problems) -> None:
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


_NEVER = ("load", "scale", "cache")
# Arms under different loads, or on different amounts of data, do different work: their ratio answers no question.


def compared_factor(sections: schema.Sections, matrix: Matrix, problems: Problems) -> int | None:
    """The position of the factor whose levels are the arms; None when there is none, which is a problem then."""
    if sections.compare is not None:
        return _said(sections.compare, matrix, problems)
    if problems.lost("compare") or problems.concern("factors") or problems.lost_names("workload"):
        return None
    factors = matrix.factors
    varied = [index for index, factor in enumerate(factors) if factor.is_varied and factor.name not in _NEVER]
    # What a variable changes is the work, most of the time: it is compared where nothing else can be, or where asked.
    # Variables are the last of the factors.
    varied = [index for index in varied if index < len(factors) - len(matrix.variables)] or varied
    if len(varied) == 1 or (varied and matrix.server.is_varied):
        return varied[0]
    if varied:
        problems.add(("compare",), _unclear([matrix.factors[index].name for index in varied]))
    else:
        problems.add(("factors",), _one_arm("no factor has two levels"))
    return None


def baseline_level(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> int:
    """The position of the baseline among the levels of the compared factor."""
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
                to_do=f"leave {name.lower()} in [factors]: each of its levels gets comparisons of its own",
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
        "there is nothing to compare",
        slug="study-one-arm",
        found=found,
        expected="a factor with two or more levels: server, workload, dataset, a setting or a variable",
        to_do='server = ["16.12", "17.8"] or work_mem = ["4MB", "64MB"] in [factors]',
    )


def _unclear(names: Sequence[str]) -> StudyError:
    return StudyError(
        "it is not said what is compared",
        slug="study-file-missing-key",
        found=f"two or more levels of {', '.join(map(as_key, names))}",
        expected="compare = the one whose levels are held against each other",
        to_do=f"compare = {shown(names[-1])}, above the first [table]",
    )


def check_workload_kinds(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> None:
    """Add a problem for a load that no workload takes, and for loads and operations that would stand side by side."""
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
                    found=f"[{key}] and nothing but operations",
                    expected="a workload with script, sql, builtin or scripts",
                    to_do=f"leave [{key}] out",
                ),
            )


def _side_by_side() -> StudyError:
    return StudyError(
        "a load cannot be compared with an operation",
        slug="study-file-conflict",
        found="both among the workloads that are compared",
        expected="loads only, or operations only",
        to_do="compare something else, or make two studies",
    )


def _multiplied() -> StudyError:
    return StudyError(
        "operations have no load, so that each would be measured once for every load",
        slug="study-file-conflict",
        found="several loads, and operations among the workloads",
        expected="one load for the other workloads",
        to_do="keep one load, or make two studies",
    )
