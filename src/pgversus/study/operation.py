"""What is done once to a state, and timed: VACUUM, CREATE INDEX, COPY, a restore.

Each repetition destroys the state that it needs, so each begins on a fresh copy of it.
"""

from dataclasses import dataclass


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
