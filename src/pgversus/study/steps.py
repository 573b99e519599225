"""Operations from what the user wrote: statements and programs, each with a name of its own."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath

from pgversus.errors import StudyError
from pgversus.study.comparison import unique_labels
from pgversus.study.workload import Step
from pgversus.text.redaction import code_without_secrets
from pgversus.text.sql import without_comments

_LONGEST = 60
# Of a name: it heads columns and stands in sentences.
_LONGEST_COMMAND = 100_000
# Linux gives no program a longer argument than 128 kB, and shlex takes time that grows with the square of the length.
_FROM_CLIENT = re.compile(r"COPY\b.*\b(FROM\s+STDIN|TO\s+STDOUT)\b", re.IGNORECASE | re.DOTALL)


def statement_step(sql: str, where: str, name: str | None = None) -> Step:
    """The step of one SQL statement; without a name it is called by its own text. StudyError where there is no SQL.

    where: the flag or the key, for messages.
    """
    # A name stands in every output.
    shown = code_without_secrets(name or _checked(sql, where))
    return Step(name=shown if name else _shortened(shown), sql=sql)


def program_step(command: str, where: str, name: str | None = None) -> Step:
    """The step of a program, its words split as a shell splits them; without a name it is called as the program is.

    where: the flag or the key, for messages. StudyError for an open quotation mark, where there is no program, and for
    a text that is longer than any command.
    """
    program: tuple[str, ...] = ()
    found = f'"{_shortened(command)}"'
    if len(command) > _LONGEST_COMMAND:
        found = f"{found}, {len(command)} characters"
    else:
        try:
            program = tuple(shlex.split(command))
        except ValueError as error:
            found = f"{found}: {error}"
    if not program or not program[0]:
        raise StudyError(
            "this is no command",
            slug="study-bad-command",
            where=where,
            found=found,
            expected="a program and its arguments, quoted as in a shell",
            to_do=f"{where} 'pg_dump -Fc -f db.dump'",
        )
    return Step(name=code_without_secrets(name or PurePath(program[0]).name or program[0]), program=program)


def verifying_sql(sql: str, where: str) -> str:
    """The statement that must return nothing but true; StudyError where there is no SQL. where: as above."""
    _checked(sql, where, "SELECT count(*) > 0 FROM pgbench_accounts")
    return sql


def with_own_names(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps; of those that are called the same, each but the first gets a number."""
    names = unique_labels([step.name for step in steps])
    return tuple(replace(step, name=name) for step, name in zip(steps, names, strict=True))


def operation_name(steps: Sequence[Step]) -> str:
    """What an operation is called that nobody has named: by its steps."""
    return ", ".join(step.name for step in steps)


def _checked(sql: str, where: str, example: str = "VACUUM pgbench_accounts") -> str:
    """The statement on one line, without the semicolon at its end."""
    line = " ".join(sql.split()).rstrip("; ")
    # Of an empty statement a comment may be left, never less: what is taken out may have stood in quotation marks.
    is_empty = not without_comments(sql, " ").strip("; \t\r\n")
    if is_empty or line.startswith("\\") or not _is_text(sql):
        raise _no_statement(
            where,
            found=f'"{_shortened(sql)}"' if _is_text(sql) else "bytes that are no UTF-8, or a byte 0",
            expected="one statement of SQL; what begins with \\ is of psql",
            to_do=f"{where} '{example}'",
        )
    if _FROM_CLIENT.match(line):
        raise _no_statement(
            where,
            found=f'"{_shortened(line)}": rows that go through the client',
            expected="a statement that the server does alone",
            to_do="COPY from or to a file of the server's, or psql as a program that is timed: "
            "psql -c '\\copy t from t.csv'",
        )
    return line


def _is_text(sql: str) -> bool:
    """Whether a server can be given it: the command line hands bytes on that are none."""
    return "\0" not in sql and not any("\ud800" <= letter <= "\udfff" for letter in sql)


def _no_statement(where: str, *, found: str, expected: str, to_do: str) -> StudyError:
    return StudyError(
        "this is no SQL statement that can be timed",
        slug="study-bad-statement",
        where=where,
        found=found,
        expected=expected,
        to_do=to_do,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
