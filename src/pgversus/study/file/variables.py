"""[factors.variables]: variables of scripts, and of what prepares an operation, as factors."""

from collections.abc import Iterable, Iterator, Sequence

from pgversus.errors import StudyError
from pgversus.study.file import schema
from pgversus.study.file.matrix import Factor, Level, Variable, refuse_repeats
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key

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
        if name.lower() in taken:
            problems.add((*_TABLE, name), _taken(name, taken[name.lower()]))
        taken[name.lower()] = "another variable"
    return tuple(
        Factor(name=name, levels=tuple(_level(name, value, values) for value in values), table=_TABLE)
        for name, values in table.items()
    )


def _level(name: str, value: str, values: Sequence[str]) -> Level[Variable]:
    # Where a level is named elsewhere, true and false are those of a setting: on and off.
    as_setting = {"true": "on", "false": "off"}.get(value, value)
    return Level(word=value if as_setting in values else as_setting, label=value, value=(name, value))


def _shared_settings(sections: schema.Sections) -> Iterator[str]:
    workloads = [sections.workload, *(sections.workloads or {}).values()]
    for table in (sections.settings, *(workload.settings for workload in workloads if workload)):
        yield from table or ()


def _taken(name: str, owner: str) -> StudyError:
    return StudyError(
        f"the variable {as_key(name)} is called as {owner} is",
        slug="study-file-conflict",
        found=f"{as_key(name)}, which is {owner} too",
        expected="a name of its own: it stands in labels, and small letters and capitals are the same there",
        to_do=f"another name for the variable, such as my_{name}",
    )
