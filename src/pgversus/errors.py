"""All errors that pgversus reports to users.

A message has four parts: what happened, where, what was found and what was expected, and what to do.
The class determines the exit code, the slug identifies the case. Nothing here prints: `cli` shows each error once.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import partial
from typing import Self


class ExitCode(IntEnum):
    """Exit codes of the process, documented in README and `pgversus --help`."""

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
    """The base class of every error that pgversus reports deliberately."""

    what: str
    slug: str
    where: str = ""
    found: str = ""
    expected: str = ""
    to_do: str = ""

    exit_code = ExitCode.BUG

    @property
    def summary(self) -> str:
        """The message: the problem, its place, and the value found."""
        return f"{self.what} ({self.where}): {self.found}"

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()]]:
        """Return how another process recreates this error; by default it would lose its named fields."""
        return partial(type(self), **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def __str__(self) -> str:
        """Return all non-empty parts, one per line, so that a traceback in a notebook shows the whole message."""
        parts = (("where", self.where), ("found", self.found), ("expected", self.expected), ("to do", self.to_do))
        return "\n".join([self.what, *(f"  {name + ':':<10}{_indented(text)}" for name, text in parts if text)])


class StudyError(PgversusError):
    """The request is invalid: a flag, a server name, a missing file."""

    exit_code = ExitCode.USAGE


@dataclass(eq=False)
class StudyFileError(StudyError):
    """A study file is invalid; all problems are reported at once, in the order of the file."""

    problems: tuple[StudyError, ...] = ()

    def __str__(self) -> str:
        """Return every problem and their number."""
        return "\n\n".join([*(f"error[{one.slug}]: {one}" for one in self.problems), f"{self.where}: {self.what}"])


class PlanError(PgversusError):
    """A plan cannot be read: not in EXPLAIN's JSON format, truncated, or not output of EXPLAIN."""

    exit_code = ExitCode.USAGE


class BuildError(PgversusError):
    """PostgreSQL binaries are unavailable: unknown version, no network, damaged files, missing libraries."""

    exit_code = ExitCode.HOST


class HostError(PgversusError):
    """The host cannot run the study: user, disk, memory, permissions."""

    exit_code = ExitCode.HOST


class ServerError(PgversusError):
    """initdb, a server or a connection failed outside of the measured windows."""

    exit_code = ExitCode.HOST


class DatasetError(PgversusError):
    """Data could not be loaded, or differ between the arms."""

    exit_code = ExitCode.USAGE


class WorkloadError(PgversusError):
    """The load itself failed; pgbench's own message gives the reason."""

    exit_code = ExitCode.FAILED_TRIALS


class StoreError(PgversusError):
    """The results folder cannot be read or written."""

    exit_code = ExitCode.RESULTS


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n" + " " * 12)
