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
    """A directory of cached files on a file system that supports eviction, unlike /tmp, which may be in memory."""
    with tempfile.TemporaryDirectory(prefix="page-cache-", dir=open_cache().root) as name:
        directory = Path(name)
        mount = mount_of(directory)
        assert mount is not None
        assert mount.fstype not in ("tmpfs", "zfs"), "name a cache on a disk in PGVERSUS_CACHE"
        (directory / "deeper").mkdir()
        _write(directory / "one", 4)
        _write(directory / "deeper" / "other", 2)
        yield directory


def test_new_files_are_cached_until_they_are_evicted(files: Path) -> None:
    content = (files / "one").read_bytes()
    assert page_cache._cached_share(files) == 1
    share = evict(files)
    assert share is not None
    assert share < 0.1
    assert (files / "one").read_bytes() == content


def test_measuring_the_share_does_not_change_it(files: Path) -> None:
    seen = evict(files)
    assert seen is not None
    assert [page_cache._cached_share(files) for _ in range(5)] == [seen] * 5


def test_the_share_is_weighted_by_size(files: Path) -> None:
    evict(files)
    (files / "deeper" / "other").read_bytes()
    assert page_cache._cached_share(files) == pytest.approx(1 / 3, abs=0.1)


def test_symbolic_links_are_not_followed(files: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _write(outside / "file", 1)
    (files / "link").symlink_to(outside / "file")
    (files / "directory").symlink_to(outside)
    os.sync()
    evict(files)
    assert page_cache._cached_share(outside) == 1


def test_files_without_pages_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    assert evict(tmp_path) == 0


def test_a_missing_directory_has_no_cached_pages(tmp_path: Path) -> None:
    assert evict(tmp_path / "vanished") == 0


def test_a_vanishing_file_is_not_an_error(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = os.walk

    def walk_and_remove(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        found = list(walk(top))
        shutil.rmtree(files / "deeper", ignore_errors=True)
        yield from found

    monkeypatch.setattr(os, "walk", walk_and_remove)
    share = evict(files)
    assert share is not None
    assert share < 0.1


def test_a_file_system_in_memory_stays_cached() -> None:
    directory = Path("/dev/shm") / f"pgversus-test-{os.getpid()}"
    directory.mkdir()
    try:
        _write(directory / "file", 1)
        assert evict(directory) == 1
    finally:
        shutil.rmtree(directory)


def test_the_share_is_unknown_on_a_file_system_with_its_own_cache(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "mount_of", lambda _: SimpleNamespace(fstype="zfs"))
    assert evict(files) is None


def test_the_share_is_unknown_for_files_of_others(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As for a user with read permission only, for whom the kernel reports all pages as cached.
    monkeypatch.setattr(os, "geteuid", lambda: -1)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert evict(files) is None


def test_all_files_are_cached_after_reading_them_in(files: Path) -> None:
    evict(files)
    (files / "link").symlink_to(files / "one")
    assert read_in(files) == 6 * MEGABYTE
    assert page_cache._cached_share(files) == 1


def test_missing_and_special_files_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert read_in(tmp_path) == read_in(tmp_path / "gone") == 0
