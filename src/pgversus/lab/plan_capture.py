"""The plans of all arms of a context on their own servers: captured, compared, and restored."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psycopg

from pgversus.answers.plans import PlansAnswer, compared
from pgversus.engine.progress import NoProgress, Progress
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError, PgversusError, PlanError, WorkloadError
from pgversus.host.identity import ServerUser
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.load_runner import PilotResult
from pgversus.lab.plan_checks import check_plan_restored, check_rewrite, check_same_statements
from pgversus.lab.plan_search import find_overrides
from pgversus.lab.resources import open_resources
from pgversus.lab.runner import failures_of_the_host
from pgversus.lab.testbed import PostgresTestbed
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import fingerprints
from pgversus.postgres.client import Client
from pgversus.postgres.explain import explain, index_keys, planner_settings, rows_digest, statistics_digests
from pgversus.postgres.session import Connection, Target, connect, with_options
from pgversus.records.plans import Captured, CapturedPlans, CapturedStatement, PlanOverride, SampledPlans, Statement
from pgversus.study.comparison import Comparison
from pgversus.study.counterfactual import CONTENDER_AGAIN, OLD_PLANS
from pgversus.study.study import Study
from pgversus.study.windows import least_window_s
from pgversus.study.workload import loads_of
from pgversus.text.translation import N_
from pgversus.workload.pgbench_run import PgbenchLoad, finished_load, read_window
from pgversus.workload.sent_statements import statements_of

_RERUNS = 2
"""Enough for the spread of the times of a plan."""
_DECLARES = re.compile(r"\s*DECLARE\b", re.IGNORECASE)


def capture(
    label: str,
    target: Target,
    statements: Sequence[Statement],
    *,
    with_rows: bool,
    begin: Callable[[int], None] = lambda _: None,
) -> Captured:
    """Return the plans of these statements, in order; raise WorkloadError with the server's message if one fails.

    label: of the arm. with_rows: also hash the rows of each statement. begin: called with the number of each, from 1.
    """

    def captured_one(number: int, one: Statement) -> CapturedStatement:
        begin(number)
        return _captured(label, connection, one, with_rows=with_rows)

    with connect(target, as_the_load=True) as connection:
        with connection.transaction(force_rollback=True):
            captured = tuple(captured_one(number, one) for number, one in enumerate(statements, 1))
        return Captured(
            statements=captured,
            statistics=statistics_digests(connection),
            settings=planner_settings(connection),
            index_keys=index_keys(connection),
        )


def _captured(label: str, connection: Connection, statement: Statement, *, with_rows: bool) -> CapturedStatement:
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
        raise WorkloadError(
            f"a statement of the workload fails on {label}",
            slug="workload-not-explained",
            where=f"{statement.description}, on {label}",
            found=str(error).strip(),
            expected="a statement that runs on every arm",
            to_do="this is the server's own message; fix the script, its data or its variables",
        ) from error


def _has_plan(connection: Connection, text: str) -> bool:
    try:
        with connection.transaction():
            connection.execute(f"EXPLAIN {text}".encode())
    except psycopg.errors.SyntaxError:
        return False
    return True


_WANTED = 200
"""Plans of each arm, so that a plan used once in 50 executions is seen at least once with 98 % probability."""
_LEAST_S = 1.0
_SEED = 2
# Not the seed used to capture statements: different values may have different plans.
_OF_PGBENCH = re.compile(r'"Query Text": "(?:select count\(\*\) from pgbench_branches|select o\.n, p\.partstrat)')
# Queries of pgbench itself before a built-in script: number of branches, and whether tables are partitioned.
_ENTRY = re.compile(r"plan:\n((?:\t.*\n?)+)")


def sampled(
    servers: Sequence[ArmServer], loads: Sequence[PgbenchLoad], pilot: PilotResult, plans: CapturedPlans
) -> tuple[SampledPlans, ...]:
    """Sample plans under load on each arm: their number, and those not among the captured ones. Takes a second or more.

    servers: running. pilot: results of the first load.
    """
    return tuple(
        _sampled(server, load, pilot, captured)
        for server, load, captured in zip(servers, loads, plans.arms, strict=True)
    )


def _sampled(server: ArmServer, load: PgbenchLoad, pilot: PilotResult, captured: Captured) -> SampledPlans:
    if server.log is None:
        return SampledPlans(told=0, others=0, failure="the log of an external server cannot be read")
    seconds = max(_LEAST_S, least_window_s(load.workload.rate), 2 * pilot.slowest_latency_s)
    # The rate of the slowest arm, so that faster arms yield more plans.
    tps = load.workload.rate or load.workload.clients / pilot.slowest_latency_s
    share = min(1.0, _WANTED / max(1.0, tps * seconds * len(captured.statements)))
    before = server.log.stat().st_size
    try:
        with finished_load(load, _with_auto_explain(server.target, share), seconds, _SEED) as finished:
            read_window(load, finished)
    except TrialFailedError as error:
        return SampledPlans(told=0, others=0, failure=str(error))
    known = {_shape(one.explained.planned) for one in captured.statements if one.explained is not None}
    logged = list(_logged_plans(server.log, before))
    if not logged:
        return SampledPlans(told=0, others=0, failure="auto_explain logged no plans within one window")
    try:
        others = [text for text in logged if _shape(text) not in known]
    except PlanError as error:
        # Other entries of a log may look like plans.
        return SampledPlans(told=0, others=0, failure=f"{error.what} ({error.where}): {error.found}")
    return SampledPlans(told=len(logged), others=len(others), example=others[0] if others else None)


def _with_auto_explain(target: Target, share: float) -> Target:
    """Return the target with auto_explain loaded in its sessions, logging this share of statements."""
    return with_options(
        target,
        {
            "session_preload_libraries": "auto_explain",
            "auto_explain.log_min_duration": "0",
            "auto_explain.log_format": "json",
            "auto_explain.log_verbose": "on",
            "auto_explain.sample_rate": f"{share:g}",
        },
    )


def _logged_plans(log: Path, before: int) -> Iterator[str]:
    """Yield the plans logged since the log had this length: each of their lines begins with a tab."""
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode(errors="replace")
    yield from (entry[1] for entry in _ENTRY.finditer(text) if not _OF_PGBENCH.search(entry[1]))


def _shape(text: str) -> str:
    return fingerprints(read_plans(text, "auto_explain")[0]).shape


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
    """Whether the rows that statements return are compared as well."""
    searches: bool = True
    """Whether to search for settings that restore the baseline's plans."""
    samples: bool = False
    """Whether to run the load again, to check that its plans are the captured ones."""
    progress: Progress = field(default_factory=NoProgress)
    """Receives the statement and arm being explained."""

    def explain(self, servers: Sequence[ArmServer], comparison: Comparison) -> CapturedPlans:
        """Return the plans of every arm; raise PgversusError if they are unavailable or not comparable.

        comparison: the statements of the arms; contexts that share servers differ in it. The search for an old plan
        does not change what is compared. Writes are rolled back. The servers must be running.
        """
        captured = []
        # One after the other, so that each has the host to itself.
        loads = loads_of(arm.workload for arm in comparison.arms)
        for server, arm, load in zip(servers, comparison.arms, loads, strict=True):
            statements = statements_of(load, self.client, server.target, self.scratch)
            begin = partial(self._report_step, _ASKING, arm.label, len(statements))
            captured.append(capture(arm.label, server.target, statements, with_rows=self.with_rows, begin=begin))
        check_same_statements([arm.label for arm in comparison.arms], captured)
        undone_by = [
            self._overrides(server, captured[0], found, comparison.factors)
            for server, found in zip(servers[1:], captured[1:], strict=True)
        ]
        return CapturedPlans(arms=tuple(captured), undone_by=tuple(undone_by), is_searched=self.searches)

    def _overrides(
        self, server: ArmServer, baseline: Captured, found: Captured, factors: Sequence[str]
    ) -> tuple[PlanOverride | None, ...]:
        if not self.searches:
            return (None,) * len(found.statements)
        begin = partial(self._report_step, _SEARCHING, server.arm.label, len(found.statements))
        return tuple(find_overrides(server.target, baseline, found, factors, begin=begin))

    def _report_step(self, sentence: str, arm: str, total: int, number: int) -> None:
        self.progress.at(sentence, arm=arm, number=number, total=total)


