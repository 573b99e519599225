"""One comparison, from names to an answer."""

import math
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pgversus.host.directories import open_cache
from pgversus.host.facts import host_facts
from pgversus.host.identity import ServerUser
from pgversus.host.leftovers import sweep
from pgversus.lab.arms import ArmServer
from pgversus.lab.engine import Run, run_blocks
from pgversus.lab.gates import caveats
from pgversus.lab.load import Load, write_scripts
from pgversus.lab.pilot import PilotResult, run_pilot
from pgversus.lab.postgres_apparatus import PostgresApparatus, clock
from pgversus.lab.preparation import arm_facts, load, make_servers, with_settings_of_load
from pgversus.lab.progress import Progress
from pgversus.lab.run_directory import RunDirectory, run_directory
from pgversus.postgres.builds.model import Build
from pgversus.postgres.builds.provide import provide
from pgversus.postgres.client import Client
from pgversus.postgres.fingerprint import Fingerprint, differences
from pgversus.postgres.session import uri_label
from pgversus.report.answer import Answer, ArmFacts
from pgversus.report.document import document
from pgversus.stats.analysis import analyse
from pgversus.store.results import Results, check_folder
from pgversus.study.caveats import Difference
from pgversus.study.comparison import Comparison
from pgversus.study.design import fit_windows, refuse_hopeless_budget
from pgversus.study.servers import RunningServer, ServerName

# Connections that any host makes in a second; only the pilot has to guess.
_CLIENTS_PER_SECOND = 50
# Below this the time of connecting is a small part of the shortest window.
_SLOW_CONNECT_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a comparison is carried out with."""

    user: ServerUser
    client: Client
    results: Path
    """A folder that holds no results yet."""
    keep_logs: bool = False
    """Whether pgbench's transaction logs are kept among the results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """Arms that are loaded, equal, and have shown that the load runs."""

    comparison: Comparison
    servers: tuple[ArmServer, ...]
    facts: tuple[ArmFacts, ...]
    differences: tuple[Difference, ...]
    pilot: PilotResult
    apparatus: PostgresApparatus


def compare(comparison: Comparison, means: Means, progress: Progress) -> Answer:
    """Fetch, load, measure, decide. Everything started is stopped and removed when this returns or raises.

    PgversusError of any kind when it cannot be begun; once blocks run, failures and Ctrl-C become part of the answer.
    """
    check_folder(means.results)
    cache = open_cache()
    for name in sweep(cache.runs):
        progress.say(f"removed what the killed run {name} had left")
    names = [arm.server for arm in comparison.arms]
    builds = provide(names, cache, means.user, progress.say, progress.fetching)
    with ExitStack() as stack:
        directory = stack.enter_context(run_directory(cache, means.user))
        prepared = _prepare(comparison, builds, directory, means, progress, stack)
        results = Results(means.results)
        stack.callback(_keep_server_logs, directory, comparison, means.results)
        stack.callback(results.close)
        host = host_facts(directory.root)
        _keep_question(results, prepared, means.client, host)
        progress.begin_blocks(prepared.comparison)
        run = run_blocks(
            prepared.comparison, prepared.apparatus, clock=clock, progress=progress, keep=results.add_block
        )
        answer = _answer(prepared, run, means, host)
        results.add_fact("answer", document(answer))
        return answer


