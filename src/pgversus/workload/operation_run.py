"""An operation, once: its steps are timed one by one from the client, in a session that was there before.

Every user of the host can read command lines, so passwords reach a program by its environment or by a file that
pgversus alone can read. A command without a password is run as given, and so is one that holds it where no other way
is known.
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
from pgversus.host.commands import may_execute, run
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


_FIRST_S, _EVERY_S = 5.0, 2.0
# A short operation is never asked; of a long one this is less than a thousandth, the same for every arm.


class Watch(BackgroundThread):
    """Tells what a session's process is doing while a block of code runs."""

    def __init__(self, target: Target, pid: int, tell: Callable[[str], None]) -> None:
        """pid: of the process. tell: takes a line, in a thread of its own."""
        super().__init__("pgversus-watch")
        self._target = target
        self._pid = pid
        self._tell = tell

    def _run(self) -> None:
        if self._is_over_within(_FIRST_S):
            return
        # Whatever goes wrong here, the operation itself tells what is wrong with it.
        with suppress(PgversusError), connect(self._target) as connection:
            while True:
                if line := operation_progress(connection, self._pid):
                    self._tell(line)
                if self._is_over_within(_EVERY_S):
                    break


_MOST_WORDS = 4000
_MOST_OF_NOTICES = 4_000_000
# Characters: what VACUUM (VERBOSE) says of thousands of tables. Of fewer than it spoke of its counters would be wrong.


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationResult:
    """What was seen of an operation that has come to its end."""

    steps: Mapping[str, float]
    """Seconds of each, by name."""
    notices: tuple[str, ...]
    """What the server said meanwhile, INFO of VACUUM (VERBOSE) included; none where it said more than is kept."""
    output: str
    """The same and what programs printed, for the results."""
    counters: Mapping[str, float]
    """Processor time of the client: of this process, and of programs."""
    session_memory_bytes: int | None
    """The most memory that the session's process held; None where nobody tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnvironment:
    """What an operation is run with."""

    client: Client
    scratch: Path
    """Programs run in it; emptied by whoever owns it."""
    patience_s: float
    """A step that takes longer is ended: it hangs."""
    tell: Callable[[str], None]
    """Takes what a long statement is doing, as the server tells it."""


def run_operation(
    operation: Operation, target: Target, environment: OperationEnvironment, data_directory: Path | None
) -> OperationResult:
    """Every step in turn; TrialFailedError with the words of the server or the program when one fails.

    data_directory: for programs, as PGDATA.
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
            with _words_of(step), Watch(target, pid, environment.tell):
                if step.sql is not None:
                    seconds[step.name] = _seconds_of_statement(connection, step.sql, environment.patience_s)
                else:
                    ended = _run_program(step, target, environment, data_directory)
                    seconds[step.name] = ended.seconds
                    said.append(ended.output)
                    used.of_programs(ended)
            said += notices.texts[known:]
        memory = peak_resident_bytes(pid)
    return OperationResult(
        steps=seconds,
        notices=() if notices.left_out else tuple(notices.texts),
        output=_shortened("\n".join(said)),
        counters=used.counters(),
        session_memory_bytes=memory,
    )


def verify(operation: Operation, target: Target) -> None:
    """TrialFailedError unless all that must hold after the operation does."""
    with connect(target, as_the_load=True) as connection:
        for sql in operation.verify:
            try:
                rows = catalog.rows_of(connection, sql)
            except psycopg.Error as error:
                raise TrialFailedError(f"verify fails: {sql}\n{error}") from error
            wrong = [row for row in rows if not all(value is True for value in row)]
            if wrong or not rows:
                found = f"it returned {wrong[0]}" if wrong else "it returned no row"
                raise TrialFailedError(f"verify does not hold: {sql}\n{found}, where nothing but true is expected")


def _seconds_of_statement(connection: Connection, sql: str, patience_s: float) -> float:
    statement = sql.encode()
    begin = time.perf_counter()
    try:
        cursor = connection.execute(statement)
    except QueryCanceled as error:
        if time.perf_counter() - begin < patience_s:
            raise
        raise TrialHungError(f"it had not ended after {patience_s:.0f} s, so it was ended") from error
    seconds = time.perf_counter() - begin
    if cursor.nextset():
        raise TrialFailedError("these are several statements: give each as one of its own, to be timed by itself")
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    seconds: float
    output: str
    cpu_s: float
    cpu_user_s: float


def _run_program(step: Step, target: Target, environment: OperationEnvironment, data_directory: Path | None) -> _Ended:
    variables = program_environment(environment.client, target, data_directory)
    user = environment.client.user
    make_private(user, environment.scratch)
    command = private_command(step.program, variables, environment.scratch.with_name("command.sh"), user)
    # Asked before: else the words would be those of what starts it.
    path = command.environment["PATH"]
    program = _place_of(command.arguments[0], path, environment.scratch)
    if program is None:
        raise TrialFailedError(f"there is no such program in {path}; a path counts from a directory made for the run")
    if not may_execute(user, program):
        raise TrialFailedError(f"{user.name}, the user that programs run as, may not execute {program}")
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
        raise TrialHungError(f"it had not ended after {environment.patience_s:.0f} s, so it was ended")
    output = f"{finished.stdout}{finished.stderr}".strip()
    if not finished.succeeded:
        code = finished.exit_code
        how = f"exit code {code}" if code >= 0 else f"ended by signal {-code}"
        words = finished.stderr.strip()
        raise TrialFailedError("\n".join(filter(None, (f"{how}. {words}".strip(), user.way_out(words)))))
    return _Ended(seconds=seconds, output=output, cpu_s=finished.cpu_s, cpu_user_s=finished.cpu_user_s)


def _place_of(program: str, path: str, directory: Path) -> Path | None:
    """Where a program is; None where it is not."""
    if "/" in program:
        return directory / program if (directory / program).is_file() else None
    found = shutil.which(program, path=path)
    return None if found is None else Path(found)


@contextmanager
def _words_of(step: Step) -> Iterator[None]:
    """Failures say which step it was."""
    try:
        yield
    except psycopg.Error as error:
        raise TrialFailedError(f"{step.name}: {str(error).strip()}") from error
    except TrialFailedError as error:
        raise type(error)(f"{step.name}: {error}") from error


class _Notices:
    """What a server says while an operation lasts, in memory only so long as it is no flood."""

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
    """Processor time that this process uses from now on, and programs that it has run."""

    def __init__(self) -> None:
        self._begin = resource.getrusage(resource.RUSAGE_SELF)
        self._cpu_s = self._cpu_user_s = 0.0

    def of_programs(self, ended: _Ended) -> None:
        self._cpu_s += ended.cpu_s
        self._cpu_user_s += ended.cpu_user_s

    def counters(self) -> dict[str, float]:
        now = resource.getrusage(resource.RUSAGE_SELF)
        user_s = now.ru_utime - self._begin.ru_utime
        system_s = now.ru_stime - self._begin.ru_stime
        return {
            "client_cpu_s": self._cpu_s + user_s + system_s,
            "client_cpu_user_s": self._cpu_user_s + user_s,
        }


def _shortened(text: str) -> str:
    if len(text) <= _MOST_WORDS:
        return text
    return f"{text[:_MOST_WORDS]}\n... {len(text) - _MOST_WORDS} characters left out\n"
