"""Which settings bring the baseline's plan back on a contender: each is tried, and held against it.

What brings a plan back is no proof of what the difference in speed comes from: that has to be measured.
"""

import time
from collections.abc import Sequence

import psycopg
from psycopg import sql

from pgversus.plans.difference import difference
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import Level, examined, is_same_but_for_sorts
from pgversus.postgres.explain import explain
from pgversus.postgres.session import Connection, Target, connect
from pgversus.study.captured import Captured, CapturedStatement, Statement
from pgversus.study.planner_switches import Candidate, Undoing, Why, candidates

_LONGEST_S = 20.0
"""For one statement; planning it takes milliseconds, and there are some hundred candidates."""


def undoings(target: Target, baseline: Captured, contender: Captured, factors: Sequence[str]) -> list[Undoing | None]:
    """For each statement the settings that bring its plan back; None where none does, or nothing has changed.

    target: the contender, started. factors: what is compared, which is not tried. What is written is rolled back.
    """
    compared = {name.lower() for name in factors}
    tried = [
        one
        for one in candidates(baseline.settings, contender.settings)
        if not compared & {name for name, _ in one.settings}
    ]
    with connect(target, as_the_load=True) as connection, connection.transaction(force_rollback=True):
        return [
            _undoing(connection, old, new, tried)
            for old, new in zip(baseline.statements, contender.statements, strict=True)
        ]


def _undoing(
    connection: Connection, old: CapturedStatement, new: CapturedStatement, tried: Sequence[Candidate]
) -> Undoing | None:
    found = None
    if old.explained is not None and new.explained is not None:
        level = difference(read_plans(old.explained.run, "")[0], read_plans(new.explained.run, "")[0]).level
        if level in (Level.OPERATORS, Level.CONDITIONS):
            found = _that_plans_so(connection, old, tried)
        elif level is Level.BEHAVIOUR and new.rows is not None:
            found = _that_goes_so(connection, old, tried)
    if new.rows is None:
        # Later statements find what it has written.
        connection.execute(new.statement.text.encode())
    return found


def _that_plans_so(connection: Connection, old: CapturedStatement, tried: Sequence[Candidate]) -> Undoing | None:
    """The first with which the planner makes the old plan; else the first with which sorts alone are missing."""
    assert old.explained is not None  # noqa: S101 - asked of those that have a plan
    wanted = examined(read_plans(old.explained.planned, "")[0])
    ends = time.monotonic() + _LONGEST_S
    near = None
    for one in tried:
        if time.monotonic() > ends:
            break
        planned = _with(connection, one, old.statement, is_run=False)
        found = None if planned is None else examined(read_plans(planned, "")[0])
        if found is not None and found.logics == wanted.logics:
            return Undoing(candidate=one, but_for_sorts=False)
        if near is None and found is not None and is_same_but_for_sorts(found, wanted):
            near = Undoing(candidate=one, but_for_sorts=True)
    return near


def _that_goes_so(connection: Connection, old: CapturedStatement, tried: Sequence[Candidate]) -> Undoing | None:
    """The first with which the same plan goes as it went. It has to be run: only what is set otherwise is tried."""
    assert old.explained is not None  # noqa: S101 - asked of those that have a plan
    wanted = read_plans(old.explained.run, "")[0]
    for one in tried:
        if one.why not in (Why.CHANGED_DEFAULT, Why.OTHER_VALUE):
            continue
        run = _with(connection, one, old.statement, is_run=True)
        if run is not None and difference(wanted, read_plans(run, "")[0]).level in (Level.WORK, Level.IDENTICAL):
            return Undoing(candidate=one, but_for_sorts=False)
    return None


def _with(connection: Connection, candidate: Candidate, statement: Statement, *, is_run: bool) -> str | None:
    """EXPLAIN's JSON under these settings; None where the server refuses one, or the statement fails with them."""
    try:
        with connection.transaction(force_rollback=True):
            for name, value in candidate.settings:
                connection.execute(sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            found = explain(connection, statement, is_run=is_run)
            return found.run if is_run else found.planned
    except psycopg.Error:
        return None
