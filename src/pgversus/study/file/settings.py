"""Settings of a study file: names that PostgreSQL could have, each once."""

from collections.abc import Iterable, Mapping

from pgversus.errors import StudyError
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key, shown
from pgversus.study.settings import Setting, parse_setting


def settings_of(table: Mapping[str, str] | None, path: Path, problems: Problems) -> tuple[Setting, ...]:
    """The settings of one table; what is wrong with their names is added to the problems."""
    settings = table or {}
    check_names(settings, path, problems)
    return tuple(Setting(name=name, value=value) for name, value in settings.items())


def check_names(names: Iterable[str], path: Path, problems: Problems) -> None:
    """Add a problem for each name that is none, that pgversus gives its servers itself, or that stands there twice."""
    seen: dict[str, str] = {}
    for name in names:
        _check_name(name, (*path, name), problems)
        if name.lower() in seen:
            problems.add(
                (*path, name),
                StudyError(
                    f"the setting {as_key(name)} is given twice",
                    slug="study-repeated-setting",
                    found=f"{as_key(seen[name.lower()])} and {as_key(name)}",
                    expected="one of them: PostgreSQL does not tell small letters from capitals in names",
                    to_do="leave one out",
                ),
            )
        seen[name.lower()] = name


def _check_name(name: str, path: Path, problems: Problems) -> None:
    try:
        is_name = parse_setting(f"{name}=").name == name
    except StudyError as error:
        if error.slug != "study-bad-setting":
            problems.add(path, error)
            return
        is_name = False
    if not is_name:
        problems.add(
            path,
            StudyError(
                f"{shown(name)} is no name of a setting",
                slug="study-bad-setting",
                found=shown(name),
                expected="a name as in postgresql.conf",
                to_do='work_mem = "4MB"; the name of an extension\'s setting is quoted: "bench.delay" = "1"',
            ),
        )


def merged_settings(*groups: Iterable[Setting]) -> tuple[Setting, ...]:
    """All settings, each name once whatever its capitals; what comes later wins."""
    by_name: dict[str, Setting] = {}
    for group in groups:
        for setting in group:
            by_name[setting.name.lower()] = setting
    return tuple(by_name.values())
