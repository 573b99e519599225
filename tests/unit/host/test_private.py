"""Files that may contain passwords are private to their owner, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgversus.host.directories import make_directory, open_cache
from pgversus.host.permissions import PRIVATE_DIRECTORY, open_private, private_lock, write_private


@pytest.fixture(params=[0o000, 0o022, 0o077], ids="umask-{:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_new_files_and_directories_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    make_directory(directory, PRIVATE_DIRECTORY)
    assert [mode(path) for path in (directory, directory.parent)] == [0o700, 0o700]
    write_private(directory / "text", "x")
    with open_private(directory / "log", "a") as log:
        log.write(b"x")
    with private_lock(directory / "lock"):
        assert mode(directory / "lock") == 0o600
    assert [mode(directory / name) for name in ("text", "log")] == [0o600, 0o600]


@pytest.mark.usefixtures("umask")
def test_an_overwritten_file_becomes_private_and_an_appended_file_keeps_its_mode(tmp_path: Path) -> None:
    for name in ("text", "log"):
        (tmp_path / name).write_text("old, and longer")
        (tmp_path / name).chmod(0o644)
    write_private(tmp_path / "text", "new")
    with open_private(tmp_path / "log", "a") as log:
        log.write(b"!")
    assert [(path.read_text(), mode(path)) for path in (tmp_path / "text", tmp_path / "log")] == [
        ("new", 0o600),
        ("old, and longer!", 0o644),
    ]


@pytest.mark.usefixtures("umask")
def test_logs_and_snapshots_in_the_cache_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        # The directories of pytest are private, but the check requires a cache that servers of another user can enter.
        monkeypatch.setattr("pgversus.host.directories._check_reachable", lambda _: None)
    monkeypatch.setenv("PGVERSUS_CACHE", str(tmp_path / "cache"))
    cache = open_cache()
    assert [mode(place) for place in (cache.logs, cache.snapshots)] == [0o700, 0o700]
