"""Restoring a dump: parts that a server rejects are reported one by one, and the rest is restored.

Owners, privileges, tablespaces, publications and subscriptions are left out of archives. A dump in plain text names
roles, which are created without the right to log in.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg

from pgversus.data.dumps import check_dump_unchanged
from pgversus.data.plain_dumps import DumpedCommand, commands_of
from pgversus.errors import DatasetError
from pgversus.host.commands import Finished, may_read, run, standard_input
from pgversus.host.full_disk import full_disk, full_disk_text
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.session import Connection, Target, connect
from pgversus.records.preparation import RestoreProblem
from pgversus.study.dataset import Dump, DumpFormat
from pgversus.text.sql import NAME, unquoted_name

_LEFT_OUT = (
    *("--no-owner", "--no-privileges", "--no-tablespaces"),
    *("--no-publications", "--no-subscriptions", "--no-security-labels"),
)
_ENTRY = re.compile(r"^pg_restore: from TOC entry \d+; \d+ \d+ (.+?) (?:\(no owner\)|\S+)$")
# The last word is the owner.
_ERROR = re.compile(r"^pg_restore: error: (?:could not execute query: )?(?:ERROR: +)?(.*)$")
_COMMAND_WAS = "Command was: "
_PART_OF_TABLE = re.compile(
    r"(?:CREATE (?:UNIQUE )?INDEX .*? ON (?:ONLY )?|ALTER TABLE (?:ONLY )?|CREATE STATISTICS .* FROM "
    r"|CREATE (?:CONSTRAINT )?TRIGGER .*? ON |CREATE RULE .*? TO |COPY |REFRESH MATERIALIZED VIEW )"
    rf"(?:{NAME}\.)?({NAME})",
    re.DOTALL,
)
_ROWS = re.compile(r"(?:TABLE|MATERIALIZED VIEW) DATA (.*)")
_IGNORED = re.compile(r"^pg_restore: warning: errors ignored on restore: (\d+)$", re.MULTILINE)
_OMITTED = re.compile(r"^\.\.\. \d+ bytes left out \.\.\.$", re.MULTILINE)
"""In place of the middle of a long output (host/commands.py)."""
_UNKNOWN_SETTING = "unrecognized configuration parameter"
_ROLES = (
    re.compile(rf"^(?:ALTER .* OWNER TO|(?:ALTER DEFAULT PRIVILEGES .*)?(?:GRANT .* TO|REVOKE .* FROM)) ({NAME})"),
    re.compile(rf"^ALTER DEFAULT PRIVILEGES FOR ROLE ({NAME})"),
)
_NOT_THE_DUMP = frozenset({"", "public", "postgres"})
"""Existing roles, and names that are not roles."""
_PIECE_BYTES = 64 * 1024
_MOST_REPORTED = 1000


def restore(dump: Dump, target: Target, client: Client, label: str) -> tuple[RestoreProblem, ...]:
    """Restore a dump into an empty database; return the parts that the server rejected.

    DatasetError if the dump has changed, cannot be read, or cannot be restored as a whole; HostError on a full disk.
    label: label of the arm, for messages.
    """
    check_dump_unchanged(dump)
    restore_it = _restore_plain if dump.format is DumpFormat.PLAIN else _restore_archive
    return tuple(restore_it(dump, target, client, label))


def _restore_archive(dump: Dump, target: Target, client: Client, label: str) -> Sequence[RestoreProblem]:
    place = Path(dump.path)
    is_readable = may_read(client.user, place)
    if not is_readable and dump.format is DumpFormat.DIRECTORY:
        raise _not_readable(dump, client)
    # In parallel where the format allows it.
    can_seek = is_readable and dump.format is not DumpFormat.TAR
    jobs = ["--jobs", str(len(os.sched_getaffinity(0)))] if can_seek else []
    file = [dump.path] if is_readable else []
    with standard_input(None if is_readable else place) as stdin:
        finished = run(
            [str(client.pg_restore), *_LEFT_OUT, *jobs, "-d", target.conninfo, *file],
            environment=client.environment(target),
            stdin=stdin,
            user=client.user,
            ends_with_us=True,
            is_abridged=True,
        )
    ignored = _IGNORED.search(finished.stderr)
    if not (finished.succeeded or ignored):
        raise _failed(dump, label, finished, client)
    found = list(problems_of_archive(finished.stderr))
    if words := full_disk_text("\n".join(one.message for one in found)):
        raise full_disk(label, words)
    is_omitted = _OMITTED.search(finished.stderr) is not None
    return [*found, *_others(int(ignored[1]) - len(found) if ignored and is_omitted else 0)]


def _restore_plain(dump: Dump, target: Target, _client: Client, label: str) -> Sequence[RestoreProblem]:
    problems: list[RestoreProblem] = []
    with connect(target) as connection, connect(target) as of_roles, Path(dump.path).open("rb") as lines:
        for command in commands_of(lines, dump.path):
            # The dump says in which encoding it is.
            text = command.text.decode(connection.info.encoding, errors="replace")
            for name in roles_in(text):
                catalog.create_role(of_roles, name)
            try:
                _execute(connection, command)
            except psycopg.Error as error:
                message = error.diag.message_primary or str(error).strip()
                if connection.closed:
                    raise
                if isinstance(error, psycopg.errors.DiskFull):
                    # Not a property of the dump: a table without its rows must not be compared.
                    raise full_disk(label, message) from error
                if len(problems) < _MOST_REPORTED:
                    problems.append(_problem(f"line {command.line}", message, table=table_in(text)))
    return problems


def _execute(connection: Connection, command: DumpedCommand) -> None:
    if command.rows is None:
        connection.execute(command.text)
        return
    with connection.cursor() as cursor, cursor.copy(command.text) as copy:
        # In pieces: a row of most tables is much smaller.
        for piece in _pieces(command.rows):
            copy.write(piece)


def _pieces(rows: Iterable[bytes]) -> Iterator[bytes]:
    waiting, size_bytes = list[bytes](), 0
    for row in rows:
        waiting.append(row)
        size_bytes += len(row)
        if size_bytes >= _PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size_bytes = [], 0
    yield b"".join(waiting)


def roles_in(command: str) -> Iterator[str]:
    """Yield the roles that a command names, except those of every server."""
    for pattern in _ROLES:
        # Names that begin with pg_ are reserved: such a role exists, or cannot be created.
        if (match := pattern.match(command)) and not match[1].startswith("pg_"):
            name = unquoted_name(match[1])
            if name not in _NOT_THE_DUMP:
                yield name


def problems_of_archive(stderr: str) -> Iterator[RestoreProblem]:
    """Yield the errors that pg_restore reported and ignored."""
    entry, found = "", list[RestoreProblem]()
    for line in stderr.splitlines():
        if match := _ENTRY.match(line):
            entry = match[1]
        elif match := _ERROR.match(line):
            rows = _ROWS.match(entry)
            found.append(_problem(entry or "settings", match[1], table="" if rows is None else rows[1]))
        elif found and line.startswith(_COMMAND_WAS):
            # pg_restore prints the command below its error.
            found[-1] = replace(found[-1], table=table_in(line.removeprefix(_COMMAND_WAS)) or found[-1].table)
    yield from found


def table_in(command: str) -> str:
    """Return the table of which a command creates a part; empty if it creates none."""
    match = _PART_OF_TABLE.match(command)
    return "" if match is None else unquoted_name(match[1])


def _problem(item: str, message: str, *, table: str | None) -> RestoreProblem:
    return RestoreProblem(item=item, message=message, is_setting=message.startswith(_UNKNOWN_SETTING), table=table)


def _others(number: int) -> Iterator[RestoreProblem]:
    """Yield a problem for errors in the middle of a long output, which is not kept. number: how many; 0 for none."""
    if number > 0:
        yield _problem("other parts", f"further errors: {number}", table=None)


def _failed(dump: Dump, label: str, finished: Finished, client: Client) -> DatasetError:
    words = finished.stderr.strip() or f"exit code {finished.exit_code}"
    return DatasetError(
        "the dump could not be restored",
        slug="dataset-load-failed",
        where=f"{dump.path}, on {label}",
        found=words,
        expected=f"a dump that pg_restore {client.version} can read",
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
