"""Whether plans under load are those that were captured: auto_explain tells some of them while the load runs."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.engine.testbed import TrialFailedError
from pgversus.lab.measuring.arms import ArmServer
from pgversus.lab.measuring.load import Load, finished_load, read_window
from pgversus.lab.measuring.pilot import PilotResult
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import examined
from pgversus.postgres.session import Target, with_options
from pgversus.records.plans import Captured, CapturedPlans, SampledPlans
from pgversus.study.windows import least_window_s

_WANTED = 200
"""Plans of each arm, so that one that is taken once in fifty is seen at least once in all but 2 % of cases."""
_LEAST_S = 1.0
_SEED = 2
# Not that with which the statements were told: other values may have other plans.
_OF_PGBENCH = re.compile(r'"Query Text": "(?:select count\(\*\) from pgbench_branches|select o\.n, p\.partstrat)')
# What pgbench itself asks before it runs a built-in script: how many branches, and whether tables are partitioned.
_ENTRY = re.compile(r"plan:\n((?:\t.*\n?)+)")


def sampled(
    servers: Sequence[ArmServer], loads: Sequence[Load], pilot: PilotResult, plans: CapturedPlans
) -> tuple[SampledPlans, ...]:
    """For each arm, how many plans were told and which of them nobody has captured; its load runs for a second or more.

    servers: started. pilot: what the first load has shown.
    """
    return tuple(
        _sampled(server, load, pilot, captured)
        for server, load, captured in zip(servers, loads, plans.arms, strict=True)
    )


def _sampled(server: ArmServer, load: Load, pilot: PilotResult, captured: Captured) -> SampledPlans:
    if server.log is None:
        return SampledPlans(told=0, others=0, failure="the log of a server that somebody else runs is not ours to read")
    seconds = max(_LEAST_S, least_window_s(load.workload.rate), 2 * pilot.slowest_latency_s)
    # Of the slowest arm, so that others tell more of theirs.
    tps = load.workload.rate or load.workload.clients / pilot.slowest_latency_s
    share = min(1.0, _WANTED / max(1.0, tps * seconds * len(captured.statements)))
    before = server.log.stat().st_size
    try:
        with finished_load(load, _telling(server.target, share), seconds, _SEED) as finished:
            read_window(load, finished)
    except TrialFailedError as error:
        return SampledPlans(told=0, others=0, failure=str(error))
    known = {_shape(one.explained.planned) for one in captured.statements if one.explained is not None}
    told = list(_told(server.log, before))
    if not told:
        return SampledPlans(told=0, others=0, failure="auto_explain told none in the time of one window")
    others = [text for text in told if _shape(text) not in known]
    return SampledPlans(told=len(told), others=len(others), example=others[0] if others else None)


def _telling(target: Target, share: float) -> Target:
    """The same sessions with auto_explain in them, which tells this share of statements."""
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


def _told(log: Path, before: int) -> Iterator[str]:
    """Plans in what was logged since the log was so long: each line of them begins with a tab."""
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode(errors="replace")
    yield from (entry[1] for entry in _ENTRY.finditer(text) if not _OF_PGBENCH.search(entry[1]))


def _shape(text: str) -> str:
    return examined(read_plans(text, "")[0]).fingerprints.shape
