"""The operations of a study file: their steps, preparation and verification."""

from pgversus.errors import StudyError
from pgversus.study.dataset import SetupFile
from pgversus.study.file import schema
from pgversus.study.file.document import Path, as_key, shown
from pgversus.study.file.keys import (
    Contents,
    given_forms,
    inline_setup,
    is_one,
)
from pgversus.study.file.problems import Problems
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names
from pgversus.study.workload import (
    Operation,
    Step,
)

_ONLY_OF_OPERATIONS = ("prepare", "prepare_sql", "verify")
_EXAMPLES = {
    "operation": 'operation = "VACUUM pgbench_accounts"',
    "sql": 'sql = "VACUUM pgbench_accounts"',
    "command": 'command = "pg_dump -Fc -f db.dump"',
    "verify": 'verify = "SELECT count(*) = 0 FROM t"',
}


def operation_of(name: str | None, table: schema.WorkloadTable, path: Path, problems: Problems) -> Operation | None:
    """Return the operation of a workload; None if its steps are invalid, which adds a problem.

    name: None names the operation after its steps.
    """
    steps = _steps(table, path, problems)
    verify = None
    if table.verify is not None:
        with problems.catch((*path, "verify"), to_do=_EXAMPLES["verify"]):
            verify = verifying_sql(table.verify, "verify")
    if not steps:
        return None
    named = with_own_names(steps)
    return Operation(name=name or operation_name(named), steps=named, verify=(verify,) if verify else ())


def prepare_of(name: str, table: schema.WorkloadTable, path: Path, contents: Contents) -> tuple[SetupFile, ...]:
    """Return the files that psql runs once on the loaded data; unreadable files are problems."""
    files = [contents.setup(file, (*path, "prepare", index)) for index, file in enumerate(table.prepare or ())]
    files += [inline_setup(f"{name} prepare", table.prepare_sql)] if table.prepare_sql is not None else []
    return tuple(file for file in files if file is not None)


def check_operation_keys(table: schema.WorkloadTable, path: Path, problems: Problems) -> None:
    """Add a problem for each key of a load that is only valid for operations."""
    for key in given_forms(table, _ONLY_OF_OPERATIONS):
        problems.add(
            (*path, key),
            StudyError(
                f"{key} is only valid for operations, and this workload is a load",
                slug="study-no-operation",
                found=key,
                expected="a workload with operation, command or steps",
                to_do="remove it; prepare a load with setup and sql of its dataset",
            ),
        )


def check_used_variables(
    table: schema.WorkloadTable, sections: schema.Sections, name: str, path: Path, problems: Problems
) -> None:
    """Add a problem if an operation has variables that nothing reads, so that all levels would be equal."""
    if table.prepare or table.prepare_sql is not None or problems.concern(*path, "prepare"):
        return
    if problems.concern(*path, "prepare_sql"):
        return
    if table.variables:
        problems.add((*path, "variables"), _idle(name))
    elif sections.factors and sections.factors.variables:
        problems.add(("factors", "variables"), _idle(name))


def _steps(table: schema.WorkloadTable, path: Path, problems: Problems) -> list[Step]:
    if table.steps is None:
        key = "operation" if table.operation is not None else "command"
        found = [_step(None, table.operation, table.command, (*path, key), problems)]
    else:
        found = []
        for index, entry in enumerate(table.steps):
            inner = (*path, "steps", index)
            if is_one(entry, ("sql", "command"), inner, problems):
                key = "sql" if entry.sql is not None else "command"
                found.append(_step(entry.name, entry.sql, entry.command, (*inner, key), problems))
        _check_repeated_names(table.steps, path, problems)
    return [step for step in found if step is not None]


def _step(name: str | None, sql: str | None, command: str | None, path: Path, problems: Problems) -> Step | None:
    key = str(path[-1])
    with problems.catch(path, to_do=_EXAMPLES[key]):
        return program_step(command, key, name) if sql is None and command else statement_step(sql or "", key, name)
    return None


def _check_repeated_names(steps: list[schema.StepEntry], path: Path, problems: Problems) -> None:
    names = [step.name for step in steps]
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            problems.add(
                (*path, "steps", index, "name"),
                StudyError(
                    f"duplicate step name {shown(name)}",
                    slug="study-file-conflict",
                    found=f"{shown(name)} again",
                    expected="a unique name for each step",
                    to_do="choose a different name, or omit it to use the statement as the name",
                ),
            )


def _idle(name: str) -> StudyError:
    return StudyError(
        f"nothing in the workload {as_key(name)} reads variables",
        slug="study-idle-variables",
        found="an operation without prepare",
        expected="files in prepare, or prepare_sql, that use them",
        to_do='add prepare_sql = "..." to the workload, or move it to another study',
    )
