"""What a run takes from the cache of snapshots and puts there; that it cannot never ends a run."""

from pathlib import Path

from pgversus.builds.model import Build
from pgversus.errors import PgversusError
from pgversus.host.directories import Cache
from pgversus.host.full_disk import is_full
from pgversus.host.run_directory import RunDirectory
from pgversus.lab.data.cache_room import make_room_for
from pgversus.lab.data.loading import LoadedCluster
from pgversus.lab.data.recipes import Recipe
from pgversus.lab.data.snapshot_cache import keep, take
from pgversus.lab.progress import Progress
from pgversus.postgres.cluster import Cluster, data_bytes
from pgversus.text.units import size


class SnapshotShelf:
    """The cache of snapshots, as one run uses it."""

    def __init__(self, cache: Cache, directory: RunDirectory, progress: Progress, most_bytes: int) -> None:
        """most_bytes: that all kept snapshots may weigh together."""
        self._cache = cache
        self._directory = directory
        self._progress = progress
        self._most_bytes = most_bytes

    def take(self, recipe: Recipe, home: Path, build: Build) -> LoadedCluster | None:
        """The snapshot that an earlier run has made in the same way, in `home`, which is made; None if there is none.

        HostError when there is one and it cannot be taken.
        """
        record = take(self._cache, recipe, home, self._progress.say)
        if record is None:
            return None
        cluster = Cluster(build=build, data_directory=home / "data", user=self._directory.user)
        return LoadedCluster(cluster=cluster, fingerprint=record.fingerprint, has_prewarm=record.has_prewarm)

    def keep(self, recipe: Recipe, made: LoadedCluster) -> None:
        """Keep a new snapshot for later runs, where there is room for it."""
        if self._most_bytes == 0:
            # As it was asked for.
            return
        data = made.cluster.data_directory
        needed = data_bytes(made.cluster)
        try:
            if not make_room_for(needed, self._cache, self._most_bytes):
                self._say_not_kept(f"the cache may not grow by {size(needed)}")
                return
            # False where another run was quicker: then there is one.
            keep(
                self._cache,
                recipe,
                data,
                self._directory.root / "to-be-kept",
                size_bytes=needed,
                fingerprint=made.fingerprint,
                has_prewarm=made.has_prewarm,
            )
        except (OSError, ValueError, PgversusError) as error:
            self._say_not_kept(_words(error))

    def trim(self) -> None:
        """Take out what is more than may be kept: it may be less than when the snapshots were made."""
        try:
            make_room_for(0, self._cache, self._most_bytes)
        except OSError as error:
            self._progress.say(f"kept snapshots could not be removed: {error.strerror or error}")

    def _say_not_kept(self, reason: str) -> None:
        self._progress.say(f"these data are not kept for later runs: {reason}")


def _words(error: OSError | ValueError | PgversusError) -> str:
    if isinstance(error, PgversusError):
        return f"{error.what} ({error.found})"
    if isinstance(error, OSError) and is_full(error):
        return "the disk is full"
    return str(error)
