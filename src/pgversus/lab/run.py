"""One study, from names to blocks on disk: a comparison of two servers, or a matrix of thousands; or its plans alone.

Results of blocks are always read back from the results folder (answers/read.py), so that a report made years later
equals the one at the end of the run.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pgversus.answers.plans import PlansAnswer, compared
from pgversus.answers.read import state_so_far
from pgversus.data.cache_quota import free_up
from pgversus.engine.context_state import ContextState
from pgversus.engine.hosts import ThisHost
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_parts
from pgversus.host.counters import OtherLoad
from pgversus.host.directories import Cache, open_cache
from pgversus.host.facts import host_facts
from pgversus.host.identity import ServerUser
from pgversus.host.run_directory import RunDirectory
from pgversus.lab.acting_settings import session_settings
from pgversus.lab.attribution import Measure, attribute
from pgversus.lab.chosen_values import with_chosen_values, with_known_values
from pgversus.lab.confirmation import confirm
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.load_runner import ExplainArms
from pgversus.lab.plan_capture import Explainer, capture_or_reason, explained_counterfactual
from pgversus.lab.resources import StudyResources, open_resources
from pgversus.lab.results_writer import ResultsWriter, keep_server_logs
from pgversus.lab.resume import (
    EarlierResults,
    ResultsFolder,
    changed_servers,
    check_same_study,
    is_same_question,
    loaded_before,
    results_folder,
)
from pgversus.lab.resume_checks import (
    build_facts,
    changes_of_host,
    check_same_builds,
    check_same_client,
    check_same_host,
    client_facts,
)
from pgversus.lab.side_effects import executed_on, measure_side_effects
from pgversus.lab.testbed import PostgresTestbed
from pgversus.postgres.client import Client, check_encryption, check_login
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import uri_target
from pgversus.stats.confidence import check_precision
from pgversus.store.folder import NOT_ATTRIBUTED, holds_results
from pgversus.store.reading import StoredStudy, read_results
from pgversus.study.design import StopReason
from pgversus.study.needs import disk_bytes, parts_of
from pgversus.study.servers import RunningServer
from pgversus.study.study import Invocation, Study, StudyKind
from pgversus.text.redaction import without_secrets
from pgversus.text.units import percent


def measure(
    study: Study,
    shared: StudyResources,
    earlier: StoredStudy | None,
    writer: ResultsWriter,
    explain: ExplainArms | None,
) -> StopReason:
    """Measure a study to its end and store the results; return why it ended. All its servers are stopped on exit.

    earlier: results so far, which are resumed. explain: captures plans on each context's servers.
    """
    with ExitStack() as stack:
        testbed = PostgresTestbed(study, shared, stack, explain)
        states = _states(study, earlier)
        stopped = run_parts(
            _parts(study, states),
            ThisHost(testbed, time.monotonic, shared.progress),
            begin_part=partial(_begin_part, testbed=testbed, cache=shared.resources.cache, progress=shared.progress),
            seed=study.seed,
            budget_s=study.budget_s,
            progress=shared.progress,
            keep=writer.keep,
            keep_preparation=writer.keep_preparation,
        )
        writer.end(stopped, states)
        return stopped


def _states(study: Study, earlier: StoredStudy | None) -> list[ContextState]:
    """Return the current state of every context."""
    if earlier is None:
        return [ContextState(context, study.verdicts) for context in study.contexts]
    return [
        state_so_far(context, stored, study.verdicts, study.budget_s)
        for context, stored in zip(study.contexts, earlier.contexts, strict=True)
    ]


def _parts(study: Study, states: Sequence[ContextState]) -> list[list[ContextState]]:
    by_number = {state.context.number: state for state in states}
    return [[by_number[context.number] for context in part] for part in parts_of(study.contexts)]


def _begin_part(part: Sequence[ContextState], testbed: PostgresTestbed, cache: Cache, progress: Progress) -> None:
    """Remove the data of earlier parts, and as much of the cache as this part needs disk space."""
    contexts = [state.context for state in part]
    there = testbed.keep_only(contexts)
    free_up(disk_bytes(contexts) - there, cache, progress.say)


_BUSY = 0.25
# A multiple of the shares from which a single window counts as disturbed.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run."""

    user: ServerUser
    client: Client
    results: Path
    earlier: EarlierResults
    """Treatment of results that already exist in that folder."""
    keep_logs: bool
    """Whether pgbench's transaction logs are stored with the results."""
    plans: bool
    """Whether to capture plans and measure what plan changes account for."""
    sample_plans: bool
    """Whether to run the load again with auto_explain, to check that its plans are the captured ones."""
    check_rows: bool
    """Whether to compare the rows that statements return on each arm before measuring."""
    command: str = ""
    """The command line without secrets; empty when called from a program."""


