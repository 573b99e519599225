"""Directories are created with the required mode, whatever the umask, and locked while in use."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgversus.errors import HostError
from pgversus.host.directories import in_use, make_directory, open_cache, unused


@pytest.fixture(params=[0o000, 0o027, 0o077])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_umask")
def test_all_created_directories_have_the_requested_mode(tmp_path: Path) -> None:
    make_directory(tmp_path / "one" / "two", 0o755)
    make_directory(tmp_path / "one" / "closed", 0o700)
    assert [mode(tmp_path / name) for name in ("one", "one/two", "one/closed")] == [0o755, 0o755, 0o700]


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    make_directory(tmp_path / "there", 0o750)
    make_directory(tmp_path / "there" / "new", 0o755)
    make_directory(tmp_path / "there", 0o755)
    assert mode(tmp_path / "there") == 0o750


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "file" / "below", 0o755)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory open to all users, unlike those of pytest."""
    directory = Path(tempfile.mkdtemp(prefix="pgversus-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.mark.usefixtures("_umask")
def test_the_servers_can_reach_every_directory_of_a_new_cache(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", str(open_directory / "far" / "cache"))
    cache = open_cache()
    expected = 0o755 if os.geteuid() == 0 else 0o700
    assert [mode(path) for path in (open_directory / "far", cache.root, cache.runs)] == [expected] * 3


@pytest.mark.parametrize(("place", "permissions"), [("", 0o775), ("", 0o757), ("builds", 0o777), ("snapshots", 0o1777)])
def test_a_cache_writable_by_others_is_rejected(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch, place: str, permissions: int
) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", str(open_directory / "cache"))
    open_cache()
    (open_directory / "cache" / place).chmod(permissions)
    with pytest.raises(HostError) as caught:
        open_cache()
    assert caught.value.slug == "host-cache-untrusted"
    assert caught.value.where == str(open_directory / "cache" / place)
    assert "chmod go-w" in caught.value.to_do


def test_a_cache_of_another_user_is_rejected(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", str(open_directory / "cache"))
    open_cache()
    # As seen by another user, since only root could change the owner.
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:
        os.chown(open_directory / "cache" / "builds", 65534, 65534)
    with pytest.raises(HostError) as caught:
        open_cache()
    assert caught.value.slug == "host-cache-untrusted"
    assert "owned by user id" in caught.value.found


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize(("owner", "group", "permissions"), [(65534, 0, 0o755), (65534, 0, 0o1777), (0, 65534, 0o775)])
def test_a_cache_in_a_directory_of_another_user_is_rejected(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch, owner: int, group: int, permissions: int
) -> None:
    above = open_directory / "above"
    monkeypatch.setenv("PGVERSUS_CACHE", str(above / "below" / "cache"))
    open_cache()
    os.chown(above, owner, group)
    above.chmod(permissions)
    with pytest.raises(HostError) as caught:
        open_cache()
    assert (caught.value.slug, caught.value.where) == ("host-cache-untrusted", str(above))


KILLED = """
import os, signal, sys
from pathlib import Path
from pgversus.host.directories import in_use
with in_use([Path(sys.argv[1])]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_unused(directory: Path) -> bool:
    with unused(directory) as is_free:
        return is_free


def test_a_directory_is_unused_when_its_last_user_has_ended(tmp_path: Path) -> None:
    with in_use([tmp_path]):
        with in_use([tmp_path]):
            assert not is_unused(tmp_path)
        assert not is_unused(tmp_path)
    assert is_unused(tmp_path)


def test_a_killed_process_releases_its_directories(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False).returncode == -signal.SIGKILL
    assert is_unused(tmp_path)


def test_a_removed_directory_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), in_use([tmp_path / "gone"]):
        pass
