"""Search for settings that restore the baseline's plan on a contender: each is tried and its plan compared.

Restoring a plan does not prove that the plan causes the difference in speed, which has to be measured.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import psycopg
from psycopg import sql

from pgversus.plans.changes import ChangeKind
from pgversus.plans.difference import PlanDifference, difference, has_other_spills, is_same_but_for_batches
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel, is_same_but_for_sorts, is_same_logic
from pgversus.postgres.explain import explain
from pgversus.postgres.session import Connection, Target, connect, raise_timeouts
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
_MODIFIES = re.compile(r'"Node Type": "ModifyTable"')
_WRITES = re.compile(r'"Node Type": "(?:ModifyTable|LockRows)"')
_LONGEST_S = 20.0
"""For one statement; planning takes milliseconds, and there are a few hundred candidates."""


def find_overrides(
    target: Target,
    baseline: Captured,
    contender: Captured,
    factors: Sequence[str],
    *,
    others: Sequence[CapturedStatement] | None = None,
    begin: Callable[[int], None],
) -> list[PlanOverride | None]:
    """Return for each statement the settings that restore its plan; None if none does, or nothing has changed.

    target: the contender, running. factors: the compared settings, which are not tried. Writes are rolled back.
    others: statements of an application on the contender, whose plans the settings may change as well.
    begin: called with the number of each statement, from 1.
    """
    fixed = {name.lower() for name in factors}
    tried = [
        one
        for one in candidates(baseline.settings, contender.settings)
        if not fixed & {name for name, _ in one.settings}
    ]
    # If a setting differs between the two, the baseline's value is already among the candidates.
    memory = {
        name: found
        for name, found in contender.settings.items()
        if name not in fixed and baseline.settings.get(name) == found
    }
    overrides: list[PlanOverride | None] = []
    pairs = zip(baseline.statements, contender.statements, strict=True)
    with connect(target, as_the_load=True) as connection, connection.transaction(force_rollback=True):
        raise_timeouts(connection)
        for number, (old, new) in enumerate(pairs, 1):
            begin(number)
            found = _override(connection, old, new, tried, memory)
            if found is not None and others is not None:
                changed = _also_changed(connection, found.candidate, new.statement.script, others)
                found = replace(found, also_changes=tuple(changed))
            overrides.append(found)
    return overrides


def _override(
    connection: Connection,
    old: CapturedStatement,
    new: CapturedStatement,
    tried: Sequence[Candidate],
    memory: Mapping[str, PlannerSetting],
) -> PlanOverride | None:
    found = None
    if old.explained is not None and new.explained is not None:
        old_plan, new_plan = (read_plans(one.run, "")[0] for one in (old.explained, new.explained))
        changed = difference(old_plan, new_plan, parameters=len(new.statement.parameters))
        if not changed.is_same_plan:
            found = _restoring_setting(connection, old.explained, new.explained, new.statement, tried)
        elif changed.level is PlanLevel.BEHAVIOUR:
            may_restore = _behaviour_candidates(changed, tried, memory)
            found = _behaviour_restoring_setting(connection, old, new.statement, changed, may_restore)
    if not _only_reads(new):
        # Later statements may depend on the rows that it writes.
        connection.execute(new.statement.text.encode())
    return found


def _also_changed(
    connection: Connection, candidate: Candidate, script: str, others: Sequence[CapturedStatement]
) -> Iterator[str]:
    """Yield the other scripts whose plans change under these settings. They are planned, not executed."""
    for one in others:
        if one.statement.script != script and one.explained is not None:
            found = _with(connection, candidate, one.statement)
            plans = [read_plans(text.planned, "")[0] for text in (one.explained, found) if text is not None]
            if len(plans) > 1 and not is_same_logic(plans[0], plans[1], len(one.statement.parameters)):
                yield one.statement.script


def _only_reads(one: CapturedStatement) -> bool:
    """Return whether a statement may be skipped; in doubt it is run."""
    if one.rows is not None and one.explained is not None and not _MODIFIES.search(one.explained.planned):
        return True
    if one.explained is None or _WRITES.search(one.explained.planned) or _INTO.search(one.statement.text):
        return False
    return _QUERY.match(one.statement.text) is not None


def _restoring_setting(
    connection: Connection, old: Explained, new: Explained, statement: Statement, tried: Sequence[Candidate]
) -> PlanOverride | None:
    """Return the first candidate that yields the old plan; else the first that differs only in missing sorts.

    The second is pointless if the contender's own plan already differs only in these. statement: as sent to the
    contender.
    """
    wanted, own = (read_plans(one.planned, "")[0] for one in (old, new))
    parameters = len(statement.parameters)
    may_be_near = not is_same_but_for_sorts(own, wanted, parameters)
    ends = time.monotonic() + _LONGEST_S
    near = None
    for one in tried:
        if time.monotonic() > ends:
            break
        explained = _with(connection, one, statement)
        found = None if explained is None else read_plans(explained.planned, "")[0]
        if found is not None and is_same_logic(found, wanted, parameters):
            return PlanOverride(candidate=one)
        if may_be_near and near is None and found is not None and is_same_but_for_sorts(found, wanted, parameters):
            near = PlanOverride(candidate=one, but_for=RemainingDifference.SORTS)
    return near


def _behaviour_restoring_setting(
    connection: Connection,
    old: CapturedStatement,
    statement: Statement,
    changed: PlanDifference,
    tried: Sequence[Candidate],
) -> PlanOverride | None:
    """Return the first candidate that executes the plan as before; else the first that spills as before.

    The statement has to be run, so few candidates are tried: settings that differ and, if a spill is gone or new,
    memory limits. changed: from the old plan to the contender's.
    """
    assert old.explained is not None  # noqa: S101 - called only for statements with a plan
    wanted, plan = (read_plans(text, "")[0] for text in (old.explained.run, old.explained.planned))
    parameters = len(statement.parameters)
    ends = time.monotonic() + _LONGEST_S
    near = None
    for one in tried:
        left_s = ends - time.monotonic()
        if left_s <= 0:
            break
        explained = _with(connection, one, statement)
        if explained is None or not is_same_logic(read_plans(explained.planned, "")[0], plan, parameters):
            # A different plan may run far too long and is of no interest.
            continue
        explained = _with(connection, one, statement, run_within_s=left_s)
        run = None if explained is None else read_plans(explained.run, "")[0]
        found = None if run is None else difference(wanted, run, parameters=parameters)
        if found is not None and found.is_executed_alike:
            return PlanOverride(candidate=one)
        if near is None and found is not None and has_other_spills(changed) and is_same_but_for_batches(found):
            near = PlanOverride(candidate=one, but_for=RemainingDifference.BATCHES)
    return near


def _behaviour_candidates(
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
    """Return the EXPLAIN output under these settings; None if the server refuses one or the statement fails.

    run_within_s: also run the statement, with this timeout in seconds; None to plan it only.
    """
    limit = () if run_within_s is None else (("statement_timeout", str(math.ceil(1000 * run_within_s))),)
    try:
        with connection.transaction(force_rollback=True):
            for name, value in (*candidate.settings, *limit):
                connection.execute(sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            return explain(connection, statement, is_run=run_within_s is not None)
    except psycopg.Error:
        return None
