"""Workloads, datasets and loads of a study file, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pgversus.errors import StudyError
from pgversus.study.dataset import Dataset, Dump, SetupFile
from pgversus.study.file import schema
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.document import Path, as_key, as_toml, shown
from pgversus.study.file.keys import (
    OF_A_LOAD,
    OF_AN_OPERATION,
    Contents,
    given_forms,
    inline_setup,
    is_one,
    quantity,
    settings_of,
)
from pgversus.study.file.operations import check_operation_keys, check_used_variables, operation_of, prepare_of
from pgversus.study.file.problems import Problems
from pgversus.study.settings import Setting
from pgversus.study.workload import (
    Operation,
    PgbenchWorkload,
    QueryMode,
    Script,
    check_for_secret_variables,
    check_load,
    find_builtin,
    threads_used,
)
from pgversus.text.units import WindowLength, parse_window

T = TypeVar("T")
_APPLICATION = "application"
_TEMPLATE = schema.WorkloadTable(sql=";")
"""Placeholder that each statement of an application replaces."""
_REWRITTEN = ("script", "sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWorkload:
    """A workload, before it is combined with a load."""

    name: str
    scripts: tuple[Script, ...]
    """The scripts of a load; empty for an operation."""
    operation: Operation | None
    """None for a load."""
    prepare: tuple[SetupFile, ...]
    """Files that create the state that the operation needs."""
    variables: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]
    dataset: Dataset | None
    """The workload's own dataset; None if a factor sets it, or without a dataset."""
    rewrite: Script | None = None
    """An equivalent script that restores the old plan."""

    @property
    def is_broken(self) -> bool:
        """Whether it is neither a load nor an operation because of a problem in the file."""
        return not self.scripts and self.operation is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLoad:
    """The load that a workload runs under."""

    name: str
    clients: int = 1
    threads: int = 1
    query_mode: QueryMode = QueryMode.SIMPLE
    rate: float | None = None
    window: WindowLength | None = None
    """None uses the window of the design."""


def datasets_of(sections: schema.Sections, contents: Contents, problems: Problems) -> dict[str, Dataset]:
    """Return all datasets by name, in the order of the file."""
    tables = _tables(sections.dataset, sections.datasets, "dataset", problems)
    result = {}
    for name, (table, path) in tables.items():
        files = [contents.setup(file, (*path, "setup", index)) for index, file in enumerate(table.setup or ())]
        files += [inline_setup(name, table.sql)] if table.sql is not None else []
        result[name] = Dataset(
            restore=_restored(table, contents, path, problems),
            pgbench_scale=table.scale,
            setup_files=tuple(file for file in files if file is not None),
            full_statistics=bool(table.full_statistics),
        )
    return result


def _restored(table: schema.DatasetTable, contents: Contents, path: Path, problems: Problems) -> Dump | None:
    if table.restore is not None:
        return contents.dump(table.restore, table.database, (*path, "restore"))
    if table.database is not None:
        problems.add(
            (*path, "database"),
            StudyError(
                "the key database requires the key restore",
                slug="study-idle-database",
                found="no key restore",
                expected="the key restore, with the base backup or data directory that contains this database",
                to_do='restore = "backup"',
            ),
        )
    return None


def loads_of(sections: schema.Sections, problems: Problems) -> dict[str, NamedLoad]:
    """Return all loads by name, in the order of the file; by default one load with one client."""
    tables = _tables(sections.load, sections.loads, "load", problems) or {"load": (schema.LoadTable(), ("load",))}
    result = {}
    for name, (table, path) in tables.items():
        clients = table.clients or 1
        result[name] = NamedLoad(
            name=name,
            clients=clients,
            threads=threads_used(table.threads or 1, clients),
            query_mode=table.protocol or QueryMode.SIMPLE,
            rate=table.rate,
            window=quantity((*path, "window"), table.window, parse_window, problems),
        )
    return result


def workloads_of(
    sections: schema.Sections, datasets: Mapping[str, Dataset], contents: Contents, problems: Problems
) -> dict[str, NamedWorkload]:
    """Return all workloads by name, in the order of the file."""
    tables = _tables(sections.workload, sections.workloads, "workload", problems)
    if sections.application is not None:
        if tables:
            problems.add((_APPLICATION,), _two_kinds())
        tables = {_APPLICATION: (_TEMPLATE, (_APPLICATION,))}
    if not tables and not problems.lost_names("workload"):
        problems.add(
            ("workload", "script"),
            StudyError(
                "no workload given",
                slug="study-file-missing-key",
                found="neither [workload] nor [workloads.NAME]",
                expected="a workload to run and time",
                to_do='[workload] with script = "query.sql", sql = "SELECT 1;" or operation = "VACUUM t"',
            ),
        )
    is_chosen = problems.lost("factors", "dataset") or bool(sections.factors and sections.factors.dataset)
    result = {}
    for name, (table, path) in tables.items():
        workload = _workload(name, table, path, contents, problems)
        if table.operation or table.command or table.steps:
            check_used_variables(table, sections, name, path, problems)
        result[workload.name] = replace(
            workload, dataset=_own_dataset(table, path, datasets, problems, is_chosen=is_chosen)
        )
    return result


def _two_kinds() -> StudyError:
    return StudyError(
        "both [application] and a workload are given",
        slug="study-file-conflict",
        found="both",
        expected="[application] for statements, [workload] or [workloads.NAME] for scripts and operations",
        to_do="remove one of them",
    )


