"""The plans of all arms of a context, captured on their own servers, with the settings that restore old plans."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import psycopg

from pgversus.engine.progress import Progress
from pgversus.errors import HostError, PgversusError, WorkloadError
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.pilot import PilotResult
from pgversus.lab.plan_checks import check_plan_restored, check_rewrite, check_same_statements
from pgversus.lab.plan_sampling import sampled
from pgversus.lab.plan_search import find_overrides
from pgversus.postgres.client import Client
from pgversus.postgres.explain import explain, explain_generic, index_keys, planner_settings, statistics_digests
from pgversus.postgres.row_digests import rows_digest
from pgversus.postgres.session import Connection, connect, raise_timeouts
from pgversus.records.plans import (
    Captured,
    CapturedPlans,
    CapturedStatement,
    Explained,
    PlanOverride,
    Statement,
    Uncertainty,
    UncertaintyKind,
)
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.counterfactual import CONTENDER_AGAIN, OLD_PLANS
from pgversus.study.workload import PgbenchWorkload, loads_of
from pgversus.text.translation import N_
from pgversus.workload.pgbench_run import PgbenchLoad
from pgversus.workload.sent_statements import statements_of

_RERUNS = 2
"""Enough for the spread of the times of a plan."""
_MOST_STATEMENTS = 10_000
"""Each is executed three times on each arm, or four times if rows are compared, outside of the budget."""
_DECLARES = re.compile(r"\s*DECLARE\b", re.IGNORECASE)


def capture(
    label: str,
    server: ArmServer,
    statements: Sequence[Statement],
    *,
    with_rows: bool,
    begin: Callable[[int], None],
) -> Captured:
    """Return the plans of these statements, in order; raise WorkloadError with the server's message if one fails.

    label: of the arm. with_rows: also hash the rows of each statement. begin: called with the number of each, from 1.
    """
    if len(statements) > _MOST_STATEMENTS:
        raise WorkloadError(
            "there are too many statements to capture their plans",
            slug="workload-statements-unknown",
            where=label,
            found=f"{len(statements):,} statements",
            expected=f"at most {_MOST_STATEMENTS:,} statements in all scripts",
            to_do="use fewer statements, or add --no-plans",
        )
    captured: list[CapturedStatement] = []
    with connect(server.load_target, as_the_load=True) as connection:
        raise_timeouts(connection)
        # Like its transactions, scripts do not see what others write.
        for _script, of_script in groupby(enumerate(statements, 1), key=lambda numbered: numbered[1].script):
            is_uncertain = False
            with connection.transaction(force_rollback=True):
                for number, one in of_script:
                    begin(number)
                    found = _captured(label, connection, one, with_rows=with_rows)
                    captured.append(_uncertain(found) if is_uncertain else found)
                    is_uncertain = is_uncertain or _writes_any_values(found)
        settings, keys = planner_settings(connection), index_keys(connection)
    # Afterwards: a role may have a limit of connections.
    return Captured(statements=tuple(captured), statistics=statistics_of(server), settings=settings, index_keys=keys)


def statistics_of(server: ArmServer) -> Mapping[str, str]:
    """Return the digest of the planner's statistics of each table, by name."""
    with connect(server.target) as connection:
        return statistics_digests(connection)


def _captured(label: str, connection: Connection, statement: Statement, *, with_rows: bool) -> CapturedStatement:
    if statement.is_generic:
        return CapturedStatement(statement=statement, explained=_generic(connection, statement.text), rows=None)
    try:
        if not _has_plan(connection, statement.text):
            connection.execute(statement.text.encode())
            return CapturedStatement(statement=statement, explained=None, rows=None)
        rows = rows_digest(connection, statement.text) if with_rows else None
        explained = explain(connection, statement, reruns=_RERUNS)
        if _DECLARES.match(statement.text):
            # EXPLAIN runs the query but creates no cursor for the statements that follow.
            connection.execute(statement.text.encode())
        return CapturedStatement(statement=statement, explained=explained, rows=rows)
    except psycopg.Error as error:
        raise not_explained(label, statement, error) from error


def _writes_any_values(one: CapturedStatement) -> bool:
    """Return whether a statement has written values that may differ between two servers."""
    return one.rows is not None and one.rows.digest is None


def _uncertain(one: CapturedStatement) -> CapturedStatement:
    """Return a statement that follows such a statement in its transaction, and may read what that has written."""
    if one.rows is None:
        return one
    reasons = (*one.rows.uncertainties, Uncertainty(kind=UncertaintyKind.EARLIER))
    return replace(one, rows=replace(one.rows, uncertainties=reasons))


def _generic(connection: Connection, text: str) -> Explained | None:
    """Return the generic plan of a statement; None if the server rejects it, which concerns no other statement."""
    try:
        return explain_generic(connection, text)
    except psycopg.Error:
        if connection.closed:
            raise
        return None


def not_explained(label: str, statement: Statement, error: psycopg.Error) -> WorkloadError:
    """Return the error for a statement that a server rejects. label: of its arm."""
    return WorkloadError(
        f"a statement of the workload fails on {label}",
        slug="workload-not-explained",
        where=f"{statement.description}, on {label}",
        found=str(error).strip(),
        expected="a statement that runs on every arm",
        to_do="fix the script, its data or its variables; see the server's message above",
    )


