"""One study, from names to blocks on disk: a comparison of two servers, or a matrix of thousands.

What was measured is read back from the results folder (lab/answers.py), so that a report made years later says what was
said at the end of the run.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pgversus.host.directories import Cache, open_cache
from pgversus.host.facts import host_facts
from pgversus.host.identity import ServerUser
from pgversus.host.leftovers import sweep
from pgversus.lab.course import Course
from pgversus.lab.data.cache_room import most_kept_bytes
from pgversus.lab.data.room import free_up, make_room
from pgversus.lab.data.snapshot_shelf import SnapshotShelf
from pgversus.lab.engine import run_parts
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.keeping import Keeper, keep_server_logs
from pgversus.lab.measuring.postgres_apparatus import clock
from pgversus.lab.progress import Progress
from pgversus.lab.results_folder import EarlierResults, HeldFolder, results_folder
from pgversus.lab.resuming import check_same_study, course_so_far, loaded_before, worn_before
from pgversus.lab.run_directory import RunDirectory, run_directory
from pgversus.lab.same_means import (
    as_measured_before,
    build_facts,
    changes_of_host,
    check_same_builds,
    check_same_client,
    check_same_host,
    client_facts,
    compilers_before,
)
from pgversus.lab.settings_check import ask_of, with_possible_settings
from pgversus.lab.site import PostgresSite
from pgversus.postgres.builds.in_cache import using_builds
from pgversus.postgres.builds.model import Build
from pgversus.postgres.builds.provide import provide
from pgversus.postgres.client import Client, refuse_unencrypted
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import uri_target
from pgversus.postgres.settings_check import ask_program
from pgversus.store.reading import StoredStudy
from pgversus.study.design import StopReason
from pgversus.study.disk import disk_bytes
from pgversus.study.needs import needs_of
from pgversus.study.parts import parts_of
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a study is carried out with."""

    user: ServerUser
    client: Client
    results: Path
    earlier: EarlierResults
    """What is done with results that are in that folder already."""
    keep_logs: bool = False
    """Whether pgbench's transaction logs are kept among the results."""


def run_study(study: Study, means: Means, progress: Progress) -> StopReason:
    """Fetch, load, measure, keep; why it ended. Everything started is stopped and removed when this returns or raises.

    PgversusError of any kind when it cannot be begun; once blocks run, failures and Ctrl-C become part of the results.
    """
    with results_folder(means.results, means.earlier) as folder:
        return _run(study, means, folder, progress)


def _run(study: Study, means: Means, folder: HeldFolder, progress: Progress) -> StopReason:
    earlier = folder.earlier
    most_kept = most_kept_bytes()
    cache = open_cache()
    facts: dict[str, Any] = {"host": host_facts(cache.runs), "client": client_facts(means.client)}
    facts["budget_s"] = study.budget_s
    if earlier is not None:
        # Before anything is fetched.
        _check_what_is_known(earlier, study, facts, means.results)
        for line in changes_of_host(earlier.facts, facts["host"]):
            progress.say(line)
    _check_client(study, means.client)
    for name in sweep(cache.runs):
        progress.say(f"removed what the killed run {name} had left")
    make_room(needs_of(study), cache, progress.say)
    with failures_of_the_host(cache.root):
        builds = _provide(study, earlier, cache, means, progress)
    facts["builds"] = build_facts(builds)
    if earlier is not None:
        check_same_builds(earlier.facts, facts["builds"], means.results)
    with ExitStack() as stack:
        with failures_of_the_host(cache.runs):
            stack.enter_context(using_builds(builds.values(), cache))
            directory = stack.enter_context(run_directory(cache, means.user))
            ask = partial(ask_program, user=means.user, directory=directory.settings_directory())
            study = with_possible_settings(study, ask_of(builds, ask))
        for one in study.skipped:
            progress.say(f"left out: {one.label} ({one.reason})")
        if earlier is not None:
            check_same_study(earlier, study, means.results)
        stack.callback(_keep_server_logs, directory, folder, means.results)
        begin = partial(_put_aside, folder, progress)
        keeper = Keeper(study, means.results, earlier, facts, begin=begin, stack=stack)
        shelf = SnapshotShelf(cache, directory, progress, most_kept)
        # However the run ends; registered before the site, so that its servers are stopped by then.
        stack.callback(shelf.trim)
        site = PostgresSite(
            study,
            builds,
            directory,
            client=means.client,
            shelf=shelf,
            progress=progress,
            stack=stack,
            kept_logs=means.results / "transaction-logs" if means.keep_logs else None,
            loaded_before=loaded_before(earlier, study) if earlier is not None else frozenset(),
            worn_before=worn_before(earlier, study) if earlier is not None else frozenset(),
            # A comparison that is never gone on with leaves nothing behind when it fails before its first block.
            note_loaded=(lambda _: None) if means.earlier is EarlierResults.REFUSE else keeper.keep_loaded,
        )
        courses = _courses(study, earlier)
        stopped = run_parts(
            _parts(study, courses),
            site,
            begin_part=partial(_begin_part, site=site, cache=cache, progress=progress),
            seed=study.seed,
            budget_s=study.budget_s,
            clock=clock,
            progress=progress,
            keep=keeper.keep,
            keep_preparation=keeper.keep_preparation,
        )
        keeper.end(stopped, courses)
        return stopped