def unknown_name(kind: str, name: str, names: Mapping[str, object]) -> StudyError:
    """Return the problem of a name that no table has."""
    meant = nearest(name, list(names))
    return StudyError(
        f"unknown {kind} {shown(name)}",
        slug="study-unknown-level",
        found=shown(name),
        expected=listed(names, show=shown, joint=" or ") or f"a name from [{kind}s.NAME], but there are no such tables",
        to_do=f"did you mean {as_toml(meant)}?" if meant else f"add [{kind}s.{as_key(name)}]",
    )


def _tables(
    single: T | None, several: Mapping[str, T] | None, kind: str, problems: Problems
) -> dict[str, tuple[T, Path]]:
    if single is not None and several:
        problems.add(
            (kind,),
            StudyError(
                f"both [{kind}] and [{kind}s.NAME] are given",
                slug="study-file-conflict",
                found="both",
                expected=f"[{kind}] for one, [{kind}s.NAME] for several",
                to_do=f"rename [{kind}] to [{kind}s.NAME]",
            ),
        )
    named: dict[str, tuple[T, Path]] = {name: (table, (f"{kind}s", name)) for name, table in (several or {}).items()}
    return named if single is None or several else {kind: (single, (kind,))}


def _own_dataset(
    table: schema.WorkloadTable,
    path: Path,
    datasets: Mapping[str, Dataset],
    problems: Problems,
    *,
    is_chosen: bool,
) -> Dataset | None:
    if problems.lost_names("dataset") or problems.lost(*path, "dataset"):
        # It may be missing only because it is invalid.
        return None
    if table.dataset is not None:
        if table.dataset not in datasets:
            problems.add((*path, "dataset"), unknown_name("dataset", table.dataset, datasets))
        return None if is_chosen else datasets.get(table.dataset)
    if is_chosen or not datasets:
        return None
    if len(datasets) == 1:
        return next(iter(datasets.values()))
    problems.add(
        (*path, "dataset"),
        StudyError(
            "this workload does not name its dataset",
            slug="study-file-missing-key",
            found=f"{len(datasets)} datasets",
            expected=listed(datasets, show=shown, joint=" or "),
            to_do=f"dataset = {shown(next(iter(datasets)))}, or dataset = [...] in [factors] to use several",
        ),
    )
    return None


def _workload(
    name: str, table: schema.WorkloadTable, path: Path, contents: Contents, problems: Problems
) -> NamedWorkload:
    """Return a workload without its dataset; the only workload is named after its scripts or steps."""
    is_only = path == ("workload",)
    operation: Operation | None = None
    scripts: tuple[Script, ...] = ()
    if is_one(table, (*OF_A_LOAD, *OF_AN_OPERATION), path, problems):
        if given_forms(table, OF_AN_OPERATION):
            operation = operation_of(None if is_only else name, table, path, problems)
        else:
            scripts = _scripts("sql" if is_only else name, table, path, contents, problems)
            check_operation_keys(table, path, problems)
            with problems.catch((*path, "variables")):
                check_for_secret_variables(tuple((table.variables or {}).items()))
    found = NamedWorkload(
        name=name,
        scripts=scripts,
        operation=operation,
        prepare=prepare_of(name, table, path, contents),
        variables=tuple((table.variables or {}).items()),
        settings=settings_of(table.settings, (*path, "settings"), problems),
        dataset=None,
        rewrite=_rewrite(table, path, contents, problems),
    )
    if not is_only:
        return found
    if found.is_broken:
        # Its name is unknown, because it would be derived from its content.
        problems.mark(path)
    return replace(found, name=operation.name if operation else ", ".join(script.name for script in scripts))


def _rewrite(table: schema.WorkloadTable, path: Path, contents: Contents, problems: Problems) -> Script | None:
    if table.rewrite is None:
        return None
    if not given_forms(table, _REWRITTEN):
        problems.add(
            (*path, "rewrite"),
            StudyError(
                "rewrite requires a workload with a single script",
                slug="study-no-rewrite",
                found=f"a workload with {listed(given_forms(table, (*OF_A_LOAD, *OF_AN_OPERATION))) or 'nothing'}",
                expected=listed(_REWRITTEN, joint=" or "),
                to_do="move the script with the changed plan to a workload of its own, or remove rewrite",
            ),
        )
        return None
    text = contents.script(table.rewrite, (*path, "rewrite"))
    return None if text is None else Script(name=table.rewrite, text=text)


def _scripts(
    own_name: str, table: schema.WorkloadTable, path: Path, contents: Contents, problems: Problems
) -> tuple[Script, ...]:
    if table.scripts is None:
        found = [_script(table, None, own_name, path, contents, problems)]
    else:
        found = []
        for index, entry in enumerate(table.scripts):
            inner = (*path, "scripts", index)
            if is_one(entry, ("script", "sql", "builtin"), inner, problems):
                found.append(_script(entry, entry.weight, f"{own_name} {index + 1}", inner, contents, problems))
    scripts = tuple(script for script in found if script is not None)
    if scripts:
        with problems.catch((*path, "scripts"), to_do="give at least one of them a weight of 1"):
            check_load(PgbenchWorkload(scripts=scripts))
    return scripts


def _script(
    table: schema.WorkloadTable | schema.ScriptEntry,
    weight: int | None,
    own_name: str,
    path: Path,
    contents: Contents,
    problems: Problems,
) -> Script | None:
    if table.sql is not None:
        return Script(name=own_name, weight=weight, text=table.sql)
    if table.script is not None:
        text = contents.script(table.script, (*path, "script"))
        return None if text is None else Script(name=table.script, weight=weight, text=text)
    with problems.catch((*path, "builtin")):
        return Script(name=find_builtin(table.builtin or ""), weight=weight)
    return None
