"""The factors of a study file, with each level resolved once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pgversus.errors import StudyError
from pgversus.study.comparison import CacheState, unique_labels
from pgversus.study.dataset import Dataset
from pgversus.study.file import schema
from pgversus.study.file.description import nearest
from pgversus.study.file.document import Path, as_key
from pgversus.study.file.keys import OF_A_LOAD, check_names, given_forms
from pgversus.study.file.matrix import Factor, FactorLevel, Matrix, Variable, check_for_repeats, value_labels
from pgversus.study.file.problems import Problems
from pgversus.study.file.workloads import NamedLoad, NamedWorkload, unknown_name
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting
from pgversus.study.workload import check_for_secret_variables

_TABLE: Path = ("factors", "variables")


def variable_factors(
    sections: schema.Sections, settings: Iterable[str], problems: Problems
) -> tuple[Factor[Variable], ...]:
    """Return a factor for each variable; ambiguous names are added to the problems.

    settings: names of settings that are factors.
    """
    table = (sections.factors or schema.FactorsTable()).variables or {}
    taken = {name.lower(): "a factor of pgversus" for name in schema.FactorsTable.model_fields}
    taken |= {name.lower(): "a setting" for name in (*settings, *_shared_settings(sections))}
    for name, values in table.items():
        if _has_loads(sections):
            with problems.catch((*_TABLE, name)):
                check_for_secret_variables([(name, value) for value in values])
        if name.lower() in taken:
            problems.add((*_TABLE, name), _taken(name, taken[name.lower()]))
        taken[name.lower()] = "another variable"
    return tuple(Factor(name=name, levels=_levels(name, values), table=_TABLE) for name, values in table.items())


def _levels(name: str, values: Sequence[str]) -> tuple[FactorLevel[Variable], ...]:
    # Elsewhere a level named true or false is read like a setting: on or off.
    as_settings = [{"true": "on", "false": "off"}.get(value, value) for value in values]
    return tuple(
        FactorLevel(word=value if as_setting in values else as_setting, label=label, value=(name, value))
        for value, as_setting, label in zip(values, as_settings, value_labels(name, values), strict=True)
    )


def _shared_settings(sections: schema.Sections) -> Iterator[str]:
    for table in (sections.settings, *(workload.settings for workload in _workloads(sections))):
        yield from table or ()


def _has_loads(sections: schema.Sections) -> bool:
    return any(given_forms(workload, OF_A_LOAD) for workload in _workloads(sections))


def _workloads(sections: schema.Sections) -> list[schema.WorkloadTable]:
    return [one for one in (sections.workload, *(sections.workloads or {}).values()) if one is not None]


def _taken(name: str, owner: str) -> StudyError:
    return StudyError(
        f"the variable {as_key(name)} has the same name as {owner}",
        slug="study-file-conflict",
        found=f"{as_key(name)}, which is also {owner}",
        expected="a unique name, regardless of case: labels use it",
        to_do=f"rename the variable, for example my_{name}",
    )


T = TypeVar("T")

NameServer = Callable[[str], tuple[str, ServerName]]
"""Maps a server's text in the file to its label, without passwords, and its name; StudyError for an invalid server."""

_MISSPELT = 0.8
# No PostgreSQL setting is this similar to one of the seven factor names.


def matrix_of(
    sections: schema.Sections,
    *,
    workloads: Mapping[str, NamedWorkload],
    datasets: Mapping[str, Dataset],
    loads: Mapping[str, NamedLoad],
    name_server: NameServer,
    problems: Problems,
) -> Matrix:
    """Return the valid factors; invalid ones are added to the problems."""
    factors = sections.factors or schema.FactorsTable()
    # First, because a misspelt name among the settings explains a missing factor.
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
        variables=variable_factors(sections, [factor.name for factor in settings], problems),
    )


def _servers(texts: Sequence[str] | None, name_server: NameServer, problems: Problems) -> Factor[ServerName]:
    if texts is None and not problems.lost("factors", "server"):
        problems.add(
            ("factors", "server"),
            StudyError(
                "no server given",
                slug="study-file-missing-key",
                found="no server in [factors]",
                expected="at least one server",
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
        FactorLevel(word=text, label=label, value=server)
        for (text, _, server), label in zip(named, labels, strict=True)
    )
    return Factor(name="server", levels=levels)


def _tables(kind: str, names: Sequence[str] | None, tables: Mapping[str, T], problems: Problems) -> Factor[T]:
    if names is None:
        names = list(tables)
    for index, name in enumerate(names):
        if name not in tables and not problems.lost_names(kind):
            problems.add(("factors", kind, index), unknown_name(kind, name, tables))
    check_for_repeats(("factors", kind), names, problems)
    known = [name for name in names if name in tables]
    return Factor(name=kind, levels=tuple(FactorLevel(word=name, label=name, value=tables[name]) for name in known))


def _scales(scales: Sequence[int], problems: Problems) -> Factor[int | None]:
    words = [str(scale) for scale in scales]
    check_for_repeats(("factors", "scale"), words, problems)
    pairs = zip(words, scales, strict=True)
    return Factor(name="scale", levels=tuple(FactorLevel(word=word, label=word, value=scale) for word, scale in pairs))


def _caches(sections: schema.Sections, states: Sequence[CacheState] | None, problems: Problems) -> Factor[CacheState]:
    if states is not None and sections.cache is not None:
        problems.add(
            ("cache",),
            StudyError(
                "cache is both a factor and a top-level key",
                slug="study-file-conflict",
                found="cache at the top and in [factors]",
                expected="one of them",
                to_do="remove the one at the top",
            ),
        )
    states = states or [sections.cache or CacheState.WARM]
    check_for_repeats(("factors", "cache"), states, problems)
    levels = tuple(FactorLevel(word=state.value, label=state.value, value=state) for state in states)
    return Factor(name="cache", levels=levels)


def _settings(factors: schema.FactorsTable, problems: Problems) -> tuple[Factor[Setting], ...]:
    own_names = list(schema.FactorsTable.model_fields)
    result = []
    names: list[str] = []
    for name, values in (factors.model_extra or {}).items():
        meant = nearest(name, own_names, cutoff=_MISSPELT)
        if meant is not None:
            problems.mark(("factors", meant))
            problems.add(("factors", name), _misspelt(name, meant))
            continue
        names.append(name)
        levels = tuple(
            FactorLevel(word=value, label=label, value=Setting(name=name, value=value))
            for value, label in zip(values, value_labels(name, values), strict=True)
        )
        result.append(Factor(name=name, levels=levels))
    check_names(names, ("factors",), problems)
    return tuple(result)


def _misspelt(name: str, meant: str) -> StudyError:
    return StudyError(
        f"{as_key(name)} is neither a factor of pgversus nor a setting of PostgreSQL",
        slug="study-file-unknown-key",
        found=as_key(name),
        expected=f"{', '.join(schema.FactorsTable.model_fields)}, or a setting",
        to_do=f"did you mean {meant}?",
    )


def _absent(name: str) -> Factor[Any]:
    return Factor(name=name, levels=(FactorLevel(word="", label="", value=None),), is_named=False)
