"""Restoring a dump: parts that a server rejects are reported one by one, and the rest is restored.

Owners, privileges, tablespaces, publications and subscriptions are left out of archives. A dump in plain text names
roles, which are created without the right to log in.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO

from pgversus.data.dumps import check_dump_unchanged
from pgversus.errors import DatasetError
from pgversus.host.commands import Finished, may_read, run
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target, connect
from pgversus.records.preparation import RestoreProblem
from pgversus.study.dataset import Dump, DumpFormat

_LEFT_OUT = (
    *("--no-owner", "--no-privileges", "--no-tablespaces"),
    *("--no-publications", "--no-subscriptions", "--no-security-labels"),
)
_ANY_NAME = r'(?:"(?:[^"]|"")+"|\w+)'
_NAME = rf"({_ANY_NAME})"
_ROLES = (
    re.compile(rf"^(?:ALTER .* OWNER TO|(?:ALTER DEFAULT PRIVILEGES .*)?(?:GRANT .* TO|REVOKE .* FROM)) {_NAME}"),
    re.compile(rf"^ALTER DEFAULT PRIVILEGES FOR ROLE {_NAME}"),
)
_CONNECT = re.compile(r"^\\c(?:onnect)?\b")
_ENTRY = re.compile(r"^pg_restore: from TOC entry \d+; \d+ \d+ (.+?) (?:\(no owner\)|\S+)$")
# The last word is the owner.
_ERROR = re.compile(r"^pg_restore: error: (?:could not execute query: )?(?:ERROR: +)?(.*)$")
_COMMAND = re.compile(
    r"^Command was: (?:CREATE (?:UNIQUE )?INDEX .*? ON (?:ONLY )?|ALTER TABLE (?:ONLY )?|CREATE STATISTICS .* FROM "
    r"|CREATE (?:CONSTRAINT )?TRIGGER .*? ON |CREATE RULE .*? TO |COPY |REFRESH MATERIALIZED VIEW )"
    rf"(?:{_ANY_NAME}\.)?{_NAME}"
)
_ROWS = re.compile(r"(?:TABLE|MATERIALIZED VIEW) DATA (.*)")
_PLAIN_ERROR = re.compile(r"^psql:.*?:(\d+): (?:ERROR|error): +(.*)$")
_DONE = re.compile(r"^pg_restore: warning: errors ignored on restore: \d+$", re.MULTILINE)
_UNKNOWN_SETTING = "unrecognized configuration parameter"
_NOT_THE_DUMP = frozenset({"", "public", "postgres"})
"""Existing roles, and names that are not roles."""
_MOST_REPORTED = 1000


def restore(dump: Dump, target: Target, client: Client, label: str) -> tuple[RestoreProblem, ...]:
    """Restore a dump into an empty database; return the parts that the server rejected, at most a thousand.

    DatasetError if the dump has changed, cannot be read, or cannot be restored as a whole.
    label: label of the arm, for messages.
    """
    check_dump_unchanged(dump)
    place = Path(dump.path)
    is_readable = may_read(client.user, place)
    if not is_readable and dump.format is DumpFormat.DIRECTORY:
        raise _not_readable(dump, client)
    if dump.format is DumpFormat.PLAIN:
        _create_roles(place, target)
    # A program of another user can read a file that we have opened.
    opened: AbstractContextManager[int | IO[bytes]] = (
        nullcontext(subprocess.DEVNULL) if is_readable else place.open("rb")
    )
    with opened as stdin:
        finished = run(
            _arguments(dump, target, client, is_stream=not is_readable),
            environment=client.environment(target),
            stdin=stdin,
            user=client.user,
            ends_with_us=True,
            is_abridged=True,
        )
    problems = tuple(_problems(finished.stderr))[:_MOST_REPORTED]
    if not _is_complete(dump, finished):
        raise _failed(dump, label, finished, client)
    return problems


def _create_roles(place: Path, target: Target) -> None:
    """Create the roles that a plain-text dump names; DatasetError for a dump of several databases."""
    with place.open(encoding="utf-8", errors="replace") as lines:
        roles = set[str]()
        for line in lines:
            if _CONNECT.match(line):
                raise _several_databases(place)
            roles.update(_roles_in(line))
    with connect(target) as connection:
        for name in sorted(roles - _NOT_THE_DUMP):
            catalog.create_role(connection, name)


def _roles_in(line: str) -> Iterator[str]:
    """Yield the roles that a line of a plain-text dump names, except the server's own."""
    for pattern in _ROLES:
        # Names that begin with pg_ are reserved: such a role exists, or cannot be created.
        if (match := pattern.match(line)) and not match[1].startswith("pg_"):
            yield _unquoted(match[1])


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _arguments(dump: Dump, target: Target, client: Client, *, is_stream: bool) -> list[str]:
    """Return the command that restores a dump. is_stream: whether it comes from standard input."""
    if dump.format is DumpFormat.PLAIN:
        return [str(client.psql), "-X", "-q", "-d", target.conninfo, "-f", "-" if is_stream else dump.path]
    # In parallel where the format allows it.
    can_seek = not is_stream and dump.format is not DumpFormat.TAR
    jobs = ["--jobs", str(len(os.sched_getaffinity(0)))] if can_seek else []
    return [str(client.pg_restore), *_LEFT_OUT, *jobs, "-d", target.conninfo, *([] if is_stream else [dump.path])]


