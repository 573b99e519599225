"""Snapshots are cached completely or not at all, and come back unchanged."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.data import snapshot_cache
from pgversus.data.snapshot_cache import SnapshotRecord, cached_snapshots, remove, take
from pgversus.host.directories import Cache
from pgversus.host.files import first_change, take_tree
from tests.unit.data.kept import FINGERPRINT, cache_in, kept, made, put, recipe


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return cache_in(tmp_path)


def taken(cache: Cache, name: str = "home") -> tuple[SnapshotRecord | None, list[str]]:
    said: list[str] = []
    return take(cache, recipe(), cache.runs / name, said.append), said


def test_a_snapshot_comes_back_unchanged(cache: Cache) -> None:
    data = made(cache.runs / "first")
    assert put(cache, data)
    found, said = taken(cache)
    assert found is not None
    assert (found.made_of, found.fingerprint, said) == (recipe(), FINGERPRINT, [])
    home = cache.runs / "home"
    assert (home / "data" / "PG_VERSION").samefile(data / "PG_VERSION")
    assert sorted(path.name for path in cache.runs.iterdir()) == ["first", "home"]


def test_a_record_of_an_earlier_version_is_read(cache: Cache) -> None:
    record = kept(cache, recipe()) / "snapshot.json"
    record.write_text(
        record.read_text().replace('"size_bytes":', '"made_at":"2026-01-01T00:00:00+00:00","size_bytes":')
    )
    assert taken(cache)[0] is not None


def test_taking_a_snapshot_counts_as_a_use(cache: Cache) -> None:
    place = kept(cache, recipe(), last_used=1000.0)
    assert cached_snapshots(cache)[0].last_used == 1000.0
    taken(cache)
    assert cached_snapshots(cache)[0].last_used > 1000.0
    assert (place / "snapshot.json").exists()


def test_taking_a_missing_snapshot_creates_nothing(cache: Cache) -> None:
    kept(cache, recipe(scale=2))
    assert taken(cache) == (None, [])
    assert list(cache.runs.iterdir()) == []


def append(file: Path) -> None:
    with file.open("a") as out:
        out.write("x")


def keep_the_time(place: Path) -> None:
    """Change content and size of a file, but not its time."""
    file = place / "data" / "base" / "1247"
    before = file.stat()
    append(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "base/1247 was modified": lambda place: append(place / "data" / "base" / "1247"),
    "base/1247 was modified ": keep_the_time,
    "pg_notify is missing": lambda place: (place / "data" / "pg_notify").rmdir(),
    "base/2 is new": lambda place: (place / "data" / "base" / "2").touch(),
    "its data directory is missing": lambda place: shutil.rmtree(place / "data"),
    "its record cannot be read": lambda place: (place / "snapshot.json").write_text("{"),
    "its record cannot be read ": lambda place: (place / "snapshot.json").unlink(),
    "its key does not match its record": lambda place: (place / "snapshot.json").write_text(
        (place / "snapshot.json").read_text().replace('"pgbench_scale":1', '"pgbench_scale":7')
    ),
}


@pytest.mark.parametrize(("words", "damage"), DAMAGES.items(), ids=list(DAMAGES))
def test_a_changed_snapshot_is_removed_with_a_message(
    cache: Cache, words: str, damage: Callable[[Path], object]
) -> None:
    place = kept(cache, recipe())
    damage(place)
    found, said = taken(cache)
    assert found is None
    assert said == [f"removed cached snapshot {recipe().key}, which will be created again: {words.strip()}"]
    assert list(cache.snapshots.iterdir()) == []
    assert list(cache.runs.iterdir()) == []


def test_under_root_a_server_process_cannot_change_the_cache(cache: Cache) -> None:
    data = made(cache.runs / "first")
    # Only root runs servers as another user and can change the owner of files.
    if is_root := os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (data, *data.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    # A process of the server may still have one of its files open.
    with (data / "PG_VERSION").open("r+") as still_open:
        assert put(cache, data)
        if is_root:
            still_open.write("99\n")
    record, _ = taken(cache)
    assert record is not None
    for place in (cache.snapshots / recipe().key / "data", cache.runs / "home" / "data"):
        assert (place / "PG_VERSION").read_text() == "17\n"
        assert {path.stat().st_uid for path in (place, *place.rglob("*"))} == {os.geteuid()}


def test_files_of_another_user_are_not_taken(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(cache, recipe())
    monkeypatch.setattr(snapshot_cache, "first_change", lambda data, files, uid: first_change(data, files, uid + 1))
    found, said = taken(cache)
    assert found is None
    assert "is owned by user id" in said[0]


def test_the_second_of_two_equal_snapshots_is_not_stored(cache: Cache) -> None:
    data, other = made(cache.runs / "first"), made(cache.runs / "second")
    assert put(cache, data, scratch="scratch-1")
    assert not put(cache, other, scratch="scratch-2")
    assert (other / "PG_VERSION").read_text() == "17\n"
    assert sorted(path.name for path in cache.runs.iterdir()) == ["first", "second"]
    assert (cache.snapshots / recipe().key / "data" / "PG_VERSION").samefile(data / "PG_VERSION")


def test_removing_a_snapshot_does_not_affect_runs_that_use_it(cache: Cache) -> None:
    place = kept(cache, recipe())
    assert cached_snapshots(cache)[0].gives_room
    taken(cache)
    assert not cached_snapshots(cache)[0].gives_room
    remove(place)
    remove(place)
    assert (cache.runs / "home" / "data" / "base" / "1247").read_bytes() == b"x" * 100
    assert cached_snapshots(cache) == []


def test_a_snapshot_removed_while_it_is_taken_counts_as_missing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    place = kept(cache, recipe())

    def removed_first(source: Path, target: Path) -> None:
        remove(place)
        take_tree(source, target)

    monkeypatch.setattr(snapshot_cache, "take_tree", removed_first)
    assert taken(cache) == (None, [])
    assert list(cache.runs.iterdir()) == []


def test_leftovers_of_a_killed_removal_are_removed_and_never_used(cache: Cache) -> None:
    place = kept(cache, recipe())
    place.rename(cache.snapshots / ".removed-0123")
    assert taken(cache) == (None, [])
    assert cached_snapshots(cache) == []
    assert list(cache.snapshots.iterdir()) == []


# A process that is killed at a given step of keep().
KILLED = """
import os, signal, sys
from pathlib import Path
from pgversus.data import snapshot_cache as made_of
from tests.unit.data.kept import cache_in, made, put

