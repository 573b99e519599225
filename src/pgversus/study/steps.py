"""Operations built from the user's input: statements and programs, each with a unique name."""

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
# Maximum length of a name, which is used in column headers and sentences.
_LONGEST_COMMAND = 100_000
# Linux limits an argument to 128 kB, and shlex takes time quadratic in the length.
_FROM_CLIENT = re.compile(r"COPY\b.*\b(FROM\s+STDIN|TO\s+STDOUT)\b", re.IGNORECASE | re.DOTALL)


def statement_step(sql: str, where: str, name: str | None = None) -> Step:
    """Return the step of one SQL statement, named after its text by default. StudyError without SQL.

    where: the option or the key, for messages.
    """
    # The name is part of all output.
    shown = code_without_secrets(name or _checked(sql, where))
    return Step(name=shown if name else _shortened(shown), sql=sql)


def program_step(command: str, where: str, name: str | None = None) -> Step:
    """Return the step of a program, split into words like a shell does, named after the program by default.

    where: the option or the key, for messages. StudyError for an unclosed quote, an empty command, and a text longer
    than any command.
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
            "invalid command",
            slug="study-bad-command",
            where=where,
            found=found,
            expected="a program and its arguments, quoted as in a shell",
            to_do=f"{where} 'pg_dump -Fc -f db.dump'",
        )
    return Step(name=code_without_secrets(name or PurePath(program[0]).name or program[0]), program=program)


def verifying_sql(sql: str, where: str) -> str:
    """Return a statement that must return only true. StudyError without SQL. where: the option or key, for messages."""
    _checked(sql, where, "SELECT count(*) > 0 FROM pgbench_accounts")
    return sql


def with_own_names(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with a number appended to repeated names."""
    names = unique_labels([step.name for step in steps])
    return tuple(replace(step, name=name) for step, name in zip(steps, names, strict=True))


def operation_name(steps: Sequence[Step]) -> str:
    """Return the default name of an operation: the names of its steps."""
    return ", ".join(step.name for step in steps)


def _checked(sql: str, where: str, example: str = "VACUUM pgbench_accounts") -> str:
    """Return the statement on one line, without its final semicolon."""
    line = " ".join(sql.split()).rstrip("; ")
    # This may keep a comment in an empty statement, but never removes text inside quotes.
    is_empty = not without_comments(sql, " ").strip("; \t\r\n")
    if is_empty or line.startswith("\\") or not _is_text(sql):
        raise _no_statement(
            where,
            found=f'"{_shortened(sql)}"' if _is_text(sql) else "bytes that are not UTF-8, or a zero byte",
            expected="one SQL statement; commands that begin with \\ belong to psql",
            to_do=f"{where} '{example}'",
        )
    if _FROM_CLIENT.match(line):
        raise _no_statement(
            where,
            found=f'"{_shortened(line)}": rows pass through the client',
            expected="a statement that runs entirely on the server",
            to_do="use COPY from or to a file on the server, or time psql as a program: psql -c '\\copy t from t.csv'",
        )
    return line


def _is_text(sql: str) -> bool:
    """Return whether a server can receive the text: the command line passes on invalid bytes as surrogates."""
    return "\0" not in sql and not any("\ud800" <= letter <= "\udfff" for letter in sql)


def _no_statement(where: str, *, found: str, expected: str, to_do: str) -> StudyError:
    return StudyError(
        "this SQL statement cannot be timed",
        slug="study-bad-statement",
        where=where,
        found=found,
        expected=expected,
        to_do=to_do,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
