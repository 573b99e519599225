"""A program's command line without its passwords, which every user of the host could read while it runs.

They reach the program on ways of its own: by its environment, or in a file that pgversus alone can read. A command that
holds no password is run as it was given, and so is one that holds it where nothing here knows another way.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import psycopg
from psycopg import conninfo

from pgversus.host.identity import ServerUser
from pgversus.host.permissions import write_for
from pgversus.text.redaction import command_without_secrets

_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_CLIENTS = frozenset(
    {
        *("clusterdb", "createdb", "createuser", "dropdb", "dropuser", "pg_amcheck", "pg_basebackup", "pg_dump"),
        *("pg_dumpall", "pg_isready", "pg_receivewal", "pg_recvlogical", "pg_restore", "pg_rewind", "pgbench", "psql"),
        *("reindexdb", "vacuumdb"),
    }
)
"""Programs of PostgreSQL's, whose libpq takes a password by PGPASSWORD."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CONNECTION = re.compile(r"(--[\w-]+=|-d)?(.*[@=].*)", re.DOTALL)
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_WITH_ARGUMENT = ("-o", "+o", "-O", "+O")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCommand:
    """What is run, and with which environment."""

    arguments: list[str]
    environment: dict[str, str]


def private_command(
    program: Sequence[str], environment: Mapping[str, str], file: Path, user: ServerUser
) -> PrivateCommand:
    """The same command without passwords in its arguments. file: for the script of a shell, which this user runs."""
    command = PrivateCommand(arguments=list(program), environment=dict(environment))
    if command_without_secrets(program) == tuple(program):
        return command
    command = _with_own_environment(command)
    name = PurePath(command.arguments[0]).name
    if name in _SHELLS:
        return _with_script_in(file, command, user)
    return _with_password_in_environment(command) if name in _CLIENTS else command


def _with_own_environment(command: PrivateCommand) -> PrivateCommand:
    """`env A=b program` is the program with that in its environment."""
    first, *rest = command.arguments
    if PurePath(first).name != "env":
        return command
    assigned = {}
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0])):
        assigned[found[1]] = found[2]
        rest = rest[1:]
    if not rest or rest[0].startswith("-"):
        return command
    return PrivateCommand(arguments=rest, environment={**command.environment, **assigned})


def _with_script_in(file: Path, command: PrivateCommand, user: ServerUser) -> PrivateCommand:
    """The text behind a shell's -c is read from a file: its parameters and its $0 stay as they are."""
    arguments = list(command.arguments)
    position = 1
    while position + 1 < len(arguments) and arguments[position].startswith(("-", "+")):
        if arguments[position] in _WITH_ARGUMENT:
            position += 1
        elif _SCRIPT_FLAG.fullmatch(arguments[position]):
            write_for(user, file, arguments[position + 1].encode())
            arguments[position + 1] = f". {shlex.quote(str(file))}"
            break
        position += 1
    return PrivateCommand(arguments=arguments, environment=command.environment)


def _with_password_in_environment(command: PrivateCommand) -> PrivateCommand:
    """The password of connection strings goes by PGPASSWORD, unless there are two of them."""
    first, *rest = command.arguments
    pairs = [_without_password(word) for word in rest]
    passwords = {password for _, password in pairs if password is not None}
    if len(passwords) != 1:
        return command
    environment = {**command.environment, "PGPASSWORD": passwords.pop()}
    return PrivateCommand(arguments=[first, *(bare for bare, _ in pairs)], environment=environment)


def _without_password(word: str) -> tuple[str, str | None]:
    """An argument, and the password that was in it; None where it is no connection string, or has none."""
    found = _CONNECTION.fullmatch(word)
    if found is None:
        return word, None
    try:
        parameters = conninfo.conninfo_to_dict(found[2])
    except psycopg.Error:
        return word, None
    password = parameters.pop("password", None)
    if password is None:
        return word, None
    return f"{found[1] or ''}{conninfo.make_conninfo('', **parameters)}", str(password)
