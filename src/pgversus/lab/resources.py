"""Resources of one run: builds of every server, private directories, cached data."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pgversus.builds.model import Build
from pgversus.builds.provide import provide, using_builds
from pgversus.data.cache_quota import free_space_for, most_kept_bytes
from pgversus.data.loading import Loading
from pgversus.data.snapshots import SnapshotCache, Snapshots
from pgversus.engine.progress import Progress
from pgversus.host.directories import Cache, open_cache
from pgversus.host.guard import sweep
from pgversus.host.identity import ServerUser
from pgversus.host.run_directory import RunDirectory, run_directory
from pgversus.lab.arm_servers import common_settings
from pgversus.lab.failures import failures_of_the_host
from pgversus.lab.load_hosts import LoadHosts
from pgversus.lab.resume_checks import as_measured_before, compilers_before
from pgversus.lab.server_settings import Ask, ask_of, with_possible_settings
from pgversus.postgres.client import Client
from pgversus.postgres.settings_check import ask_program
from pgversus.study.needs import needs_of
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResources:
    """Created once for each run; everything except the cache is removed at its end."""

    study: Study
    """With the settings that its servers support."""
    cache: Cache
    builds: Mapping[ServerName, Build | None]
    """None for an external server."""
    ask: Ask
    """Answers whether a server accepts a setting, and with which value."""
    directory: RunDirectory
    kept: SnapshotCache

    @property
    def common_settings(self) -> dict[str, str]:
        """Settings that every server of the run needs besides its arm's own, in all of its studies."""
        return common_settings(self.study)

    def snapshots(
        self,
        client: Client,
        progress: Progress,
        *,
        loaded_before: frozenset[ServerName] = frozenset(),
        note_loaded: Callable[[RunningServer], None] = lambda _: None,
    ) -> Snapshots:
        """Return the snapshots of this run. loaded_before: external servers that already hold the study's data.

        note_loaded: called with each external server as soon as it holds the study's data.
        """
        return Snapshots(
            self.directory,
            Loading(self.directory, client, self.builds.values(), _names_of_settings(self.study)),
            self.kept,
            self.common_settings,
            progress,
            loaded_before=loaded_before,
            note_loaded=note_loaded,
        )


def _names_of_settings(study: Study) -> frozenset[str]:
    arms = (arm for context in study.contexts for arm in context.comparison.arms)
    return frozenset(setting.name.lower() for arm in arms for setting in arm.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResources:
    """Resources shared by all studies that are measured one after the other in one run."""

    resources: RunResources
    client: Client
    snapshots: Snapshots
    changed_servers: frozenset[ServerName] = frozenset()
    """External servers whose data this study's loads have changed since loading, or may have changed. These data
    differ from the loaded data and from each other."""
    kept_logs: Path | None = None
    """Directory for transaction logs; None to discard them."""
    load_hosts: LoadHosts | None = None
    """Hosts that send the load; None if this host sends it."""
    progress: Progress


@contextmanager
def open_resources(
    study: Study, user: ServerUser, progress: Progress, before: Mapping[str, Any] | None = None
) -> Iterator[RunResources]:
    """Fetch or build the servers of a study and free disk space for its data; raise PgversusError on failure.

    before: facts of results to resume; uses the builds that they were measured with.
    """
    most_kept = most_kept_bytes()
    cache = open_cache()
    for name in sweep(cache.runs):
        progress.say(f"removed the files of the killed run {name}")
    free_space_for(needs_of(study), cache, progress.say)
    with failures_of_the_host(cache.root):
        builds = _provide(study, before, cache, user, progress)
    with ExitStack() as stack:
        with failures_of_the_host(cache.runs):
            stack.enter_context(using_builds(builds.values(), cache))
            directory = stack.enter_context(run_directory(cache, user))
            program = partial(ask_program, user=user, directory=directory.settings_directory())
            ask = ask_of(builds, program)
            study = with_possible_settings(study, ask)
        kept = SnapshotCache(cache, directory, progress, most_kept)
        # Trim however the run ends; by then all servers have been stopped.
        stack.callback(kept.trim)
        yield RunResources(study=study, cache=cache, builds=builds, ask=ask, directory=directory, kept=kept)


def _provide(
    study: Study, before: Mapping[str, Any] | None, cache: Cache, user: ServerUser, progress: Progress
) -> dict[ServerName, Build | None]:
    """Provide the builds of all servers together, so that they come from one family; use those of `before` if given."""
    names = study.servers
    meant = names if before is None else as_measured_before(names, before)
    compilers = {} if before is None else compilers_before(names, meant, before, cache)
    builds = provide(meant, study.build_manner, cache, user, progress, compilers)
    return dict(zip(names, builds, strict=True))
