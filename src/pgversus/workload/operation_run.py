"""One repetition of an operation: each step is timed from the client, in a session opened beforehand.

Every user of the host can read command lines, so passwords are passed to a program in its environment or in a private
file. A command without a password runs as given, as does one whose password cannot be passed in a different way.
"""

import re
import resource
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

import psycopg
from psycopg import conninfo
from psycopg.errors import Diagnostic, QueryCanceled

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import PgversusError
from pgversus.host.commands import Finished, may_execute, run, shortened
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import make_private, write_for
from pgversus.host.processes import BackgroundThread, peak_resident_bytes
from pgversus.postgres import catalog
from pgversus.postgres.client import Client, program_environment
from pgversus.postgres.operation_reports import notice_text, operation_progress
from pgversus.postgres.session import Connection, Target, connect
from pgversus.study.workload import Operation, Step
from pgversus.text.redaction import command_without_secrets

_SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_CLIENTS = frozenset(
    {
        *("clusterdb", "createdb", "createuser", "dropdb", "dropuser", "pg_amcheck", "pg_basebackup", "pg_dump"),
        *("pg_dumpall", "pg_isready", "pg_receivewal", "pg_recvlogical", "pg_restore", "pg_rewind", "pgbench", "psql"),
        *("reindexdb", "vacuumdb"),
    }
)
"""PostgreSQL client programs, which accept a password in PGPASSWORD."""
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_CONNECTION = re.compile(r"(--[\w-]+=|-d)?(.*[@=].*)", re.DOTALL)
_SCRIPT_FLAG = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_WITH_ARGUMENT = ("-o", "+o", "-O", "+O")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCommand:
    """The arguments and environment of a program."""

    arguments: list[str]
    environment: dict[str, str]


def private_command(
    program: Sequence[str], environment: Mapping[str, str], file: Path, user: ServerUser
) -> PrivateCommand:
    """Return the same command without passwords in its arguments. file: for a shell script, run by this user."""
    command = PrivateCommand(arguments=list(program), environment=dict(environment))
    if command_without_secrets(program) == tuple(program):
        return command
    command = _with_own_environment(command)
    name = PurePath(command.arguments[0]).name
    if name in _SHELLS:
        return _with_script_in(file, command, user)
    return _with_password_in_environment(command) if name in _CLIENTS else command


def _with_own_environment(command: PrivateCommand) -> PrivateCommand:
    """Replace `env A=b program` by the program with that variable in its environment."""
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
    """Move the script of a shell's -c into a file; its parameters and $0 do not change."""
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
    """Move the password of connection strings into PGPASSWORD, unless there are several."""
    first, *rest = command.arguments
    pairs = [_without_password(word) for word in rest]
    passwords = {password for _, password in pairs if password is not None}
    if len(passwords) != 1:
        return command
    environment = {**command.environment, "PGPASSWORD": passwords.pop()}
    return PrivateCommand(arguments=[first, *(bare for bare, _ in pairs)], environment=environment)


def _without_password(word: str) -> tuple[str, str | None]:
    """Return an argument without its password, and the password; None if it is not a connection string or has none."""
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


_FIRST_S, _EVERY_S = 5.0, 2.0
# Short operations are never polled; for long ones the cost is below a thousandth and the same on every arm.


class Watch(BackgroundThread):
    """Reports the progress of a session while a block of code runs."""

    def __init__(self, target: Target, pid: int, say: Callable[[str], None]) -> None:
        """pid: server process of the session. say: receives a line, in a separate thread."""
        super().__init__("pgversus-watch")
        self._target = target
        self._pid = pid
        self._say = say

    def _run(self) -> None:
        if self._is_over_within(_FIRST_S):
            return
        # Errors are ignored here: the operation reports its own.
        with suppress(PgversusError), connect(self._target) as connection:
            while True:
                if line := operation_progress(connection, self._pid):
                    self._say(line)
                if self._is_over_within(_EVERY_S):
                    break


