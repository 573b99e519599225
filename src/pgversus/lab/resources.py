"""What one run works with: builds of every server, private directories, data that are kept from run to run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from pgversus.builds.model import Build
from pgversus.builds.provide import provide, using_builds
from pgversus.data.cache_quota import make_room, most_kept_bytes
from pgversus.data.loading import Loading
from pgversus.data.snapshots import SnapshotCache, Snapshots
from pgversus.engine.progress import Progress
from pgversus.host.directories import Cache, open_cache
from pgversus.host.guard import sweep
from pgversus.host.identity import ServerUser
from pgversus.host.run_directory import RunDirectory, run_directory
from pgversus.lab.arm_servers import common_settings
from pgversus.lab.resume_checks import as_measured_before, compilers_before
from pgversus.lab.runner import failures_of_the_host
from pgversus.lab.server_settings import ask_of, with_possible_settings
from pgversus.postgres.client import Client
from pgversus.postgres.settings_check import ask_program
from pgversus.store.reading import StoredStudy
from pgversus.study.needs import needs_of
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResources:
    """Made once for each run; everything in it is gone when the run is over, but for what the cache keeps."""

    study: Study
    """With the settings that its servers can have."""
    cache: Cache
    builds: Mapping[ServerName, Build | None]
    """None for a server that somebody else runs."""
    directory: RunDirectory
    kept: SnapshotCache

    @property
    def common_settings(self) -> dict[str, str]:
        """What every server of the run gets besides its arm's own settings, whichever of its studies it is in."""
        return common_settings(self.study)

    def snapshots(
        self,
        client: Client,
        progress: Progress,
        *,
        loaded_before: frozenset[ServerName] = frozenset(),
        note_loaded: Callable[[RunningServer], None] = lambda _: None,
    ) -> Snapshots:
        """Where the data of this run are made. loaded_before: running servers that hold the study's data already.

        note_loaded: takes each running server as soon as the study's data are on it.
        """
        return Snapshots(
            self.directory,
            Loading(self.directory, client),
            self.kept,
            self.common_settings,
            progress,
            loaded_before=loaded_before,
            note_loaded=note_loaded,
        )


@contextmanager
def open_resources(
    study: Study, user: ServerUser, progress: Progress, earlier: StoredStudy | None = None
) -> Iterator[RunResources]:
    """Fetch or build the servers of a study and make room for its data; PgversusError where that cannot be done.

    earlier: results that are gone on with; the builds are then those that they were measured with.
    """
    most_kept = most_kept_bytes()
    cache = open_cache()
    for name in sweep(cache.runs):
        progress.say(f"removed what the killed run {name} had left")
    make_room(needs_of(study), cache, progress.say)
    with failures_of_the_host(cache.root):
        builds = _provide(study, earlier, cache, user, progress)
    with ExitStack() as stack:
        with failures_of_the_host(cache.runs):
            stack.enter_context(using_builds(builds.values(), cache))
            directory = stack.enter_context(run_directory(cache, user))
            ask = partial(ask_program, user=user, directory=directory.settings_directory())
            study = with_possible_settings(study, ask_of(builds, ask))
        kept = SnapshotCache(cache, directory, progress, most_kept)
        # However the run ends; what starts servers later has stopped them by then.
        stack.callback(kept.trim)
        yield RunResources(study=study, cache=cache, builds=builds, directory=directory, kept=kept)


def _provide(
    study: Study, earlier: StoredStudy | None, cache: Cache, user: ServerUser, progress: Progress
) -> dict[ServerName, Build | None]:
    """A build for every server of the study, all at once, so that they come from one family; the ones of `earlier`."""
    names = study.servers
    meant = names if earlier is None else as_measured_before(names, earlier.facts)
    compilers = {} if earlier is None else compilers_before(names, meant, earlier.facts, cache)
    builds = provide(meant, study.build_manner, cache, user, progress.say, progress, compilers)
    return dict(zip(names, builds, strict=True))
