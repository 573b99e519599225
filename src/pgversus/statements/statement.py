"""A statement of the application: its text, its share of the load, and values for its parameters."""

import math
from dataclasses import dataclass
from enum import StrEnum

from pgversus.text.translation import N_


class StatementKind(StrEnum):
    """The kind of a statement, which determines how it can be checked."""

    READS = "reads"
    """SELECT, VALUES or TABLE."""
    WRITES = "writes"
    """INSERT, UPDATE, DELETE or MERGE, which can be rolled back."""
    UTILITY = "utility"
    """Anything else: it has no plan, or cannot be rolled back."""
    UNKNOWN = "unknown"
    """Not one statement, or not a statement that the parser knows."""


NO_VALUES = N_("no values for its parameters")
"""Why a statement cannot be executed if its values are neither recorded nor known from statistics."""


REJECTED = N_("rejected by the server")
"""Why a statement cannot be executed, followed by a colon and the server's message."""


class ValueClass(StrEnum):
    """Kind of values that statistics suggest for the parameters of a statement."""

    COMMON = "common values"
    """The most common value of a column, or a range with many rows."""
    RARE = "rare values"
    """A value that few rows have, or a range with few rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One execution from a log, or one that statistics suggest: the text, and the values of its parameters."""

    text: str
    values: tuple[str | None, ...] = ()
    """Values of $1, $2 and so on; None is NULL."""
    seconds: float | None = None
    """Execution time; None if the source does not report it."""
    value_class: ValueClass | None = None
    """None for values of the application."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What statistics suggest for the parameters of a statement."""

    samples: tuple[Sample, ...] = ()
    """One for each class of values; empty if a value is unknown."""
    rejection: str = ""
    """The server's message, if it does not accept the statement."""

    @property
    def obstacle(self) -> str:
        """Why the statement cannot be executed; empty if it can."""
        if self.samples:
            return ""
        return f"{REJECTED}: {self.rejection}" if self.rejection else NO_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStatement:
    """Executions that differ only in constants."""

    fingerprint: str
    """Equal for statements that differ only in constants, spaces and comments."""
    kind: StatementKind
    problem: str
    """Why it cannot be parsed; empty if it can."""
    text: str
    """With $1, $2 and so on in place of constants and parameters, if a source stores it in this form."""
    parameters: int
    """Number of parameters in its text."""
    calls: int
    seconds: float
    """Total execution time."""
    rows: int | None
    """Rows returned or changed by all executions; None if no source reports them."""
    samples: tuple[Sample, ...]
    """At most three executions whose values are known: a fast, a median and a slow one; empty without any."""
    name: str = ""
    """Name given in a file of SQL; empty otherwise."""
    is_prepared: bool = False
    """Whether the application had prepared it by name for at least half of its logged executions."""

    @property
    def mean_s(self) -> float:
        """The mean execution time in seconds; 0 without executions."""
        return self.seconds / self.calls if self.calls else 0.0

    @property
    def typical(self) -> Sample | None:
        """The execution that represents all: the one nearest to the mean time, or the median without counters.

        A log often has slow executions only. None without any.
        """
        known = [one for one in self.samples if one.seconds]
        if self.rows is None or not self.mean_s or len(known) < len(self.samples):
            return self.samples[(len(self.samples) - 1) // 2] if self.samples else None
        return min(known, key=lambda one: abs(math.log((one.seconds or 0.0) / self.mean_s)), default=None)

    @property
    def obstacle(self) -> str:
        """Why it cannot be executed with the values of the application, in English; empty if it can."""
        match self.kind:
            case StatementKind.UNKNOWN:
                return N_("not a single SQL statement that the parser recognizes")
            case StatementKind.UTILITY:
                return N_("not a SELECT, INSERT, UPDATE, DELETE or MERGE")
            case StatementKind.READS | StatementKind.WRITES:
                return "" if self.samples or not self.parameters else NO_VALUES
