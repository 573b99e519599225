"""Operations of a study file, and what makes the state that they need."""

from pgversus.errors import StudyError
from pgversus.study.dataset import SetupFile
from pgversus.study.file import schema
from pgversus.study.file.contents import Contents, inline_setup
from pgversus.study.file.forms import given_forms, is_one
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key, shown
from pgversus.study.operation import Operation, Step
from pgversus.study.steps import operation_name, program_step, statement_step, verifying_sql, with_own_names

_ONLY_OF_OPERATIONS = ("prepare", "prepare_sql", "verify")
_EXAMPLES = {
    "operation": 'operation = "VACUUM pgbench_accounts"',
    "sql": 'sql = "VACUUM pgbench_accounts"',
    "command": 'command = "pg_dump -Fc -f db.dump"',
    "verify": 'verify = "SELECT count(*) = 0 FROM t"',
}


def operation_of(name: str | None, table: schema.Workload, path: Path, problems: Problems) -> Operation | None:
    """The operation of a workload that has one; None when its steps are wrong, which is a problem then.

    name: None for one that is called by its steps.
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


def prepare_of(name: str, table: schema.Workload, path: Path, contents: Contents) -> tuple[SetupFile, ...]:
    """What psql does once to what was loaded; files that cannot be read are problems."""
    files = [contents.setup(file, (*path, "prepare", index)) for index, file in enumerate(table.prepare or ())]
    files += [inline_setup(f"{name} prepare", table.prepare_sql)] if table.prepare_sql is not None else []
    return tuple(file for file in files if file is not None)


def refuse_parts_of_operations(table: schema.Workload, path: Path, problems: Problems) -> None:
    """Add a problem for each key of a load that only operations have."""
    for key in given_forms(table, _ONLY_OF_OPERATIONS):
        problems.add(
            (*path, key),
            StudyError(
                f"{key} is for an operation, and this workload is a load",
                slug="study-no-operation",
                found=key,
                expected="a workload with operation, command or steps",
                to_do="leave it out; what a load needs is made by setup and sql of its dataset",
            ),
        )


def refuse_idle_variables(
    table: schema.Workload, sections: schema.Sections, name: str, path: Path, problems: Problems
) -> None:
    """Add a problem when an operation has variables and nothing that reads them: all levels would be the same."""
    if table.prepare or table.prepare_sql is not None or problems.concern(*path, "prepare"):
        return
    if problems.concern(*path, "prepare_sql"):
        return
    if table.variables:
        problems.add((*path, "variables"), _idle(name))
    elif sections.factors and sections.factors.variables:
        problems.add(("factors", "variables"), _idle(name))


def _steps(table: schema.Workload, path: Path, problems: Problems) -> list[Step]:
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
        _refuse_repeated_names(table.steps, path, problems)
    return [step for step in found if step is not None]


def _step(name: str | None, sql: str | None, command: str | None, path: Path, problems: Problems) -> Step | None:
    key = str(path[-1])
    with problems.catch(path, to_do=_EXAMPLES[key]):
        return program_step(command, key, name) if sql is None and command else statement_step(sql or "", key, name)
    return None


def _refuse_repeated_names(steps: list[schema.StepEntry], path: Path, problems: Problems) -> None:
    names = [step.name for step in steps]
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            problems.add(
                (*path, "steps", index, "name"),
                StudyError(
                    f"two steps are called {shown(name)}",
                    slug="study-file-conflict",
                    found=f"{shown(name)} again",
                    expected="a name of its own for each time",
                    to_do="another name, or none: it is called by its statement then",
                ),
            )


def _idle(name: str) -> StudyError:
    return StudyError(
        f"nothing in the workload {as_key(name)} reads variables",
        slug="study-idle-variables",
        found="an operation without prepare",
        expected="files of prepare, or prepare_sql, that use them",
        to_do='prepare_sql = "..." in the workload, or a study of its own for it',
    )