def capture_or_reason(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[PgbenchLoad],
    pilot: PilotResult,
    *,
    comparison: Comparison,
) -> tuple[CapturedPlans | None, str]:
    """Return the plans, or why there are none: a measurement does not depend on them. HostError ends the run."""
    try:
        plans = explainer.explain(servers, comparison)
    except HostError:
        raise
    except PgversusError as error:
        return None, f"{error.what} ({error.where}): {error.found}"
    if not explainer.samples:
        return plans, ""
    explainer.progress.at(_SAMPLING)
    return replace(plans, sampled=sampled(servers, loads, pilot, plans)), ""


def explained_counterfactual(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[PgbenchLoad],  # noqa: ARG001 - the protocol has it
    pilot: PilotResult,  # noqa: ARG001 - the same
    *,
    comparison: Comparison,
) -> tuple[CapturedPlans, str]:
    """Return the plans of the contender under the baseline's plans, of the baseline, and of the contender; no search.

    The rows of a rewrite are always compared. WorkloadError if it returns different rows, or if the first two have
    different plans: measuring them would be meaningless.
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


def compare_plans(study: Study, user: ServerUser, client: Client, progress: Progress) -> PlansAnswer:
    """Compare the plans of a comparison's workload on each arm with the baseline's; leave nothing behind.

    study: with one context. PgversusError of any kind if its servers cannot be provided, loaded or queried.
    """
    with open_resources(study, user, progress) as resources, ExitStack() as stack:
        testbed = PostgresTestbed(
            resources.study,
            resources.builds,
            resources.directory,
            client=client,
            snapshots=resources.snapshots(client, progress),
            common=resources.common_settings,
            progress=progress,
            stack=stack,
            kept_logs=None,
        )
        (context,) = resources.study.contexts
        with failures_of_the_host(resources.cache.root):
            servers = testbed.servers_of(context).servers
            for server in servers:
                server.start()
            progress.say("capturing the plans of every arm")
            explainer = Explainer(
                client=client, scratch=resources.directory.root / "statements", with_rows=True, progress=progress
            )
            plans = explainer.explain(servers, context.comparison)
    return compared(context.comparison.arms, plans)
