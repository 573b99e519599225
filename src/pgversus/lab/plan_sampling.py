"""Plans sampled under load by auto_explain, to check whether they are the captured ones."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import PlanError
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.pilot import PilotResult
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import fingerprints
from pgversus.postgres.session import Target, with_options
from pgversus.records.plans import Captured, CapturedPlans, SampledPlans
from pgversus.study.windows import least_window_s
from pgversus.workload.pgbench_run import PgbenchLoad, finished_load, read_window

_WANTED = 200
"""Plans wanted from each arm, so that a plan used once in 50 executions is seen at least once with 98 % probability."""
_LEAST_S = 1.0
_SEED = 2
_NOT_ALLOWED = "the role that executes the statements of an application is not allowed to load auto_explain"
# Not the seed used to capture statements: different values may have different plans.
_OF_PGBENCH = re.compile(r'"Query Text": "(?:select count\(\*\) from pgbench_branches|select o\.n, p\.partstrat)')
# Queries of pgbench itself before a built-in script: number of branches, and whether tables are partitioned.
_ENTRY = re.compile(r"plan:\n((?:\t.*\n?)+)")


def sampled(
    servers: Sequence[ArmServer], loads: Sequence[PgbenchLoad], pilot: PilotResult, plans: CapturedPlans
) -> tuple[SampledPlans, ...]:
    """Sample plans under load on each arm; return their number and those not captured. Takes a second or more.

    servers: running. pilot: results of the first load.
    """
    return tuple(
        _sampled(server, load, pilot, captured)
        for server, load, captured in zip(servers, loads, plans.arms, strict=True)
    )


def _sampled(server: ArmServer, load: PgbenchLoad, pilot: PilotResult, captured: Captured) -> SampledPlans:
    if server.log is None:
        return SampledPlans(told=0, others=0, failure="the log of an external server cannot be read")
    if load.workload.is_of_application:
        return SampledPlans(told=0, others=0, failure=_NOT_ALLOWED)
    seconds = max(_LEAST_S, least_window_s(load.workload.rate, load.workload.clients), 2 * pilot.slowest_latency_s)
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
        return SampledPlans(told=0, others=0, failure=error.summary)
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
    """Yield the plans logged since the log had this length; each of their lines begins with a tab."""
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode(errors="replace")
    yield from (entry[1] for entry in _ENTRY.finditer(text) if not _OF_PGBENCH.search(entry[1]))


def _shape(text: str) -> str:
    return fingerprints(read_plans(text, "auto_explain")[0]).shape
