"""Which settings bring the baseline's plan back on a contender: each is tried, and held against it.

What brings a plan back is no proof of what the difference in speed comes from: that has to be measured.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence

import psycopg
from psycopg import sql

from pgversus.plans.changes import ChangeKind
from pgversus.plans.difference import PlanDifference, difference, has_other_spills, is_same_but_for_batches
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel, examined, is_same_but_for_sorts
from pgversus.postgres.explain import explain
from pgversus.postgres.session import Connection, Target, connect
from pgversus.records.plans import (
    Candidate,
    Captured,
    CapturedStatement,
    Explained,
    OverrideReason,
    PlannerSetting,
    PlanOverride,
    RemainingDifference,
    Statement,
    candidates,
    memory_candidates,
)

_QUERY = re.compile(r"[\s(]*(?:SELECT|VALUES|WITH|TABLE)\b", re.IGNORECASE)
_INTO = re.compile(r"\bINTO\b", re.IGNORECASE)
_WRITES = re.compile(r'"Node Type": "(?:ModifyTable|LockRows)"')
_LONGEST_S = 20.0
"""For one statement; planning it takes milliseconds, and there are some hundred candidates."""


def undoings(
    target: Target,
    baseline: Captured,
    contender: Captured,
    factors: Sequence[str],
    *,
    begin: Callable[[int], None] = lambda _: None,
) -> list[PlanOverride | None]:
    """For each statement the settings that bring its plan back; None where none does, or nothing has changed.

    target: the contender, started. factors: what is compared, which is not tried. What is written is rolled back.
    begin: told the number of each statement, from 1.
    """

    def undoing_one(number: int, old: CapturedStatement, new: CapturedStatement) -> PlanOverride | None:
        begin(number)
        return _undoing(connection, old, new, tried, memory)

    fixed = {name.lower() for name in factors}
    tried = [
        one
        for one in candidates(baseline.settings, contender.settings)
        if not fixed & {name for name, _ in one.settings}
    ]
    # Of what is set otherwise on the two the other value has been tried.
    memory = {
        name: found
        for name, found in contender.settings.items()
        if name not in fixed and baseline.settings.get(name) == found
    }
    with connect(target, as_the_load=True) as connection, connection.transaction(force_rollback=True):
        return [
            undoing_one(number, old, new)
            for number, (old, new) in enumerate(zip(baseline.statements, contender.statements, strict=True), 1)
        ]


def _undoing(
    connection: Connection,
    old: CapturedStatement,
    new: CapturedStatement,
    tried: Sequence[Candidate],
    memory: Mapping[str, PlannerSetting],
) -> PlanOverride | None:
    found = None
    if old.explained is not None and new.explained is not None:
        changed = difference(read_plans(old.explained.run, "")[0], read_plans(new.explained.run, "")[0])
        if not changed.is_same_plan:
            found = _that_plans_so(connection, old, new.statement, tried)
        elif changed.level is PlanLevel.BEHAVIOUR:
            may_go_so = _that_may_go_so(changed, tried, memory)
            found = _that_goes_so(connection, old, new.statement, changed, may_go_so)
    if not _only_reads(new):
        # Later statements find what it has written.
        connection.execute(new.statement.text.encode())
    return found


def _only_reads(one: CapturedStatement) -> bool:
    """Whether it may be left out; in doubt it is run."""
    if one.rows is not None:
        return True
    if one.explained is None or _WRITES.search(one.explained.planned) or _INTO.search(one.statement.text):
        return False
    return _QUERY.match(one.statement.text) is not None


def _that_plans_so(
    connection: Connection, old: CapturedStatement, statement: Statement, tried: Sequence[Candidate]
) -> PlanOverride | None:
    """The first with which the planner makes the old plan; else the first with which sorts alone are missing.

    statement: as the contender is sent it.
    """
    assert old.explained is not None  # noqa: S101 - asked of those that have a plan
    wanted = examined(read_plans(old.explained.planned, "")[0])
    ends = time.monotonic() + _LONGEST_S
    near = None
    for one in tried:
        if time.monotonic() > ends:
            break
        explained = _with(connection, one, statement)
        found = None if explained is None else examined(read_plans(explained.planned, "")[0])
        if found is not None and found.logics == wanted.logics:
            return PlanOverride(candidate=one)
        if near is None and found is not None and is_same_but_for_sorts(found, wanted):
            near = PlanOverride(candidate=one, but_for=RemainingDifference.SORTS)
    return near


def _that_goes_so(
    connection: Connection,
    old: CapturedStatement,
    statement: Statement,
    changed: PlanDifference,
    tried: Sequence[Candidate],
) -> PlanOverride | None:
    """The first with which the same plan goes as it went; else the first with which it spills as it did.

    It has to be run: only what is set otherwise is tried, and where a spill is gone, or new, what bounds memory.
    changed: from the old plan to that of the contender.
    """
    assert old.explained is not None  # noqa: S101 - asked of those that have a plan
    wanted, plan = read_plans(old.explained.run, "")[0], examined(read_plans(old.explained.planned, "")[0]).logics
    ends = time.monotonic() + _LONGEST_S
    near = None
    for one in tried:
        left_s = ends - time.monotonic()
        if left_s <= 0:
            break
        explained = _with(connection, one, statement)
        if explained is None or examined(read_plans(explained.planned, "")[0]).logics != plan:
            # Another plan may take for ever, and is not what is looked for.
            continue
        explained = _with(connection, one, statement, run_within_s=left_s)
        found = None if explained is None else difference(wanted, read_plans(explained.run, "")[0])
        if found is not None and found.level in (PlanLevel.WORK, PlanLevel.IDENTICAL):
            return PlanOverride(candidate=one)
        if near is None and found is not None and has_other_spills(changed) and is_same_but_for_batches(found):
            near = PlanOverride(candidate=one, but_for=RemainingDifference.BATCHES)
    return near


def _that_may_go_so(
    changed: PlanDifference, tried: Sequence[Candidate], memory: Mapping[str, PlannerSetting]
) -> list[Candidate]:
    otherwise = [one for one in tried if one.why in (OverrideReason.CHANGED_DEFAULT, OverrideReason.OTHER_VALUE)]
    kinds = {change.kind for change in changed.changes}
    if ChangeKind.SPILL_GONE in kinds:
        return [*otherwise, *memory_candidates(memory, is_less=True)]
    return [*otherwise, *memory_candidates(memory, is_less=False)] if ChangeKind.SPILL_NEW in kinds else otherwise


def _with(
    connection: Connection, candidate: Candidate, statement: Statement, *, run_within_s: float | None = None
) -> Explained | None:
    """What EXPLAIN tells under these settings; None where the server refuses one, or the statement fails with them.

    run_within_s: run it as well, and give it up after so long; None asks for the plan alone.
    """
    limit = () if run_within_s is None else (("statement_timeout", str(math.ceil(1000 * run_within_s))),)
    try:
        with connection.transaction(force_rollback=True):
            for name, value in (*candidate.settings, *limit):
                connection.execute(sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            return explain(connection, statement, is_run=run_within_s is not None)
    except psycopg.Error:
        return None