_MOST_OF_NOTICES = 4_000_000
# Characters, enough for VACUUM (VERBOSE) of thousands of tables: if any were missing, the counters would be wrong.


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationResult:
    """The measurements of a finished operation."""

    steps: Mapping[str, float]
    """Time of each step in seconds, by name."""
    notices: tuple[str, ...]
    """Notices of the server, including INFO of VACUUM (VERBOSE); empty if there were too many to store."""
    output: str
    """The notices and the output of programs, for the results."""
    counters: Mapping[str, float]
    """Processor time of the client: this process and its programs."""
    session_memory_bytes: int | None
    """Peak memory of the session's server process; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnvironment:
    """The environment of an operation."""

    client: Client
    scratch: Path
    """Working directory of programs; emptied by its owner."""
    patience_s: float
    """A step that takes longer is considered hung and terminated."""
    say: Callable[[str], None]
    """Receives progress lines of long statements."""
    after_statement: Callable[[Connection], None] = lambda _: None
    """Called in the session of the operation after each of its statements, outside the timed intervals."""


def run_operation(
    operation: Operation, target: Target, environment: OperationEnvironment, data_directory: Path | None
) -> OperationResult:
    """Run every step in turn; TrialFailedError with the message of the server or the program if one fails.

    data_directory: passed to programs as PGDATA.
    """
    said: list[str] = []
    notices = _Notices()
    seconds: dict[str, float] = {}
    used = _OwnTime()
    with connect(target, as_the_load=True) as connection:
        connection.add_notice_handler(notices.add)
        catalog.end_statements_after(connection, environment.patience_s)
        pid = connection.info.backend_pid
        for step in operation.steps:
            known = len(notices.texts)
            with _prefixing_failures(step), Watch(target, pid, environment.say):
                if step.sql is not None:
                    seconds[step.name] = _seconds_of_statement(connection, step.sql, environment.patience_s)
                    environment.after_statement(connection)
                else:
                    seconds[step.name], finished = _run_program(step, target, environment, data_directory)
                    said.append(f"{finished.stdout}{finished.stderr}".strip())
                    used.of_programs(finished)
            said += notices.texts[known:]
        memory = peak_resident_bytes(pid)
    return OperationResult(
        steps=seconds,
        notices=() if notices.left_out else tuple(notices.texts),
        output=shortened("\n".join(said)),
        counters=used.counters(),
        session_memory_bytes=memory,
    )


def verify(operation: Operation, target: Target, patience_s: float) -> None:
    """Raise TrialFailedError unless every verify query of the operation returns only true within patience_s."""
    with connect(target, as_the_load=True) as connection:
        catalog.end_statements_after(connection, patience_s)
        for sql in operation.verify:
            try:
                rows = catalog.rows_of(connection, sql)
            except psycopg.Error as error:
                raise TrialFailedError(f"verify query failed: {sql}\n{error}") from error
            wrong = [row for row in rows if not all(value is True for value in row)]
            if wrong or not rows:
                found = f"it returned {wrong[0]}" if wrong else "it returned no row"
                raise TrialFailedError(f"verify query is not true: {sql}\n{found}; expected only true")


def _seconds_of_statement(connection: Connection, sql: str, patience_s: float) -> float:
    statement = sql.encode()
    begin = time.perf_counter()
    try:
        cursor = connection.execute(statement)
    except QueryCanceled as error:
        if time.perf_counter() - begin < patience_s:
            raise
        raise TrialHungError(f"terminated after {patience_s:.0f} s without finishing") from error
    seconds = time.perf_counter() - begin
    if cursor.nextset():
        raise TrialFailedError("several statements in one step: make each a separate step, which is timed separately")
    return seconds


def _run_program(
    step: Step, target: Target, environment: OperationEnvironment, data_directory: Path | None
) -> tuple[float, Finished]:
    """Run the program of a step; return its time in seconds and its result."""
    variables = program_environment(environment.client, target, data_directory)
    user = environment.client.user
    make_private(user, environment.scratch)
    command = private_command(step.program, variables, environment.scratch.with_name("command.sh"), user)
    # Checked beforehand: otherwise the error would come from the launching program.
    path = command.environment["PATH"]
    program = _place_of(command.arguments[0], path, environment.scratch)
    if program is None:
        raise TrialFailedError(f"program not found in {path}; relative paths start in a directory created for the run")
    if not may_execute(user, program):
        raise TrialFailedError(f'programs run as user "{user.name}", who is not permitted to execute {program}')
    begin = time.perf_counter()
    try:
        finished = run(
            command.arguments,
            environment=command.environment,
            directory=environment.scratch,
            timeout_s=environment.patience_s,
            user=user,
            ends_with_us=True,
            is_abridged=True,
        )
    except OSError as error:
        raise TrialFailedError(error.strerror or str(error)) from error
    seconds = time.perf_counter() - begin
    if finished.timed_out:
        raise TrialHungError(f"terminated after {environment.patience_s:.0f} s without finishing")
    if not finished.succeeded:
        code = finished.exit_code
        how = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        words = finished.stderr.strip()
        raise TrialFailedError("\n".join(filter(None, (f"{how}. {words}".strip(), user.run_as_hint(words)))))
    return seconds, finished


def _place_of(program: str, path: str, directory: Path) -> Path | None:
    """Return the path of a program; None if it is not found."""
    if "/" in program:
        return directory / program if (directory / program).is_file() else None
    found = shutil.which(program, path=path)
    return None if found is None else Path(found)


@contextmanager
def _prefixing_failures(step: Step) -> Iterator[None]:
    """Prefix failures with the name of the step."""
    try:
        yield
    except psycopg.Error as error:
        raise TrialFailedError(f"{step.name}: {str(error).strip()}") from error
    except TrialFailedError as error:
        raise type(error)(f"{step.name}: {error}") from error


class _Notices:
    """Notices of a server during an operation, stored in memory up to a maximum size."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.left_out = 0
        self._size = 0

    def add(self, notice: Diagnostic) -> None:
        text = notice_text(notice)
        self._size += len(text)
        if self._size > _MOST_OF_NOTICES:
            self.left_out += 1
        else:
            self.texts.append(text)


class _OwnTime:
    """Processor time used since creation by this process and the programs that it has run."""

    def __init__(self) -> None:
        self._begin = resource.getrusage(resource.RUSAGE_SELF)
        self._cpu_s = self._cpu_user_s = 0.0

    def of_programs(self, finished: Finished) -> None:
        self._cpu_s += finished.cpu_s
        self._cpu_user_s += finished.cpu_user_s

    def counters(self) -> dict[str, float]:
        now = resource.getrusage(resource.RUSAGE_SELF)
        user_s = now.ru_utime - self._begin.ru_utime
        system_s = now.ru_stime - self._begin.ru_stime
        return {
            "client_cpu_s": self._cpu_s + user_s + system_s,
            "client_cpu_user_s": self._cpu_user_s + user_s,
        }