def run_study(study: Study, options: RunOptions, progress: Progress) -> StopReason:
    """Fetch, load, measure and store; return why it ended. Everything started is stopped and removed on exit.

    PgversusError of any kind if the run cannot begin; once blocks run, failures and Ctrl-C become part of the results.
    """
    with results_folder(options.results, options.earlier) as folder:
        return _run(study, options, folder, progress)


def _run(study: Study, options: RunOptions, folder: ResultsFolder, progress: Progress) -> StopReason:
    earlier, other_load = folder.earlier, OtherLoad.now()
    host = host_facts(open_cache().runs)
    client = client_facts(options.client)
    if earlier is not None:
        study = with_known_values(study, earlier)
        # Before anything is fetched.
        _check_what_is_known(earlier, study, host, client, options.results)
        for line in changes_of_host(earlier.facts, host):
            progress.say(line)
    _check_client(study, options.client)
    with open_resources(study, options.user, progress, earlier) as resources, ExitStack() as stack:
        study, snapshots = with_chosen_values(resources, options.client, progress, is_new=earlier is None)
        for context in study.contexts:
            check_precision(context.comparison.design, study.verdicts)
        _say_if_busy(other_load.share_since(), progress)
        facts = {
            "host": host,
            "client": client,
            "builds": build_facts(resources.builds),
            "asked": asdict(_invocation(study, options)),
        }
        if earlier is not None:
            check_same_builds(earlier.facts, facts["builds"], options.results)
            check_same_study(earlier, study, options.results)
        for one in study.skipped:
            progress.say(f"skipped: {one.label} ({one.reason})")
        stack.callback(_keep_server_logs, resources.directory, folder, options.results)
        begin = partial(_move_away, folder, progress)
        writer = ResultsWriter(study, options.results, folder.earlier, facts, begin=begin, stack=stack)
        # A comparison that cannot be resumed leaves nothing behind if it fails before its first block.
        note_loaded = (lambda _: None) if options.earlier is EarlierResults.REFUSE else writer.keep_loaded
        before = frozenset() if earlier is None else loaded_before(earlier, study)
        explainer = Explainer(
            client=options.client,
            scratch=resources.directory.root / "statements",
            with_rows=options.check_rows or study.kind is StudyKind.UPGRADE_CHECK,
            samples=options.sample_plans,
            progress=progress,
        )
        explain = partial(capture_or_reason, explainer) if options.plans else None
        shared = StudyResources(
            resources=resources,
            client=options.client,
            snapshots=snapshots
            or resources.snapshots(options.client, progress, loaded_before=before, note_loaded=note_loaded),
            changed_servers=frozenset() if earlier is None else changed_servers(earlier, study),
            kept_logs=options.results / "transaction-logs" if options.keep_logs else None,
            progress=progress,
        )
        stopped = measure(study, shared, folder.earlier, writer, explain)
        if stopped is StopReason.INTERRUPTED:
            return stopped
        return _follow_up(study, options, shared, writer, facts, explainer) or stopped


def _follow_up(
    study: Study,
    options: RunOptions,
    shared: StudyResources,
    writer: ResultsWriter,
    facts: Mapping[str, Any],
    explainer: Explainer,
) -> StopReason | None:
    """Measure what follows from the verdicts; return why a confirmation or what follows it ended, None without one."""
    measure_plans = None
    if options.plans:
        explain_old = partial(explained_counterfactual, explainer)
        beneath = _beneath(shared, "attribution-")
        measure_plans = partial(_measure_beneath, shared=beneath, facts=facts, explain=explain_old)
    if study.kind is not StudyKind.UPGRADE_CHECK:
        if measure_plans is not None:
            writer.keep_fact(NOT_ATTRIBUTED, attribute(study, options.results, measure_plans, shared.progress))
        return None
    others = cache(partial(executed_on, options.results))
    explain = partial(capture_or_reason, replace(explainer, others=others)) if options.plans else None
    beneath = _beneath(shared, "confirmation-")
    again = partial(_measure_beneath, shared=beneath, facts=facts, explain=explain, measure_plans=measure_plans)
    stopped = confirm(study, options.results, again, shared.progress)
    if stopped is StopReason.INTERRUPTED:
        return stopped
    alone = partial(_measure_beneath, shared=_beneath(shared, "side-effects-"), facts=facts)
    return measure_side_effects(study, options.results, alone, shared.progress) or stopped


