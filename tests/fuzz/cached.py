"""Files of the cache: manifests of builds, records of tarballs and loaded data, lists of versions."""

import json
from dataclasses import asdict
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from pgversus.builds.compile import built
from pgversus.builds.inspect import read_manifest
from pgversus.builds.model import MANIFEST, BuildInputs, SourceFacts
from pgversus.builds.ready_made import offers, resolve
from pgversus.builds.tarballs import stored_source
from pgversus.data.snapshot_cache import SnapshotRecord, cached_snapshots
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.study.build_options import USUAL_MANNER, BuildOptions
from pgversus.study.servers import BuildFamily, Release
from tests.fuzz.mutations import changed_document
from tests.fuzz.program import exit_code_of
from tests.fuzz.target import Target
from tests.fuzz.watching import Effects, StoppedError
from tests.unit.data.kept import FINGERPRINT, recipe

_MADE = BuildInputs(
    source=SourceFacts(
        words="commit 0a1b of ./postgres",
        sha256="0" * 64,
        checked="a.sha256",
        repository="/src/postgres",
        commit="0a1b" * 10,
    ),
    options=BuildOptions(block_size_kb=16, cflags="-O3", cassert=True),
    manner=USUAL_MANNER,
    compiler="gcc (Debian 14.2.0) 14.2.0",
)
_BUILD = {
    "version": "17.8",
    "bin": "usr/bin",
    "sha256": "0" * 64,
    "files_sha256": {"usr/bin/postgres": "0" * 64, "usr/lib/libpq.so": "1" * 64},
}
_RECORD = SnapshotRecord(
    made_of=recipe(),
    size_bytes=8192,
    has_prewarm=True,
    fingerprint=FINGERPRINT,
    files=(),
)
_TARBALL = "0123456789ab-postgresql-17.8.tar.bz2"
_LIST = {"fetched_at": 4e9, "versions": [[16, 12], [17, 8], [17, 7], [18, 0]]}
_FILES = {
    f"builds/zonky-17.8/{MANIFEST}": json.dumps(_BUILD),
    f"builds/source-0123456789ab/{MANIFEST}": json.dumps({**_BUILD, "made_from": asdict(_MADE)}),
    "snapshots/0123456789abcdef/snapshot.json": TypeAdapter(SnapshotRecord).dump_json(_RECORD).decode(),
    f"sources/{_TARBALL}.json": json.dumps({"sha256": "0" * 64, "checked": "the index that was signed"}),
}
_RELEASES = [
    Release(major=17, minor=8),
    Release(major=16, minor=None),
    Release(major=18, minor=0, family=BuildFamily.ZONKY),
]


def _make_files(rng: Random) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a cache, one of them changed, and a command that shows them."""
    files = {name: text.encode() for name, text in _FILES.items()}
    name = rng.choice(list(files))
    files[name] = changed_document(_FILES[name], rng.choice(list(_FILES.values())), rng)
    return files, rng.choice([["cache"], ["cache", "--json"], ["cache", "list"]])


def _show(subject: tuple[dict[str, bytes], list[str]], folder: Path) -> bool:
    files, command = subject
    cache = Cache(root=folder / "cache")
    for name, content in files.items():
        file = cache.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (cache.sources / _TARBALL).write_bytes(b"")
    assert exit_code_of(command, folder) == 0
    ready_made = read_manifest(cache.builds / "zonky-17.8")
    from_source = built(cache, "source-0123456789ab")
    source = stored_source(cache.sources / _TARBALL, _TARBALL)
    (snapshot,) = cached_snapshots(cache)
    if ready_made is not None:
        directory = (cache.builds / "zonky-17.8").resolve()
        assert (directory / ready_made.bin).resolve().is_relative_to(directory), ready_made.bin
    return None not in (ready_made, from_source, snapshot.record()) and source is None


def _make_lists(rng: Random) -> dict[str, bytes]:
    changed = rng.choice(list(BuildFamily))
    texts = {family: json.dumps({**_LIST, "fetched_at": rng.choice([1.0, *[4e9] * 9])}) for family in BuildFamily}
    return {
        family.value: changed_document(text, text, rng) if family is changed else text.encode()
        for family, text in texts.items()
    }


def _resolve(subject: dict[str, bytes], folder: Path) -> bool:
    for family, content in subject.items():
        (folder / f"{family}.json").write_bytes(content)
    try:
        found = offers(folder)
    except StoppedError:
        # An unreadable list is requested again.
        return False
    for release in _RELEASES:
        try:
            resolve([release], found)
        except BuildError:
            continue
    return True


CACHED_FILES = Target(name="cached files", share=1, make=_make_files, read=_show)
VERSION_LISTS = Target(name="version lists", share=5, make=_make_lists, read=_resolve, effects=Effects.STOPPED)