def _is_complete(dump: Dump, finished: Finished) -> bool:
    """Return whether the whole dump was processed, with or without errors."""
    if finished.succeeded or dump.format is DumpFormat.PLAIN:
        return finished.succeeded
    return _DONE.search(finished.stderr) is not None


def _problems(stderr: str) -> Iterator[RestoreProblem]:
    """Yield the errors that pg_restore or psql reported and ignored."""
    entry, found = "", list[RestoreProblem]()
    for line in stderr.splitlines():
        if match := _ENTRY.match(line):
            entry = match[1]
        elif match := _ERROR.match(line):
            found.append(_problem(entry or "settings", match[1]))
        elif match := _PLAIN_ERROR.match(line):
            found.append(_problem(f"line {match[1]}", match[2]))
        elif found and (match := _COMMAND.match(line)):
            # pg_restore prints the command below its error.
            found[-1] = replace(found[-1], table=_unquoted(match[1]))
    yield from found


def _problem(item: str, message: str) -> RestoreProblem:
    rows = _ROWS.match(item)
    return RestoreProblem(
        item=item,
        message=message,
        is_setting=message.startswith(_UNKNOWN_SETTING),
        table="" if rows is None else rows[1],
    )


def _failed(dump: Dump, label: str, finished: Finished, client: Client) -> DatasetError:
    words = finished.stderr.strip() or f"exit code {finished.exit_code}"
    return DatasetError(
        "the dump could not be restored",
        slug="dataset-load-failed",
        where=f"{dump.path}, on {label}",
        found=words,
        expected=f"a dump that pg_restore and psql {client.version} can read",
        to_do=client.user.run_as_hint(words)
        or "check the dump with pg_restore --list, or create it again in custom format, with gzip or no compression",
    )


def _not_readable(dump: Dump, client: Client) -> DatasetError:
    return DatasetError(
        "pg_restore cannot read the directory of the dump",
        slug="dataset-not-readable",
        where=dump.path,
        found=f'pg_restore runs as user "{client.user.name}", who cannot read it',
        expected="a directory that this user can read",
        to_do="move it to where this user can read it (o+r, and o+x for all parent directories), or use --run-as USER "
        "to specify a user who can read it",
    )


def _several_databases(place: Path) -> DatasetError:
    return DatasetError(
        "the dump connects to a different database",
        slug="dataset-load-failed",
        where=str(place),
        found="the command \\connect",
        expected="a dump of one database, without --create",
        to_do="pg_dump -Fc -f app.dump DATABASE",
    )
