import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgversus.host import page_cache
from pgversus.host.directories import open_cache
from pgversus.host.facts import mount_of
from pgversus.host.page_cache import evict, read_in

MEGABYTE = 1 << 20


def _write(path: Path, megabytes: int) -> Path:
    path.write_bytes(os.urandom(megabytes * MEGABYTE))
    return path


@pytest.fixture
def files() -> Iterator[Path]:
    """A directory whose files are cached, on a file system that lets go of them: not in /tmp, which may be memory."""
    with tempfile.TemporaryDirectory(prefix="page-cache-", dir=open_cache().root) as name:
        directory = Path(name)
        mount = mount_of(directory)
        assert mount is not None
        assert mount.fstype not in ("tmpfs", "zfs"), "name a cache on a disk in PGVERSUS_CACHE"
        (directory / "deeper").mkdir()
        _write(directory / "one", 4)
        _write(directory / "deeper" / "other", 2)
        yield directory


def test_files_just_written_are_cached_and_after_evicting_they_are_not(files: Path) -> None:
    content = (files / "one").read_bytes()
    assert page_cache._cached_share(files) == 1
    share = evict(files)
    assert share is not None
    assert share < 0.1
    assert (files / "one").read_bytes() == content


def test_looking_leaves_nothing_behind(files: Path) -> None:
    seen = evict(files)
    assert seen is not None
    assert [page_cache._cached_share(files) for _ in range(5)] == [seen] * 5


def test_the_share_has_the_weight_of_size(files: Path) -> None:
    evict(files)
    (files / "deeper" / "other").read_bytes()
    assert page_cache._cached_share(files) == pytest.approx(1 / 3, abs=0.1)


def test_what_a_symbolic_link_points_to_is_left_alone(files: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _write(outside / "file", 1)
    (files / "link").symlink_to(outside / "file")
    (files / "directory").symlink_to(outside)
    os.sync()
    evict(files)
    assert page_cache._cached_share(outside) == 1


def test_what_is_no_file_of_pages_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    assert evict(tmp_path) == 0


def test_a_directory_that_is_not_there_has_nothing_cached(tmp_path: Path) -> None:
    assert evict(tmp_path / "vanished") == 0


def test_a_file_that_vanishes_is_no_error(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.walk

    def walk_and_remove(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        found = list(walk(top))
        shutil.rmtree(files / "deeper", ignore_errors=True)
        yield from found

    monkeypatch.setattr(os, "walk", walk_and_remove)
    share = evict(files)
    assert share is not None
    assert share < 0.1


def test_a_file_system_in_memory_keeps_everything() -> None:
    directory = Path("/dev/shm") / f"pgversus-test-{os.getpid()}"
    directory.mkdir()
    try:
        _write(directory / "file", 1)
        assert evict(directory) == 1
    finally:
        shutil.rmtree(directory)


def test_a_file_system_with_a_cache_of_its_own_tells_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "mount_of", lambda _: SimpleNamespace(fstype="zfs"))
    assert evict(files) is None


def test_files_of_others_tell_nothing(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As for a user who may read them and no more; the kernel would say that all of them are cached.
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert evict(files) is None


def test_after_reading_in_every_file_is_cached_however_it_came_here(files: Path) -> None:
    evict(files)
    (files / "link").symlink_to(files / "one")
    assert read_in(files) == 6 * MEGABYTE
    assert page_cache._cached_share(files) == 1


def test_nothing_is_read_of_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert read_in(tmp_path) == read_in(tmp_path / "gone") == 0