moment, place = sys.argv[1], Path(sys.argv[2])

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

cache = cache_in(place)
data = made(cache.runs / "run")
if moment != "afterwards":
    setattr(made_of, moment, die)
put(cache, data)
die()
"""


@pytest.mark.parametrize(("moment", "is_kept"), [("take_tree", 0), ("_sync", 0), ("_renamed", 0), ("afterwards", 1)])
def test_a_kill_at_any_step_leaves_a_complete_snapshot_or_none(tmp_path: Path, moment: str, is_kept: int) -> None:
    command = [sys.executable, "-c", KILLED, moment, str(tmp_path)]
    root = Path(__file__).parents[3]
    assert subprocess.run(command, check=False, cwd=root).returncode == -signal.SIGKILL
    cache = Cache(root=tmp_path / "cache")
    assert len(list(cache.snapshots.iterdir())) == is_kept
    found, said = taken(cache)
    assert ((found is not None), said) == (bool(is_kept), [])


# A disk with space for the data only, not even for their record.
FULL = """
import subprocess, sys
from pathlib import Path
from tests.unit.data.kept import cache_in, made, put

disk = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
cache = cache_in(disk)
data = made(cache.runs / "run")
with (disk / "filler").open("wb", buffering=0) as filler:
    try:
        while True:
            filler.write(bytes(4096))
    except OSError:
        pass
try:
    put(cache, data)
except OSError as error:
    print(error.strerror)
print([path.name for path in cache.snapshots.iterdir()], [path.name for path in cache.runs.iterdir()])
"""


def test_a_full_disk_stores_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", "--mount", *as_root, sys.executable, "-c", FULL, str(tmp_path)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert ended.stdout.splitlines() == ["No space left on device", "[] ['run']"]


def test_a_record_holds_no_password_but_the_key_depends_on_it(cache: Cache) -> None:
    settings = (("primary_conninfo", "host=h password=Geheim99"), ("my.secret", "Geheim99"))
    of = replace(recipe(), settings=settings, variables=(("pw_secret", "Geheim99"),))
    place = kept(cache, of)
    assert "Geheim99" not in (place / "snapshot.json").read_text()
    assert (place / "snapshot.json").stat().st_mode & 0o777 == 0o600
    found = take(cache, of, cache.runs / "home", lambda _: None)
    assert found is not None
    assert found.made_of == of.hidden
    other = replace(of, variables=(("pw_secret", "Geheim98"),))
    assert take(cache, other, cache.runs / "other", lambda _: None) is None


def test_a_record_of_an_earlier_version_with_another_key_is_still_read(cache: Cache) -> None:
    file = kept(cache, recipe()) / "snapshot.json"
    file.write_text(file.read_text().replace('"size_bytes":', '"tree_sha256":"0","size_bytes":'))
    record, said = taken(cache)
    assert record is not None
    assert said == []


@pytest.mark.parametrize("size", ["-1", "9" * 19, "9" * 400])
def test_a_record_with_an_impossible_size_cannot_be_read(cache: Cache, size: str) -> None:
    file = kept(cache, recipe()) / "snapshot.json"
    text = file.read_text()
    assert '"size_bytes":1000,' in text
    file.write_text(text.replace('"size_bytes":1000,', f'"size_bytes":{size},'))
    (found,) = cached_snapshots(cache)
    assert (found.record(), found.size_bytes) == (None, 0)
