"""Dry runs, which show what a study would do on this host, and the refusal of a study that does not fit."""

import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from pgversus.builds.provide import AvailableBuilds, available_builds
from pgversus.data.cache_quota import check_room
from pgversus.errors import StudyError
from pgversus.host.directories import Cache, open_cache
from pgversus.host.identity import ServerUser
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.resume import EarlierResults, check_same_study
from pgversus.lab.resume_checks import as_measured_before, compilers_before
from pgversus.lab.server_settings import TargetOf, ask_of, with_possible_settings
from pgversus.lab.testbed import check_context
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import uri_target
from pgversus.postgres.settings_check import accepts_sessions, ask_program
from pgversus.records.dry_run import DryRun
from pgversus.stats.confidence import check_precision
from pgversus.store.folder import check_folder, holds_results
from pgversus.store.reading import StoredStudy, read_results
from pgversus.study.needs import needs_of
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study


def dry_run(
    study: Study,
    results: Path,
    user: ServerUser,
    *,
    earlier_results: EarlierResults = EarlierResults.RESUME,
    asks_servers: bool = False,
    is_trusted: bool = False,
) -> DryRun:
    """Return what running this study would do; raise PgversusError if it would certainly be refused.

    With several contexts, a refused one raises no error, because the run measures the others. Lack of disk space raises
    none either, because the needs must be shown first. Without asks_servers, it neither runs programs nor connects
    to servers that the study names; only builds in the cache are queried.

    earlier_results: what the run would do with results that exist.
    asks_servers: whether servers that the study names are queried for versions and settings.
    is_trusted: whether the user has consented to the study, so that its servers may get passwords from the environment.
    """
    cache = open_cache()
    check_folder(results, may_hold_results=earlier_results is not EarlierResults.REFUSE)
    resumes = earlier_results is EarlierResults.RESUME and holds_results(results)
    earlier = read_results(results) if resumes else None
    here = _builds_here(study, earlier, cache, user, asks_servers=asks_servers)
    target_of = partial(uri_target, uses_environment=is_trusted) if asks_servers else None
    possible = _with_possible_settings(study, here, user, target_of)
    for context in possible.contexts:
        check_precision(context.comparison.design, possible.verdicts)
    running = [server for server in study.servers if isinstance(server, RunningServer)]
    not_queried = (*here.not_inspected, *([] if asks_servers else map(label_of_running, running)))
    unreachable = [one for one in running if target_of is not None and not accepts_sessions(target_of(one.uri, ()))]
    if earlier is not None and not (study.skips_missing_settings and (here.downloads or here.to_build or not_queried)):
        # Otherwise it depends on servers that are not available yet which parts of the study remain.
        check_same_study(earlier, possible, results)
    return DryRun(
        study=possible,
        refused=_refused(possible),
        needs=needs_of(possible),
        versions={name: f"{build.version}, {build.origin}" for name, build in here.builds.items() if build is not None},
        downloads=here.downloads,
        to_build=here.to_build,
        not_queried=not_queried,
        unreachable=tuple(map(label_of_running, unreachable)),
        free_bytes=shutil.disk_usage(cache.runs).free,
        blocks_there=sum(len(one.blocks) for one in earlier.contexts) if earlier is not None else 0,
        results=str(results),
    )


def _refused(study: Study) -> tuple[str, ...]:
    """Return the contexts that the run would skip, with the reasons; raise the error of an only context."""
    found = []
    for context in study.contexts:
        try:
            check_context(context)
        except StudyError as error:
            if len(study.contexts) == 1:
                raise
            found.append(f"{context.label}: {error.summary}")
    return tuple(found)


def check_disk_space(found: DryRun) -> None:
    """Raise HostError if a dry run found that the study does not fit on this host."""
    check_room(found.needs, open_cache())


def _builds_here(
    study: Study, earlier: StoredStudy | None, cache: Cache, user: ServerUser, *, asks_servers: bool
) -> AvailableBuilds:
    names = study.servers
    meant = names if earlier is None else as_measured_before(names, earlier.facts)
    with failures_of_the_host(cache.root):
        compilers = {} if earlier is None else compilers_before(names, meant, earlier.facts, cache)
        here = available_builds(meant, study.build_manner, cache, user, compilers, asks_named=asks_servers)
    return replace(here, builds={name: here.builds[same] for name, same in zip(names, meant, strict=True)})


def _with_possible_settings(study: Study, here: AvailableBuilds, user: ServerUser, target_of: TargetOf | None) -> Study:
    """Query the servers that are available here; each processor checks 30 to 70 levels per second."""
    with tempfile.TemporaryDirectory(prefix="pgversus-") as name:
        directory = Path(name)
        # The servers' user must be able to enter it.
        directory.chmod(0o755)
        ask = partial(ask_program, user=user, directory=directory)
        return with_possible_settings(study, ask_of(here.builds, ask, target_of))