def _beneath(shared: StudyResources, log_prefix: str) -> StudyResources:
    """Return the resources for a study whose results lie beneath those of another. log_prefix: of its servers' logs."""
    directory = replace(shared.resources.directory, log_prefix=log_prefix)
    return replace(shared, resources=replace(shared.resources, directory=directory), kept_logs=None)


def _say_if_busy(others_share: float, progress: Progress) -> None:
    """Say so before anything is measured if others keep the host too busy; the user decides whether to continue."""
    if others_share > _BUSY:
        progress.say(
            f"warning: this host is busy: other programs or guests use {percent(others_share)} of its CPU time. "
            "Verdicts may take much longer or remain undecided. Press Ctrl-C to end the run"
        )


def _invocation(study: Study, options: RunOptions) -> Invocation:
    return Invocation(
        program=f"pgversus {version('pgversus')}",
        command=options.command,
        file_name=study.file_name,
        file_text=without_secrets(study.file_text),
    )


def _measure_beneath(
    study: Study,
    results: Path,
    *,
    shared: StudyResources,
    facts: Mapping[str, Any],
    explain: ExplainArms | None = None,
    measure_plans: Measure | None = None,
) -> StopReason:
    """Resume existing results, unless they belong to a different question, such as a different rewrite.

    measure_plans: measures what plan changes account for; None to skip this.
    """
    is_other = holds_results(results) and not is_same_question(read_results(results), study)
    earlier = EarlierResults.MOVE_AWAY if is_other else EarlierResults.RESUME
    with results_folder(results, earlier) as folder, ExitStack() as stack:
        begin = partial(_move_away, folder, shared.progress)
        writer = ResultsWriter(study, results, folder.earlier, facts, begin=begin, stack=stack)
        stopped = measure(study, shared, folder.earlier, writer, explain)
        if measure_plans is not None and stopped is not StopReason.INTERRUPTED:
            writer.keep_fact(NOT_ATTRIBUTED, attribute(study, results, measure_plans, shared.progress))
        return stopped


def _move_away(folder: ResultsFolder, progress: Progress) -> None:
    if aside := folder.begin():
        progress.say(f"the earlier results are now in {aside}")


def _keep_server_logs(directory: RunDirectory, folder: ResultsFolder, results: Path) -> None:
    if folder.is_ours:
        keep_server_logs(directory, results)


def _check_what_is_known(
    earlier: StoredStudy, study: Study, host: Mapping[str, Any], client: Mapping[str, Any], folder: Path
) -> None:
    """Refuse everything that can be refused without the servers."""
    if not study.skips_missing_settings:
        # Otherwise only its servers determine what is left of the study.
        check_same_study(earlier, study, folder)
    check_same_client(earlier.facts, client, folder)
    check_same_host(earlier.facts, host, folder)


def _check_client(study: Study, client: Client) -> None:
    """An external server may require more than the client supports, or reject the user that it runs as."""
    arms = [arm for context in study.contexts for arm in context.comparison.arms]
    with_files = {arm.server for arm in arms if arm.dataset.setup_files}
    for server in study.servers:
        if isinstance(server, RunningServer):
            target, label = uri_target(server.uri, ()), label_of_running(server)
            check_encryption(client, target, label, runs_psql=server in with_files)
            check_login(client, target, label)


def compare_plans(study: Study, user: ServerUser, client: Client, progress: Progress) -> PlansAnswer:
    """Compare the plans of a comparison's workload on each arm with the baseline's; leave nothing behind.

    study: with one context. PgversusError of any kind if its servers cannot be provided, loaded or queried.
    """
    with open_resources(study, user, progress) as resources, ExitStack() as stack:
        snapshots = resources.snapshots(client, progress)
        shared = StudyResources(resources=resources, client=client, snapshots=snapshots, progress=progress)
        testbed = PostgresTestbed(resources.study, shared, stack)
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
            block_bytes = [int(session_settings(server)["block_size"].value) for server in servers]
    return compared(context.comparison.arms, plans, block_bytes)
