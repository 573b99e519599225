"""Keys shared by several kinds of tables: files, settings, quantities, and mutually exclusive keys."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pgversus.errors import StudyError
from pgversus.study.dataset import Dump, SetupFile, setup_file
from pgversus.study.file.document import Path, as_key, shown
from pgversus.study.file.key_types import Table
from pgversus.study.file.problems import Problems
from pgversus.study.settings import Setting, parse_setting

ReadFile = Callable[[str], tuple[str, bytes | None]]
"""Maps a path in the study file to the absolute path and the content; StudyError or OSError for an unreadable file.

The content is None for a file that exists but must not be read yet; it is treated as empty.
"""


FindDump = Callable[[str, str | None], Dump]
"""Maps a path in the study file, and the name of a database or None, to a dump; StudyError if it cannot be restored.

The hash is empty if the dump must not be read yet.
"""


class Contents:
    """Reads files through `read`, and reports unreadable files at every key that names them."""

    def __init__(self, read: ReadFile, find_dump: FindDump, problems: Problems) -> None:
        self._read = read
        self._find_dump = find_dump
        self._problems = problems
        self._known: dict[str, tuple[str, bytes | None]] = {}

    def script(self, name: str, path: Path) -> str | None:
        """Return the text of a script; None if it cannot be read."""
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
                    expected="UTF-8, the encoding of the compared databases",
                    to_do="convert it to UTF-8, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW",
                ),
            )
            return None

    def setup(self, name: str, path: Path) -> SetupFile | None:
        """Return a setup file with the hash of its content; None if it cannot be read."""
        found = self._content(name, path)
        return None if found is None else setup_file(found[0], found[1] or b"")

    def dump(self, name: str, database: str | None, path: Path) -> Dump | None:
        """Return a dump or data directory; None if it cannot be restored."""
        with self._problems.catch(path):
            return self._find_dump(name, database)
        return None

    def unless_unread(self, name: str, path: Path) -> str | None:
        """Return the text of a file; None if it cannot be read or must not be read yet."""
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
                    f"the file {shown(name)} could not be read",
                    slug="study-no-file",
                    found=error.strerror or str(error),
                    expected="a regular file",
                    to_do="check the path, which is relative to the study file, and the size and permissions of the "
                    "file",
                ) from error
        return self._known.get(name)


def inline_setup(name: str, sql: str) -> SetupFile:
    """Return SQL that is inline in the study file as a setup file."""
    return setup_file(f"{name} inline", sql.encode(), text=sql)


def settings_of(table: Mapping[str, str] | None, path: Path, problems: Problems) -> tuple[Setting, ...]:
    """Return the settings of one table; invalid names are added to the problems."""
    settings = table or {}
    check_names(settings, path, problems)
    return tuple(Setting(name=name, value=value) for name, value in settings.items())


def check_names(names: Iterable[str], path: Path, problems: Problems) -> None:
    """Add a problem for each name that is invalid, duplicate, or reserved for pgversus."""
    seen: dict[str, str] = {}
    for name in names:
        _check_name(name, (*path, name), problems)
        if name.lower() in seen:
            problems.add(
                (*path, name),
                StudyError(
                    f"duplicate setting {as_key(name)}",
                    slug="study-repeated-setting",
                    found=f"{as_key(seen[name.lower()])} and {as_key(name)}",
                    expected="one of them: PostgreSQL ignores case in names of settings",
                    to_do="remove one",
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
                f"{shown(name)} is not a valid setting name",
                slug="study-bad-setting",
                found=shown(name),
                expected="a name as in postgresql.conf",
                to_do='write work_mem = "4MB", and quote a name that contains a dot: "bench.delay" = "1"',
            ),
        )


def merged_settings(*groups: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return all settings, with names compared regardless of case; later values override earlier ones."""
    by_name: dict[str, Setting] = {}
    for group in groups:
        for setting in group:
            by_name[setting.name.lower()] = setting
    return tuple(by_name.values())


OF_A_LOAD = ("script", "sql", "builtin", "scripts")
OF_AN_OPERATION = ("operation", "command", "steps")
_REMEDIES = {
    "operation": 'use steps = [{ sql = "..." }, { command = "..." }] for several steps',
    "load": 'use scripts = [{ script = "a.sql", weight = 2 }, { builtin = "select-only" }] for a mix',
}


def given_forms(table: Table, forms: Iterable[str]) -> list[str]:
    """Return the keys of `forms` that the table has."""
    return [form for form in forms if getattr(table, form) is not None]


def is_one(table: Table, forms: tuple[str, ...], path: Path, problems: Problems) -> bool:
    """Return whether the table has exactly one of these keys; otherwise a problem is added."""
    if any(problems.concern(*path, form) for form in forms):
        return False
    given = given_forms(table, forms)
    if len(given) == 1:
        return True
    problems.add(
        (*path, given[1]) if given else path,
        StudyError(
            "mutually exclusive keys" if given else "a required key is missing",
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
    """Return the parsed value; None if it is missing or was reported as a problem."""
    if text is None:
        return None
    try:
        return parse(text, str(path[-1]))
    except StudyError as error:
        problems.add(path, error)
        return None
