"""The factors of a study and their levels, each level made into what it stands for once."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import CacheState, unique_labels
from pgversus.study.file import schema
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.problems import Problems
from pgversus.study.file.settings import check_names
from pgversus.study.file.values import as_key, as_toml, shown
from pgversus.study.file.workloads import NamedDataset, NamedLoad, NamedWorkload, unknown_name
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting

T = TypeVar("T")

NameServer = Callable[[str], tuple[str, ServerName]]
"""From a server as the file has it to how it is shown, without passwords, and what it is; StudyError for no server."""

_MISSPELT = 0.8
# No setting of PostgreSQL is so near to one of our six names.


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Generic[T]):
    """One level of a factor."""

    word: str
    """As the file has it; numbers and booleans as postgresql.conf has them."""
    label: str
    """As outputs show it; unique in its factor."""
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor(Generic[T]):
    """Something that is, or could be, varied."""

    name: str
    levels: tuple[Level[T], ...]
    is_named: bool = True
    """False where the file names no level, so that nothing can refer to one."""

    @property
    def is_varied(self) -> bool:
        """Whether it has two levels or more."""
        return len(self.levels) > 1

    def positions(self, word: str) -> list[int]:
        """Which of its levels are called so; several when a server is named twice."""
        by_label = [index for index, level in enumerate(self.levels) if level.label == word]
        return [index for index, level in enumerate(self.levels) if level.word == word] or by_label


@dataclass(frozen=True, slots=True, kw_only=True)
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

    @property
    def factors(self) -> tuple[Factor[Any], ...]:
        """In the order in which combinations are made and named."""
        return (self.server, self.workload, self.dataset, self.load, self.scale, self.cache, *self.settings)

    @property
    def names(self) -> list[str]:
        """Of the factors that the file names levels of, or that have them by default."""
        return [factor.name for factor in self.factors if factor.is_named]

    def find(self, name: str) -> int | None:
        """The position of the factor of this name; capitals do not matter, as in names of settings."""
        named = {factor.name.lower(): index for index, factor in enumerate(self.factors) if factor.is_named}
        return named.get(name.lower())


def matrix_of(
    sections: schema.Sections,
    *,
    workloads: Mapping[str, NamedWorkload],
    datasets: Mapping[str, NamedDataset],
    loads: Mapping[str, NamedLoad],
    name_server: NameServer,
    problems: Problems,
) -> Matrix:
    """The factors as far as they are valid; what is not is added to the problems."""
    factors = sections.factors or schema.Factors()
    # First, because a misspelt name among them excuses a factor that is missing.
    settings = _settings(factors, problems)
    return Matrix(
        server=_servers(factors.server, name_server, problems),
        workload=_tables("workload", factors.workload, workloads, problems),
        dataset=_absent("dataset")
        if factors.dataset is None
        else _tables("dataset", factors.dataset, datasets, problems),
        load=_tables("load", factors.load, loads, problems),
        scale=_absent("scale") if factors.scale is None else _scales(factors.scale, problems),
        cache=_caches(sections, factors.cache, problems),
        settings=settings,
    )


def unknown_factor(name: str, names: Sequence[str]) -> StudyError:
    """The problem of a name that no factor has."""
    meant = nearest(name, list(names))
    return StudyError(
        f"there is no factor {as_key(name)}",
        slug="study-unknown-level",
        found=as_key(name),
        expected=listed([as_key(known) for known in names]),
        to_do=f"{as_key(meant)}, if that is meant" if meant else f"give it levels in [factors]: {as_key(name)} = [...]",
    )


def unknown_level(word: str, factor: Factor[Any]) -> StudyError:
    """The problem of a level that its factor does not have."""
    labels = [level.label for level in factor.levels]
    meant = nearest(word, labels)
    return StudyError(
        f"{shown(word)} is no level of {as_key(factor.name)}",
        slug="study-unknown-level",
        found=shown(word),
        expected=listed([shown(label) for label in labels], joint=" or ") or "a level that it has",
        to_do=f"{as_key(factor.name)} = {as_toml(meant)}, if that is meant"
        if meant
        else f"add it to {as_key(factor.name)} in [factors], or take one of these",
    )


def _servers(texts: Sequence[str] | None, name_server: NameServer, problems: Problems) -> Factor[ServerName]:
    if texts is None and not problems.lost("factors", "server"):
        problems.add(
            ("factors", "server"),
            StudyError(
                "no server is named",
                slug="study-file-missing-key",
                found="no server in [factors]",
                expected="one server or more",
                to_do='server = ["16.12", "17.8"] in [factors]',
            ),
        )
    named: list[tuple[str, str, ServerName]] = []
    for index, text in enumerate(texts or ()):
        with problems.catch(("factors", "server", index)):
            label, server = name_server(text)
            named.append((text, label, server))
    labels = unique_labels([label for _, label, _ in named])
    levels = tuple(
        Level(word=text, label=label, value=server) for (text, _, server), label in zip(named, labels, strict=True)
    )
    return Factor(name="server", levels=levels)


def _tables(kind: str, names: Sequence[str] | None, tables: Mapping[str, T], problems: Problems) -> Factor[T]:
    if names is None:
        names = list(tables)
    for index, name in enumerate(names):
        if name not in tables and not problems.lost_names(kind):
            problems.add(("factors", kind, index), unknown_name(kind, name, tables))
    _refuse_repeats(kind, names, problems)
    known = [name for name in names if name in tables]
    return Factor(name=kind, levels=tuple(Level(word=name, label=name, value=tables[name]) for name in known))


def _scales(scales: Sequence[int], problems: Problems) -> Factor[int | None]:
    words = [str(scale) for scale in scales]
    _refuse_repeats("scale", words, problems)
    pairs = zip(words, scales, strict=True)
    return Factor(name="scale", levels=tuple(Level(word=word, label=word, value=scale) for word, scale in pairs))


def _caches(sections: schema.Sections, states: Sequence[CacheState] | None, problems: Problems) -> Factor[CacheState]:
    if states is not None and sections.cache is not None:
        problems.add(
            ("cache",),
            StudyError(
                "cache is both a factor and given for all",
                slug="study-file-conflict",
                found="cache at the top and in [factors]",
                expected="one of them",
                to_do="leave out the one at the top",
            ),
        )
    states = states or [sections.cache or CacheState.WARM]
    _refuse_repeats("cache", states, problems)
    levels = tuple(Level(word=state.value, label=state.value, value=state) for state in states)
    return Factor(name="cache", levels=levels)


def _settings(factors: schema.Factors, problems: Problems) -> tuple[Factor[Setting], ...]:
    own_names = list(schema.Factors.model_fields)
    result = []
    names: list[str] = []
    for name, values in (factors.model_extra or {}).items():
        meant = nearest(name, own_names, cutoff=_MISSPELT)
        if meant is not None:
            problems.mark(("factors", meant))
            problems.add(("factors", name), _misspelt(name, meant))
            continue
        names.append(name)
        _refuse_repeats(name, values, problems)
        levels = tuple(Level(word=value, label=value, value=Setting(name=name, value=value)) for value in values)
        result.append(Factor(name=name, levels=levels))
    check_names(names, ("factors",), problems)
    return tuple(result)


def _misspelt(name: str, meant: str) -> StudyError:
    return StudyError(
        f"{as_key(name)} is neither a factor of pgversus nor a setting of PostgreSQL",
        slug="study-file-unknown-key",
        found=as_key(name),
        expected=f"{', '.join(schema.Factors.model_fields)}, or a setting",
        to_do=f"{meant}, if that is meant",
    )


def _refuse_repeats(name: str, words: Sequence[str], problems: Problems) -> None:
    seen: set[str] = set()
    for index, word in enumerate(words):
        if word in seen:
            problems.add(
                ("factors", name, index),
                StudyError(
                    f"the levels of {as_key(name)} are not all different",
                    slug="study-repeated-level",
                    found=f"{shown(word)} again",
                    expected="each level once",
                    to_do="leave it out, or name the same server twice for an A/A comparison",
                ),
                spoils=False,
            )
        seen.add(word)


def _absent(name: str) -> Factor[Any]:
    return Factor(name=name, levels=(Level(word="", label="", value=None),), is_named=False)