def _has_plan(connection: Connection, text: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(f"EXPLAIN {text}".encode())
    except psycopg.errors.SyntaxError:
        return False
    return True


_ASKING = N_("capturing the plans of {arm}: statement {number} of {total}")
_SEARCHING = N_("searching for settings that restore the old plans on {arm}: statement {number} of {total}")
_SAMPLING = N_("running the load again on every arm to sample its plans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Options for capturing plans."""

    client: Client
    """The pgbench that captures the statements of a workload."""
    scratch: Path
    """Directory for scripts while they are captured."""
    with_rows: bool
    """Whether the rows that statements return or write are compared as well."""
    searches: bool = True
    """Whether to search for settings that restore the baseline's plans."""
    others: Callable[[int], Sequence[CapturedStatement]] | None = None
    """Returns the other statements of an application on the arm with an index, whose plans such settings may change."""
    samples: bool = False
    """Whether to run the load again, to check that its plans are the captured ones."""
    progress: Progress
    """Receives the statement and arm being explained."""

    def explain(self, servers: Sequence[ArmServer], comparison: Comparison) -> CapturedPlans:
        """Return the plans of every arm; raise PgversusError if they are unavailable or not comparable.

        comparison: determines the statements of the arms, which may differ between contexts that share servers. The
        search for an old plan does not change the compared settings. Writes are rolled back. The servers must be
        running.
        """
        captured: list[Captured] = []
        failures: list[WorkloadError] = []
        # One after the other, so that each has the host to itself.
        loads = loads_of(arm.workload for arm in comparison.arms)
        for server, arm, load in zip(servers, comparison.arms, loads, strict=True):
            try:
                captured.append(self._captured(server, arm, load))
            except WorkloadError as error:
                if not captured:
                    raise
                # The other contenders can be compared all the same.
                failures.append(error)
                captured.append(_without_plans(captured[0]))
        if len(failures) == len(comparison.contenders):
            raise failures[0]
        check_same_statements([arm.label for arm in comparison.arms], captured)
        # Settings that restore a generic plan would have to be searched for with unknown values.
        searches = self.searches and not any(one.statement.is_generic for one in captured[0].statements)
        undone_by = [
            self._overrides(server, captured[0], found, comparison.factors)
            if searches
            else (None,) * len(found.statements)
            for server, found in zip(servers[1:], captured[1:], strict=True)
        ]
        return CapturedPlans(arms=tuple(captured), undone_by=tuple(undone_by), is_searched=searches)

    def _captured(self, server: ArmServer, arm: Arm, load: PgbenchWorkload) -> Captured:
        statements = statements_of(load, self.client, server.load_target, self.scratch)
        begin = partial(self._report_step, _ASKING, arm.label, len(statements))
        return capture(arm.label, server, statements, with_rows=self.with_rows, begin=begin)

    def _overrides(
        self, server: ArmServer, baseline: Captured, found: Captured, factors: Sequence[str]
    ) -> tuple[PlanOverride | None, ...]:
        if not any(one.explained for one in found.statements):
            return (None,) * len(found.statements)
        begin = partial(self._report_step, _SEARCHING, server.arm.label, len(found.statements))
        others = None if self.others is None else self.others(server.arm.index)
        return tuple(find_overrides(server.load_target, baseline, found, factors, others=others, begin=begin))

    def _report_step(self, sentence: str, arm: str, total: int, number: int) -> None:
        self.progress.at(sentence, arm=arm, number=number, total=total)


def _without_plans(baseline: Captured) -> Captured:
    """Return what is known about an arm on which a statement fails: the statements of the baseline, without plans."""
    statements = (replace(one, explained=None, rows=None) for one in baseline.statements)
    return replace(baseline, statements=tuple(statements))


def capture_or_reason(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[PgbenchLoad],
    pilot: PilotResult,
    comparison: Comparison,
) -> tuple[CapturedPlans | None, str]:
    """Return the plans, or why they are missing: measurements do not depend on plans. HostError ends the run."""
    try:
        plans = explainer.explain(servers, comparison)
    except HostError:
        raise
    except PgversusError as error:
        return None, error.summary
    if not explainer.samples:
        return plans, ""
    explainer.progress.at(_SAMPLING)
    return replace(plans, sampled=sampled(servers, loads, pilot, plans)), ""


def explained_counterfactual(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[PgbenchLoad],  # noqa: ARG001 - ExplainArms has it
    pilot: PilotResult,  # noqa: ARG001 - the same
    comparison: Comparison,
) -> tuple[CapturedPlans, str]:
    """Return the plans of three arms: the contender with old plans, the baseline, and the contender. No search.

    The rows of a rewrite are always compared. Raises WorkloadError if it returns different rows, or if the
    first two arms have different plans: measuring them would be meaningless.
    """
    scripts = [load.scripts for load in loads_of(arm.workload for arm in comparison.arms)]
    is_rewritten = scripts[OLD_PLANS] != scripts[CONTENDER_AGAIN]
    with_rows = explainer.with_rows or is_rewritten
    plans = replace(explainer, searches=False, with_rows=with_rows).explain(servers, comparison)
    labels = [arm.label for arm in comparison.arms]
    if is_rewritten:
        check_rewrite(labels, plans)
    check_plan_restored(labels, plans)
    return plans, ""