def _put_aside(folder: HeldFolder, progress: Progress) -> None:
    if aside := folder.begin():
        progress.say(f"the earlier results are in {aside} now")


def _keep_server_logs(directory: RunDirectory, folder: HeldFolder, results: Path) -> None:
    if folder.is_ours:
        keep_server_logs(directory, results)


def _check_what_is_known(earlier: StoredStudy, study: Study, facts: Mapping[str, Any], folder: Path) -> None:
    """Everything that can be refused without the servers."""
    if not study.skips_missing_settings:
        # Else only its servers know what is left of the study.
        check_same_study(earlier, study, folder)
    check_same_client(earlier.facts, facts["client"], folder)
    check_same_host(earlier.facts, facts["host"], folder)


def _check_client(study: Study, client: Client) -> None:
    """Servers of somebody else may ask for more than the client can."""
    arms = [arm for context in study.contexts for arm in context.comparison.arms]
    with_files = {arm.server for arm in arms if arm.dataset.setup_files}
    for server in study.servers:
        if isinstance(server, RunningServer):
            target = uri_target(server.uri, ())
            refuse_unencrypted(client, target, label_of_running(server), runs_psql=server in with_files)


def _courses(study: Study, earlier: StoredStudy | None) -> list[Course]:
    """Every context as far as it has come."""
    if earlier is None:
        return [Course(context, study.verdicts) for context in study.contexts]
    return [
        course_so_far(context, stored, study.verdicts, study.budget_s)
        for context, stored in zip(study.contexts, earlier.contexts, strict=True)
    ]


def _parts(study: Study, courses: Sequence[Course]) -> list[list[Course]]:
    by_number = {course.context.number: course for course in courses}
    return [[by_number[context.number] for context in part] for part in parts_of(study.contexts)]


def _begin_part(part: Sequence[Course], site: PostgresSite, cache: Cache, progress: Progress) -> None:
    """Data of earlier parts go, and as much of what is kept for later runs as this one needs the room of."""
    contexts = [course.context for course in part]
    there = site.keep_only(contexts)
    free_up(disk_bytes(contexts) - there, cache, progress.say)


def _provide(
    study: Study, earlier: StoredStudy | None, cache: Cache, means: Means, progress: Progress
) -> dict[ServerName, Build | None]:
    """A build for every server of the study, all at once, so that they come from one family; the ones of `earlier`."""
    names = study.servers
    meant = names if earlier is None else as_measured_before(names, earlier.facts)
    compilers = {} if earlier is None else compilers_before(names, meant, earlier.facts, cache)
    builds = provide(meant, study.build_manner, cache, means.user, progress.say, progress, compilers)
    return dict(zip(names, builds, strict=True))