def _prepare(
    comparison: Comparison,
    builds: Sequence[Build | None],
    directory: RunDirectory,
    means: Means,
    progress: Progress,
    stack: ExitStack,
) -> _Prepared:
    progress.say("making clusters" if means.user.is_self else f"making clusters (servers run as {means.user.name})")
    servers = make_servers(comparison, builds, directory, stack)
    loaded = load(servers, comparison.dataset, means.client, progress)
    load_on_arm = Load(
        workload=comparison.workload,
        client=means.client,
        script_files=write_scripts(comparison.workload, directory.root / "scripts"),
        scratch=directory.root / "logs",
        kept_logs=means.results / "transaction-logs" if means.keep_logs else None,
        connect_allowance_s=comparison.workload.clients // _CLIENTS_PER_SECOND,
        longest_s=comparison.design.budget_s,
    )
    progress.say("trying the workload once on every arm")
    for server in servers:
        server.start(fresh_data=True)
    fingerprints = with_settings_of_load(servers, loaded)
    pilot = run_pilot(servers, replace(load_on_arm, kept_logs=None), comparison.design)
    design = fit_windows(
        comparison.design,
        clients=comparison.workload.clients,
        writes=pilot.writes,
        slowest_latency_s=pilot.slowest_latency_s,
    )
    refuse_hopeless_budget(design, len(servers))
    allowance_s = math.ceil(pilot.connect_s) if pilot.connect_s > _SLOW_CONNECT_S else 0
    load_on_arm = replace(load_on_arm, connect_allowance_s=allowance_s)
    apparatus = PostgresApparatus(servers, load_on_arm, design, writes=pilot.writes)
    for server in servers:
        server.stop()
    return _Prepared(
        comparison=replace(comparison, design=design),
        servers=servers,
        facts=_facts(builds, fingerprints),
        differences=differences(fingerprints, comparison.factors),
        pilot=pilot,
        apparatus=apparatus,
    )


def _keep_server_logs(directory: RunDirectory, comparison: Comparison, results: Path) -> None:
    """What the servers said, beside the results: the run's own directory goes with the run."""
    for arm in comparison.arms:
        # A server of somebody else has no log here, and a full disk is no reason to lose the answer.
        with suppress(OSError):
            log = directory.server_log(arm.index)
            shutil.copyfile(log, results / log.name)


def _facts(builds: Sequence[Build | None], fingerprints: Sequence[Fingerprint]) -> tuple[ArmFacts, ...]:
    return tuple(arm_facts(build, fingerprint) for build, fingerprint in zip(builds, fingerprints, strict=True))


def _keep_question(results: Results, prepared: _Prepared, client: Client, host: object) -> None:
    """Before the first block: what is asked, on what, in which order (the seed), so that nothing rests on memory."""
    comparison = prepared.comparison
    results.add_fact("host", host)
    results.add_fact("client", {"version": client.version, "origin": client.origin})
    results.add_fact("workload", asdict(comparison.workload))
    results.add_fact("dataset", asdict(comparison.dataset))
    results.add_fact("design", asdict(comparison.design))
    results.add_fact("factors", comparison.factors)
    results.add_fact("servers", [_server_fact(arm.server) for arm in comparison.arms])
    results.add_fact("builds", [asdict(facts) for facts in prepared.facts])
    results.add_fact("differences", [asdict(difference) for difference in prepared.differences])
    for arm, facts in zip(comparison.arms, prepared.facts, strict=True):
        settings = {setting.name: setting.value for setting in arm.settings}
        results.add_arm(arm.index, label=arm.label, version=facts.version, origin=facts.origin, settings=settings)


def _server_fact(server: ServerName) -> dict[str, Any]:
    if isinstance(server, RunningServer):
        return {"running": uri_label(server.uri)}
    return asdict(server)


def _answer(prepared: _Prepared, run: Run, means: Means, host: Any) -> Answer:
    assert run.stopped is not None  # noqa: S101 - the engine returns when it has stopped
    comparison = prepared.comparison
    return Answer(
        comparison=comparison,
        arms=prepared.facts,
        analysis=analyse(run.blocks, comparison, run.rule, frozenset(run.invalid)),
        rule=run.rule,
        caveats=caveats(
            comparison,
            prepared.servers,
            prepared.facts,
            prepared.differences,
            run.blocks,
            run.stopped,
            writes=prepared.pilot.writes,
            wrote_late=prepared.apparatus.wrote_late,
        ),
        differences=prepared.differences,
        stopped=run.stopped,
        failed_trials=sum(len(block.failures) for block in run.blocks),
        blocks_run=len(run.blocks),
        wall_s=run.wall_s,
        client=f"pgbench {means.client.version} ({means.client.origin})",
        host=host,
        results=str(means.results),
    )
