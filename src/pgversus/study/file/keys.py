"""Keys that tables of every kind share: files, settings, quantities, and keys that exclude each other."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pgversus.errors import StudyError
from pgversus.study.dataset import SetupFile, setup_file
from pgversus.study.file import schema
from pgversus.study.file.document import Path, as_key, shown
from pgversus.study.file.problems import Problems
from pgversus.study.settings import Setting, parse_setting

ReadFile = Callable[[str], tuple[str, bytes | None]]
"""From a path as the study file has it to the absolute path and the content; StudyError or OSError for no file.

None for one that is there and must not be read yet: it counts as an empty one.
"""


class Contents:
    """Reads files through `read` and adds what cannot be read to the problems, at every key that names it."""

    def __init__(self, read: ReadFile, problems: Problems) -> None:
        self._read = read
        self._problems = problems
        self._known: dict[str, tuple[str, bytes | None]] = {}

    def script(self, name: str, path: Path) -> str | None:
        """The text of a script; None when it cannot be read."""
        found = self._content(name, path)
        if found is None:
            return None
        try:
            return (found[1] or b"").decode()
        except UnicodeDecodeError as error:
            self._problems.add(
                path,
                StudyError(
                    "a script is not UTF-8",
                    slug="study-script-encoding",
                    found=str(error),
                    expected="UTF-8, the encoding of the databases compared",
                    to_do=f"iconv -t UTF-8 {name}",
                ),
            )
            return None

    def setup(self, name: str, path: Path) -> SetupFile | None:
        """A setup file with the hash of its content; None when it cannot be read."""
        found = self._content(name, path)
        return None if found is None else setup_file(found[0], found[1] or b"")

    def figures(self, name: str, path: Path) -> str | None:
        """The same of published figures; None as well where they must not be read yet."""
        text = self.script(name, path)
        return None if name in self._known and self._known[name][1] is None else text

    def _content(self, name: str, path: Path) -> tuple[str, bytes | None] | None:
        if name in self._known:
            return self._known[name]
        with self._problems.catch(path):
            try:
                self._known[name] = self._read(name)
            except OSError as error:
                raise StudyError(
                    f"the file {shown(name)} cannot be read",
                    slug="study-no-file",
                    found=error.strerror or str(error),
                    expected="a regular file",
                    to_do="paths are relative to the study file",
                ) from error
        return self._known.get(name)


def inline_setup(name: str, sql: str) -> SetupFile:
    """SQL that stands in the study file itself."""
    return setup_file(f"{name} inline", sql.encode(), text=sql)


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


OF_A_LOAD = ("script", "sql", "builtin", "scripts")
OF_AN_OPERATION = ("operation", "command", "steps")
_REMEDIES = {
    "operation": 'steps = [{ sql = "..." }, { command = "..." }] does several things, one after the other',
    "load": 'scripts = [{ script = "a.sql", weight = 2 }, { builtin = "select-only" }] runs a mix',
}


def given_forms(table: schema.Table, forms: Iterable[str]) -> list[str]:
    """Which of these keys the table has."""
    return [form for form in forms if getattr(table, form) is not None]


def is_one(table: schema.Table, forms: tuple[str, ...], path: Path, problems: Problems) -> bool:
    """Whether the table at this path has exactly one of these keys; a problem is added when it has none or several."""
    if any(problems.concern(*path, form) for form in forms):
        return False
    given = given_forms(table, forms)
    if len(given) == 1:
        return True
    problems.add(
        (*path, given[1]) if given else path,
        StudyError(
            "more than one thing is to be run" if given else "it is not said what is run",
            slug="study-file-conflict" if given else "study-file-missing-key",
            found=" and ".join(given) or f"none of {', '.join(forms)}",
            expected=f"exactly one of {', '.join(forms)}",
            to_do=_remedy(given, forms),
        ),
    )
    return False


def _remedy(given: list[str], forms: tuple[str, ...]) -> str:
    if not given:
        return 'script = "query.sql"' if "script" in forms else 'sql = "CREATE INDEX ON pgbench_accounts (bid)"'
    return _REMEDIES["load" if given[0] in OF_A_LOAD and "script" in forms else "operation"]


Value = TypeVar("Value")


def quantity(path: Path, text: str | None, parse: Callable[[str, str], Value], problems: Problems) -> Value | None:
    """Return the parsed value; None when there is none, or when it is a problem now."""
    if text is None:
        return None
    key = str(path[-1])
    try:
        return parse(text, key)
    except StudyError as error:
        # The parser speaks of flags: `budget 15m` there is `budget = "15m"` here.
        error.to_do = re.sub(rf"{key} (\S+)", rf'{key} = "\1"', error.to_do)
        problems.add(path, error)
        return None
