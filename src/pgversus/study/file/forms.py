"""Keys that exclude each other, of which a table must have one: what is run."""

from collections.abc import Iterable

from pgversus.errors import StudyError
from pgversus.study.file import schema
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems

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
