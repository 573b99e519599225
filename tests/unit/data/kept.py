"""Cached snapshots, without a server."""

import os
from pathlib import Path

from pgversus.data.snapshot_cache import keep
from pgversus.data.snapshot_key import SnapshotKey
from pgversus.host.directories import Cache
from pgversus.postgres.catalog import ServerProperties, SettingValue, TableDigest
from pgversus.postgres.fingerprint import Fingerprint
from tests.builders import MYSELF

USER = MYSELF
FINGERPRINT = Fingerprint(
    tables={"public.t": TableDigest(rows=3, digest="abc")},
    indexes={"public.t_pkey": "CREATE INDEX"},
    settings={"work_mem": SettingValue(value="4MB", source="default", context="user")},
    properties=ServerProperties(
        version="PostgreSQL 17.8, compiled by gcc", encoding="UTF8", collation="C", has_jit=False, configuration={}
    ),
)


def cache_in(directory: Path) -> Cache:
    """An empty cache."""
    cache = Cache(root=directory / "cache")
    for path in (cache.snapshots, cache.runs, cache.builds, cache.staging):
        path.mkdir(parents=True)
    return cache


def recipe(scale: int = 1) -> SnapshotKey:
    """The key of a snapshot of pgbench's tables."""
    return SnapshotKey(
        form=1,
        version="17.8",
        origin="zonky",
        build_sha256="a",
        initdb_options=("--locale=C",),
        settings=(("fsync", "off"),),
        pgbench_scale=scale,
        pgbench="18.6",
        setup_sha256=(),
        prepare_sha256=(),
        variables=(),
        full_statistics=False,
    )


def made(directory: Path) -> Path:
    """Create the data of a run."""
    data = directory / "data"
    (data / "base").mkdir(parents=True)
    (data / "pg_notify").mkdir()
    (data / "PG_VERSION").write_text("17\n")
    (data / "base" / "1247").write_bytes(b"x" * 100)
    return data


def put(
    cache: Cache, data: Path, of: SnapshotKey | None = None, size_bytes: int = 1000, scratch: str = "scratch"
) -> bool:
    """Store data in the cache."""
    return keep(
        cache,
        of or recipe(),
        data,
        cache.runs / scratch,
        size_bytes=size_bytes,
        fingerprint=FINGERPRINT,
        has_prewarm=True,
    )


def kept(cache: Cache, of: SnapshotKey, size_bytes: int = 1000, last_used: float | None = None) -> Path:
    """Store a snapshot in the cache and remove its run."""
    directory = cache.runs / of.key
    assert put(cache, made(directory), of, size_bytes)
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()
    place = cache.snapshots / of.key
    if last_used is not None:
        os.utime(place / "snapshot.json", (last_used, last_used))
    return place
