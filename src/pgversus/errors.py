"""Every error that a user can meet.

A message has four parts: what happened, where, what was found and what was expected, and what to do.
The class decides the exit code, the slug names the case. Nothing here prints: `cli` shows errors, once.
"""

from dataclasses import dataclass
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process returns; documented in README and `pgversus --help`."""

    DONE = 0
    FAIL_ON = 1
    USAGE = 2
    HOST = 3
    FAILED_TRIALS = 4
    RESULTS = 5
    BUG = 70
    INTERRUPTED = 130


@dataclass(eq=False)
class PgversusError(Exception):
    """The root: everything that pgversus tells a user on purpose."""

    what: str
    slug: str
    where: str = ""
    found: str = ""
    expected: str = ""
    to_do: str = ""

    exit_code = ExitCode.BUG

    def __str__(self) -> str:
        """What happened, and a line for each other part that says something: a traceback in a notebook shows it all."""
        parts = (("where", self.where), ("found", self.found), ("expected", self.expected), ("to do", self.to_do))
        return "\n".join([self.what, *(f"  {name + ':':<10}{_indented(text)}" for name, text in parts if text)])


class StudyError(PgversusError):
    """The question itself is wrong: a flag, a server name, a file that is not there."""

    exit_code = ExitCode.USAGE


@dataclass(eq=False)
class StudyFileError(StudyError):
    """A study file with problems: all of them at once, in the order of the file."""

    problems: tuple[StudyError, ...] = ()

    def __str__(self) -> str:
        """Every problem, and how many there are."""
        return "\n\n".join([*(f"error[{one.slug}]: {one}" for one in self.problems), f"{self.where}: {self.what}"])


class PlanError(PgversusError):
    """A plan cannot be read: no JSON of EXPLAIN, cut off, or not what EXPLAIN prints."""

    exit_code = ExitCode.USAGE


class BuildError(PgversusError):
    """PostgreSQL binaries cannot be had: no such version, no network, damaged, libraries missing."""

    exit_code = ExitCode.HOST


class HostError(PgversusError):
    """This machine cannot run it: user, disk, memory, permissions."""

    exit_code = ExitCode.HOST


class ServerError(PgversusError):
    """initdb, a server or a connection failed outside the measured windows."""

    exit_code = ExitCode.HOST


class DatasetError(PgversusError):
    """Data could not be loaded, or the arms do not hold the same data."""

    exit_code = ExitCode.USAGE


class WorkloadError(PgversusError):
    """The load itself failed: pgbench's own words say why."""

    exit_code = ExitCode.FAILED_TRIALS


class StoreError(PgversusError):
    """The results folder cannot be written or read."""

    exit_code = ExitCode.RESULTS


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n" + " " * 12)
