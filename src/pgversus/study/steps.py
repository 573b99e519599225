"""Operations from what the user wrote: statements and programs, each with a name of its own."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from pgversus.errors import StudyError
from pgversus.study.comparison import unique_labels
from pgversus.study.operation import Step

_LONGEST = 60
# Of a name: it heads columns and stands in sentences.


def statement_step(sql: str, where: str, name: str | None = None) -> Step:
    """The step of one SQL statement; without a name it is called by its own text. StudyError where there is no SQL.

    where: the flag or the key, for messages.
    """
    return Step(name=name or _shortened(_checked(sql, where)), sql=sql)


def program_step(command: str, where: str, name: str | None = None) -> Step:
    """The step of a program, its words split as a shell splits them; without a name it is called as the program is.

    where: the flag or the key, for messages. StudyError for an open quotation mark, and where there is no program.
    """
    try:
        program = tuple(shlex.split(command))
        found = f'"{command}"'
    except ValueError as error:
        program, found = (), f'"{command}": {error}'
    if not program or not program[0]:
        raise StudyError(
            "this is no command",
            slug="study-bad-command",
            where=where,
            found=found,
            expected="a program and its arguments, quoted as in a shell",
            to_do=f"{where} 'pg_dump -Fc -f db.dump'",
        )
    return Step(name=name or PurePath(program[0]).name or program[0], program=program)


def verifying_sql(sql: str, where: str) -> str:
    """The statement that must return nothing but true; StudyError where there is no SQL. where: as above."""
    _checked(sql, where)
    return sql


def with_own_names(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps; of those that are called the same, each but the first gets a number."""
    names = unique_labels([step.name for step in steps])
    return tuple(replace(step, name=name) for step, name in zip(steps, names, strict=True))


def operation_name(steps: Sequence[Step]) -> str:
    """What an operation is called that nobody has named: by its steps."""
    return ", ".join(step.name for step in steps)


def _checked(sql: str, where: str) -> str:
    """The statement on one line, without the semicolon at its end."""
    line = " ".join(sql.split()).rstrip("; ")
    if not line or line.startswith("\\"):
        raise StudyError(
            "this is no SQL statement",
            slug="study-bad-statement",
            where=where,
            found=f'"{_shortened(sql)}"',
            expected="one statement of SQL; what begins with \\ is of psql",
            to_do=f"{where} 'VACUUM pgbench_accounts'",
        )
    return line


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
