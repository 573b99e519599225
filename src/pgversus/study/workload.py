"""The workload to run and time: an operation, or a mix of pgbench scripts, in pgbench's own terms.

An operation runs once and is timed as a whole: VACUUM, CREATE INDEX, COPY, a restore. It destroys the state that it
starts from, so each repetition begins on a fresh copy.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import ClassVar

from pgversus.errors import StudyError
from pgversus.statements.literals import with_literals
from pgversus.study.metrics import Metric
from pgversus.text.redaction import holds_secret
from pgversus.text.sql import without_quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A statement or program that is timed separately."""

    name: str
    """The label of its time; unique in its operation."""
    sql: str | None = None
    """One SQL statement; None for a program."""
    program: tuple[str, ...] = ()
    """A program and its arguments, run with the arm's connection in PGHOST, PGPORT, PGUSER and PGDATABASE."""


class QueryMode(StrEnum):
    """pgbench's -M."""

    SIMPLE = "simple"
    EXTENDED = "extended"
    PREPARED = "prepared"


_WEIGHT = re.compile(r"[0-9]{1,9}")
_PAUSE = re.compile(r"(?:^|(?<=;))[^\S\n]*\\(?:sleep|shell|setshell)\b|\bpg_sleep", re.MULTILINE | re.IGNORECASE)
# pgbench's meta-commands, and functions of the server.
_BEGIN, _ROLLBACK = re.compile(r"BEGIN", re.IGNORECASE), re.compile(r"ROLLBACK", re.IGNORECASE)
_ENDS = re.compile(r"COMMIT|END|ROLLBACK|ABORT|PREPARE", re.IGNORECASE)
ROLLED_BACK = "ROLLBACK;\n"
_FEWEST_ROLLED_BACK = 3
# BEGIN, a statement, ROLLBACK.
VARIABLE_NAME = r"\w+"
"""A regular expression for variable names in pgbench and psql."""
LEAST_RATE, MOST_RATE = 1e-5, 1e9
"""Transactions per second; the ten that a window needs then take 11 days."""
LARGEST_INT = 2**31 - 1
"""pgbench's limit for counts, a C int."""
BUILTIN_SCRIPTS = ("tpcb-like", "simple-update", "select-only")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedStatement:
    """A statement with parameters that a script prepares once in each session, and executes in each transaction."""

    text: str
    """With $1, $2 and so on as parameters."""
    values: tuple[str | None, ...]
    """Values of $1, $2 and so on; None is NULL."""

    @property
    def with_values(self) -> str:
        """The statement with its values in place of the parameters."""
        return with_literals(self.text, self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStatement:
    """A statement that is not executed, because the values of its parameters are unknown."""

    name: str
    text: str
    """With $1, $2 and so on as parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One script of the mix: a built-in of pgbench, or a file whose text was read once at the start."""

    name: str
    weight: int | None = None
    """pgbench's @WEIGHT; None leaves pgbench's default of 1."""
    text: str | None = None
    """The file's content; None for a built-in."""
    prepared: PreparedStatement | None = None
    """The only statement of a script that prepares it in its first transaction; None for any other script."""
    planned: tuple[PlannedStatement, ...] = ()
    """Statements that the script does not contain, whose generic plans are captured with its own."""

    @property
    def is_builtin(self) -> bool:
        """Whether the script is built into pgbench."""
        return self.text is None

    @property
    def is_one_statement(self) -> bool:
        """Whether it sends at most one statement; False if that is not obvious."""
        if self.text is None:
            return self.name == "select-only"
        if self.prepared is not None:
            return not self.is_rolled_back
        # A semicolon inside quotes does not end a statement.
        first, *others = without_quoted(self.text).split(";")
        return not any(map(str.strip, others)) and "\\gset" not in first and "\\aset" not in first

    @property
    def is_rolled_back(self) -> bool:
        """Whether it is one transaction that is rolled back; False if that is not obvious."""
        if self.text is None:
            return False
        if self.prepared is not None:
            return self.text.endswith(ROLLED_BACK)
        statements = [part.strip() for part in without_quoted(self.text).split(";") if part.strip()]
        if len(statements) < _FEWEST_ROLLED_BACK:
            return False
        first, *others, last = statements
        is_framed = bool(_BEGIN.fullmatch(first) and _ROLLBACK.fullmatch(last))
        return is_framed and not any(_ENDS.match(one) for one in others)


def _weighted(name: str, weight: int | None) -> str:
    return name if weight is None else f"{name}@{weight}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchWorkload:
    """A mix of scripts and the load that runs them."""

    scripts: tuple[Script, ...]
    clients: int = 1
    threads: int = 1
    """At most the number of clients, because pgbench does not use more (threads_used)."""
    query_mode: QueryMode = QueryMode.SIMPLE
    variables: tuple[tuple[str, str], ...] = ()
    rate: float | None = None
    """Transactions per second over all clients, started on a schedule (open loop); None for a closed loop."""
    scale: int | None = None
    """The value of :scale in script files."""
    rewrite: Script | None = None
    """An equivalent script that a newer server plans as an older one planned the original. No arm runs it; it serves to
    measure the effect of plan changes."""
    is_of_application: bool = False
    """Whether it executes recorded statements of an application, as a role that is not a superuser."""

    main_metric: ClassVar = Metric.TPS
    runs_once: ClassVar = False
    runs_pgbench: ClassVar = True
    has_plans: ClassVar = True
    steps: ClassVar[tuple[Step, ...]] = ()
    verify: ClassVar[tuple[str, ...]] = ()

    @property
    def name(self) -> str:
        """The names of the scripts, joined as pgbench would receive them."""
        return ", ".join(_weighted(script.name, script.weight) for script in self.scripts)

    @property
    def short_name(self) -> str:
        """The name without folders, for titles."""
        return ", ".join(_weighted(PurePath(script.name).name, script.weight) for script in self.scripts)

    def pgbench_arguments(self, scripts: Sequence[str]) -> list[str]:
        """Return pgbench's arguments for this load. scripts: `-b` and `-f` with values, in the order of the mix."""
        arguments = ["-c", str(self.clients), "-j", str(self.threads), "-M", self.query_mode.value, *scripts]
        if self.scale is not None and not any(script.is_builtin for script in self.scripts):
            # With a built-in script pgbench reads the scale from the database and warns about -s.
            arguments += ["-s", str(self.scale)]
        for name, value in self.variables:
            arguments += ["-D", f"{name}={value}"]
        if self.rate is not None:
            arguments += ["-R", repr(self.rate).removesuffix(".0")]
        return arguments

    @property
    def pauses(self) -> bool:
        """Whether a script may sleep or run a program, which continues while its client is paused."""
        return any(_PAUSE.search(script.text or "") for script in self.scripts)

    @property
    def is_one_statement(self) -> bool:
        """Whether each transaction sends at most one statement."""
        return all(script.is_one_statement for script in self.scripts)

    @property
    def is_rolled_back(self) -> bool:
        """Whether every transaction is rolled back."""
        return all(script.is_rolled_back for script in self.scripts)

    @property
    def is_open_loop(self) -> bool:
        """Whether latency counts from the scheduled start."""
        return self.rate is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Steps that run once, one after another, in one session. Their total time is compared."""

    name: str
    steps: tuple[Step, ...]
    verify: tuple[str, ...] = ()
    """SQL that must return only true after the operation; otherwise the trial fails."""

    main_metric: ClassVar = Metric.TIME
    runs_once: ClassVar = True
    runs_pgbench: ClassVar = False
    has_plans: ClassVar = False
    clients: ClassVar = 1
    """An operation has one session, counted like the clients of a load."""
    threads: ClassVar = 1
    scripts: ClassVar[tuple[Script, ...]] = ()
    variables: ClassVar[tuple[tuple[str, str], ...]] = ()
    rate: ClassVar = None
    scale: ClassVar = None
    rewrite: ClassVar = None
    is_of_application: ClassVar = False
    is_open_loop: ClassVar = False

    @property
    def short_name(self) -> str:
        """The name, for titles."""
        return self.name


Workload = PgbenchWorkload | Operation
"""A load runs continuously and is measured in windows; an operation runs once on a given state.

Both have these attributes, so that little code depends on the kind of workload:

- `main_metric`: its usual metric: tps, or the time of an operation.
- `runs_once`: whether it runs once on a fresh copy of the data, instead of in windows.
- `runs_pgbench`: whether pgbench sends its statements, so that the version of pgbench matters.
- `has_plans`: whether its statements have plans that are captured and compared.
- `scripts`, `variables`, `rate`, `scale`, `rewrite`, `is_of_application`: attributes of a load, empty for an operation.
- `steps`, `verify`: attributes of an operation, empty for a load.
"""


def loads_of(workloads: Iterable[Workload]) -> list[PgbenchWorkload]:
    """Return the loads among the workloads: all or none of them, for the arms of a comparison."""
    return [one for one in workloads if isinstance(one, PgbenchWorkload)]


def operations_of(workloads: Iterable[Workload]) -> list[Operation]:
    """Return the operations among the workloads: all or none of them, for the arms of a comparison."""
    return [one for one in workloads if isinstance(one, Operation)]


def find_builtin(text: str) -> str:
    """Return the name of the built-in script that starts with `text`, like pgbench; StudyError if not unique."""
    found = [name for name in BUILTIN_SCRIPTS if name.startswith(text)]
    if len(found) != 1 or not text:
        raise StudyError(
            f'unknown built-in script "{text}" of pgbench',
            slug="study-unknown-builtin",
            where=f"-b {text}",
            found=f'"{text}"',
            expected=", ".join(BUILTIN_SCRIPTS),
            to_do="specify the name of a built-in script, or an unambiguous prefix",
        )
    return found[0]


def split_weight(text: str, flag: str) -> tuple[str, int | None]:
    """Split `FILE@WEIGHT`; without an @ the weight is None. StudyError for a weight that pgbench does not accept."""
    name, at, weight = text.rpartition("@")
    if not at:
        return text, None
    if not _WEIGHT.fullmatch(weight):
        raise StudyError(
            f'invalid weight "{weight}"',
            slug="study-bad-weight",
            where=f"{flag} {text}",
            found=f'"{weight}"',
            expected="a whole number of at most 9 digits after the @",
            to_do=f"{flag} {name}@2",
        )
    return name, int(weight)


def threads_used(threads: int, clients: int) -> int:
    """Return the threads that pgbench runs: it silently limits them to the number of clients."""
    return min(threads, clients)


def check_load(workload: PgbenchWorkload) -> None:
    """Raise StudyError for a mix that pgbench would not run."""
    if all(script.weight == 0 for script in workload.scripts):
        raise StudyError(
            "every script has weight 0",
            slug="study-no-weight",
            where="-f, -b",
            found=workload.name,
            expected="at least one script with a weight above 0",
            to_do="give at least one of them a weight: FILE@1",
        )


def check_for_secret_variables(variables: Sequence[tuple[str, str]]) -> None:
    """Raise StudyError for a variable that contains a secret: pgbench only takes variables on its command line."""
    for name, value in variables:
        if holds_secret(name, value):
            raise StudyError(
                "a secret in a variable would be visible on the command line of pgbench",
                slug="study-bad-variable",
                where=f"-D {name}",
                found=f"{name} (its value is not shown)",
                expected="a value that every user of this host may read",
                to_do="write it into the script, which pgbench reads from a private file",
            )
