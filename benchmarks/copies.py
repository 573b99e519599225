"""Measure the time of loading data, copying it, storing it in the cache and taking it from there: `make bench-copies`.

The actions run in turn on pgbench's tables at scale 50; the table shows the minimum of three runs. Loading consists of
initdb, pgbench -i, VACUUM ANALYZE and a clean stop, without the hashing of all rows, which a run does once. Loading,
copying and storing all end with the data on disk.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from pgversus.builds.model import Build
from pgversus.builds.provide import provide
from pgversus.data.loading import LOADING_SETTINGS, LoadedCluster, Loading
from pgversus.data.snapshot_key import SnapshotKey, snapshot_key
from pgversus.data.snapshots import SnapshotCache
from pgversus.engine.progress import Progress
from pgversus.host.commands import run
from pgversus.host.directories import Cache, make_directory, open_cache
from pgversus.host.files import tree_bytes, way_of_copying
from pgversus.host.identity import server_user
from pgversus.host.run_directory import RunDirectory, run_directory
from pgversus.postgres.catalog import ServerProperties
from pgversus.postgres.client import fixed_client
from pgversus.postgres.cluster import Cluster, copy_cluster, make_cluster
from pgversus.postgres.fingerprint import Fingerprint
from pgversus.postgres.server import Server
from pgversus.study.build_options import USUAL_MANNER
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset
from pgversus.study.servers import parse_server
from pgversus.study.workload import PgbenchWorkload

SERVER, SCALE, REPEATS = "17.8", 50, 3
BOUND = 0.2
# Upper limit for the time of a copy, as a share of the time of loading.

NOTHING = Fingerprint(
    tables={},
    indexes={},
    settings={},
    properties=ServerProperties(version="", encoding="", collation="", has_jit=False, configuration={}),
)
# The benchmark does not compare fingerprints.

T = TypeVar("T")


def main() -> int:
    """Print the table; return 1 if a copy takes too long."""
    user = server_user()
    (build,) = provide([parse_server(SERVER)], USUAL_MANNER, open_cache(), user, Progress())
    assert build is not None
    # On the file system of real runs; removed at the end.
    with tempfile.TemporaryDirectory(prefix="bench-copies-", dir=open_cache().root) as name:
        Path(name).chmod(0o755)
        cache = Cache(root=Path(name))
        make_directory(cache.runs, 0o755)
        with run_directory(cache, user) as directory:
            return _measure(build, cache, directory)


def _measure(build: Build, cache: Cache, directory: RunDirectory) -> int:
    loading = Loading(directory, fixed_client(directory.user))
    kept = SnapshotCache(cache, directory, Progress(), 10**12)
    dataset = Dataset(pgbench_scale=SCALE)
    arm = Arm(
        index=0,
        label=SERVER,
        server=parse_server(SERVER),
        settings=(),
        workload=PgbenchWorkload(scripts=()),
        dataset=dataset,
    )
    recipe = snapshot_key(dataset, build, loading.client, LOADING_SETTINGS)
    assert recipe is not None
    times: dict[str, list[float]] = {"load": [], "copy": [], "keep": [], "take": []}
    size = 0
    for _ in range(REPEATS):
        home, copy, taken = (directory.root / name for name in ("snapshot-1", "copy", "taken"))
        cluster, seconds = _timed(partial(_load, loading, build, home, arm))
        times["load"].append(seconds)
        times["copy"].append(_timed(partial(copy_cluster, cluster, copy))[1])
        loaded = LoadedCluster(cluster=cluster, fingerprint=NOTHING, has_prewarm=True)
        times["keep"].append(_timed(partial(kept.keep, recipe, loaded))[1])
        times["take"].append(_timed(partial(_take, kept, recipe, taken, build))[1])
        size = tree_bytes(cluster.data_directory)
        for path in (home, copy, taken, cache.snapshots / recipe.key):
            shutil.rmtree(path)
    return _print(times, size, way_of_copying(directory.root))


def _load(loading: Loading, build: Build, home: Path, arm: Arm) -> Cluster:
    directory = loading.directory
    cluster = make_cluster(build, home, directory.user)
    server = Server(cluster, directory.socket_directory(0), directory.server_log(0), LOADING_SETTINGS)
    server.start()
    try:
        loading.load_into(server.target, arm)
    finally:
        server.stop()
    run(["sync", "--file-system", str(home)])
    return cluster


def _take(kept: SnapshotCache, recipe: SnapshotKey, taken: Path, build: Build) -> None:
    assert kept.take(recipe, taken, build) is not None


def _timed(action: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = action()
    return result, time.perf_counter() - began


def _print(times: dict[str, list[float]], size: int, way: str) -> int:
    least = {name: min(seconds) for name, seconds in times.items()}
    print(f"scale {SCALE} on {SERVER}: {size / 1e6:.0f} MB; method of copying: {way}; minimum of {REPEATS}, in turn")
    for name, seconds in least.items():
        print(f"{name:<6}{seconds:>8.2f} s   {seconds / least['load']:>6.3f} of loading")
    return int(least["copy"] > BOUND * least["load"])


if __name__ == "__main__":
    sys.exit(main())
