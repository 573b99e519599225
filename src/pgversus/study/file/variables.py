"""[factors.variables]: variables of scripts, and of what prepares an operation, as factors."""

from collections.abc import Iterable, Iterator, Sequence

from pgversus.errors import StudyError
from pgversus.study.file import schema
from pgversus.study.file.forms import OF_A_LOAD, given_forms
from pgversus.study.file.matrix import Factor, Level, Variable, refuse_repeats, value_labels
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key
from pgversus.study.workload import refuse_secret_variables

_TABLE: Path = ("factors", "variables")


def variable_factors(
    sections: schema.Sections, settings: Iterable[str], problems: Problems
) -> tuple[Factor[Variable], ...]:
    """A factor for each variable; what cannot be told from another name is added to the problems.

    settings: names of those that are factors.
    """
    table = (sections.factors or schema.Factors()).variables or {}
    taken = {name.lower(): "a factor of pgversus" for name in schema.Factors.model_fields}
    taken |= {name.lower(): "a setting" for name in (*settings, *_shared_settings(sections))}
    for name, values in table.items():
        refuse_repeats((*_TABLE, name), values, problems)
        if _has_loads(sections):
            with problems.catch((*_TABLE, name)):
                refuse_secret_variables([(name, value) for value in values])
        if name.lower() in taken:
            problems.add((*_TABLE, name), _taken(name, taken[name.lower()]))
        taken[name.lower()] = "another variable"
    return tuple(Factor(name=name, levels=_levels(name, values), table=_TABLE) for name, values in table.items())


def _levels(name: str, values: Sequence[str]) -> tuple[Level[Variable], ...]:
    # Where a level is named elsewhere, true and false are those of a setting: on and off.
    as_settings = [{"true": "on", "false": "off"}.get(value, value) for value in values]
    return tuple(
        Level(word=value if as_setting in values else as_setting, label=label, value=(name, value))
        for value, as_setting, label in zip(values, as_settings, value_labels(name, values), strict=True)
    )


def _shared_settings(sections: schema.Sections) -> Iterator[str]:
    for table in (sections.settings, *(workload.settings for workload in _workloads(sections))):
        yield from table or ()


def _has_loads(sections: schema.Sections) -> bool:
    return any(given_forms(workload, OF_A_LOAD) for workload in _workloads(sections))


def _workloads(sections: schema.Sections) -> list[schema.Workload]:
    return [one for one in (sections.workload, *(sections.workloads or {}).values()) if one is not None]


def _taken(name: str, owner: str) -> StudyError:
    return StudyError(
        f"the variable {as_key(name)} is called as {owner} is",
        slug="study-file-conflict",
        found=f"{as_key(name)}, which is {owner} too",
        expected="a name of its own: it stands in labels, and small letters and capitals are the same there",
        to_do=f"another name for the variable, such as my_{name}",
    )
