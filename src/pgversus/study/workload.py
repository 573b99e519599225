"""What is run and timed: an operation, or a mix of pgbench scripts, with pgbench's own names and meanings.

An operation runs once and is timed as a whole: VACUUM, CREATE INDEX, COPY, a restore. Each repetition destroys the
state that it needs, so each begins on a fresh copy of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgversus.errors import StudyError
from pgversus.text.redaction import holds_secret
from pgversus.text.sql import without_quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One statement or program, with a time of its own."""

    name: str
    """What its time is called; unique in its operation."""
    sql: str | None = None
    """One SQL statement; None for a program."""
    program: tuple[str, ...] = ()
    """A program and its arguments, run with the arm's connection in PGHOST, PGPORT, PGUSER and PGDATABASE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Steps that are run once, one after the other, in one session. Their time together is what is compared."""

    name: str
    steps: tuple[Step, ...]
    verify: tuple[str, ...] = ()
    """SQL that must return nothing but true after it, or the trial has failed."""

    clients = 1
    """Its one session, as loads count theirs."""


class QueryMode(StrEnum):
    """pgbench's -M."""

    SIMPLE = "simple"
    EXTENDED = "extended"
    PREPARED = "prepared"


_WEIGHT = re.compile(r"[0-9]{1,9}")
_PAUSE = re.compile(r"^[^\S\n]*\\(?:sleep|shell|setshell)\b|\bpg_sleep", re.MULTILINE | re.IGNORECASE)
# pgbench's meta-commands, and the server's functions.
VARIABLE_NAME = r"\w+"
"""What pgbench and psql take for the name of a variable, as a regular expression."""
BUILTIN_SCRIPTS = ("tpcb-like", "simple-update", "select-only")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One script of the mix: a built-in of pgbench, or a file whose text was read once at the start."""

    name: str
    weight: int | None = None
    """pgbench's @WEIGHT; None leaves pgbench's default of 1."""
    text: str | None = None
    """The file's content; None for a built-in."""

    @property
    def is_builtin(self) -> bool:
        """Whether pgbench itself holds the script."""
        return self.text is None

    @property
    def is_one_statement(self) -> bool:
        """Whether it sends one statement at most; where that is not easily seen, no."""
        if self.text is None:
            return self.name == "select-only"
        # What is quoted may hold a semicolon that ends no statement.
        first, *others = without_quoted(self.text).split(";")
        return not any(map(str.strip, others)) and "\\gset" not in first and "\\aset" not in first


@dataclass(frozen=True, slots=True, kw_only=True)
class PgbenchWorkload:
    """A mix of scripts under a load."""

    scripts: tuple[Script, ...]
    clients: int = 1
    threads: int = 1
    """At most as many as clients: of more pgbench makes no use (threads_used)."""
    query_mode: QueryMode = QueryMode.SIMPLE
    variables: tuple[tuple[str, str], ...] = ()
    rate: float | None = None
    """Transactions per second over all clients, started on a schedule (open loop); None is a closed loop."""
    scale: int | None = None
    """The value of :scale in script files."""
    rewrite: Script | None = None
    """The same question in words with which a newer server plans it as an older one did; no arm runs it, but what the
    plans account for is measured with it."""

    @property
    def name(self) -> str:
        """The scripts' names, joined as pgbench would be given them."""
        return ", ".join(
            script.name if script.weight is None else f"{script.name}@{script.weight}" for script in self.scripts
        )

    def pgbench_arguments(self, scripts: Sequence[str]) -> list[str]:
        """What pgbench is told of this load. scripts: `-b` and `-f` with what follows each, in the order of the mix."""
        arguments = ["-c", str(self.clients), "-j", str(self.threads), "-M", self.query_mode.value, *scripts]
        if self.scale is not None and not any(script.is_builtin for script in self.scripts):
            # With a built-in among the scripts pgbench asks the database itself and warns about -s.
            arguments += ["-s", str(self.scale)]
        for name, value in self.variables:
            arguments += ["-D", f"{name}={value}"]
        if self.rate is not None:
            arguments += ["-R", f"{self.rate:g}"]
        return arguments

    @property
    def pauses(self) -> bool:
        """Whether a script of the mix may sleep or run a program, which goes on while its client is stopped."""
        return any(_PAUSE.search(script.text or "") for script in self.scripts)

    @property
    def is_one_statement(self) -> bool:
        """Whether each transaction sends one statement at most."""
        return all(script.is_one_statement for script in self.scripts)

    @property
    def is_open_loop(self) -> bool:
        """Whether latency counts from the scheduled start."""
        return self.rate is not None


Workload = PgbenchWorkload | Operation
"""A load goes on and is measured in windows; an operation is done once to a state."""


def find_builtin(text: str) -> str:
    """The full name of the built-in that starts with `text`, as pgbench accepts it; StudyError when none or several."""
    found = [name for name in BUILTIN_SCRIPTS if name.startswith(text)]
    if len(found) != 1 or not text:
        raise StudyError(
            f'"{text}" is no built-in script of pgbench',
            slug="study-unknown-builtin",
            where=f"-b {text}",
            found=f'"{text}"',
            expected=", ".join(BUILTIN_SCRIPTS),
            to_do="pgbench's own names, or a beginning that fits only one of them",
        )
    return found[0]


def split_weight(text: str, flag: str) -> tuple[str, int | None]:
    """`FILE@WEIGHT` in two; no @ leaves the weight None. StudyError for a weight that is no number of pgbench's."""
    name, at, weight = text.rpartition("@")
    if not at:
        return text, None
    if not _WEIGHT.fullmatch(weight):
        raise StudyError(
            f'"{weight}" is no weight',
            slug="study-bad-weight",
            where=f"{flag} {text}",
            found=f'"{weight}"',
            expected="a whole number of at most 9 digits after the @",
            to_do=f"{flag} {name}@2",
        )
    return name, int(weight)


def threads_used(threads: int, clients: int) -> int:
    """How many threads pgbench runs when it is asked for so many: no more than it has clients, without a word."""
    return min(threads, clients)


def check_load(workload: PgbenchWorkload) -> None:
    """StudyError for a mix that no pgbench would run."""
    if _total_weight(workload.scripts) == 0:
        raise StudyError(
            "every script has weight 0",
            slug="study-no-weight",
            where="-f, -b",
            found=workload.name,
            expected="at least one script with a weight above 0",
            to_do="give one of them a weight: FILE@1",
        )


def check_for_secret_variables(variables: Sequence[tuple[str, str]]) -> None:
    """StudyError for a variable of pgbench with a secret in it: pgbench takes variables by its command line alone."""
    for name, value in variables:
        if holds_secret(name, value):
            raise StudyError(
                "a secret in a variable would be seen on the command line of pgbench",
                slug="study-bad-variable",
                where=f"-D {name}",
                found=f"{name} (its value is not shown)",
                expected="a value that every user of this host may read",
                to_do="write it into the script, which pgbench reads from a private file",
            )


def _total_weight(scripts: Sequence[Script]) -> int:
    return sum(1 if script.weight is None else script.weight for script in scripts)
