"""A results folder belongs to one run at a time and is removed if nothing was stored in it."""

import os
import stat
from pathlib import Path

import pytest

from pgversus.errors import StoreError
from pgversus.store.folder import FILE_NAME, locked_folder, move_away


def test_two_runs_cannot_use_one_folder(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with locked_folder(folder):
        with pytest.raises(StoreError) as caught, locked_folder(folder):
            pass
        assert caught.value.slug == "store-in-use"
        with pytest.raises(StoreError), locked_folder(folder):
            pass
    with locked_folder(folder):
        pass


def test_a_folder_without_results_is_removed_with_its_new_parents(tmp_path: Path) -> None:
    with locked_folder(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_files_that_existed_before_stay(tmp_path: Path) -> None:
    (tmp_path / "note.txt").touch()
    with locked_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_a_folder_with_results_stays_and_can_be_locked_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    for _ in range(2):
        with locked_folder(folder):
            (folder / FILE_NAME).touch()
    assert (folder / FILE_NAME).exists()


def test_results_moved_away_take_their_lock_along_and_leave_that_of_the_next_run(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / FILE_NAME).touch()
    with locked_folder(folder):
        move_away(folder, "then")
        with locked_folder(folder):
            (folder / FILE_NAME).touch()
    with locked_folder(folder), pytest.raises(StoreError), locked_folder(folder):
        pass


def test_the_lock_is_released_when_its_process_is_killed(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with locked_folder(tmp_path / "r"):
            os.write(writer, b"x")
            os.kill(os.getpid(), 9)
    os.read(reader, 1)
    os.waitpid(child, 0)
    with locked_folder(tmp_path / "r"):
        pass


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_new_folder_and_its_lock_are_private_and_an_existing_one_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old").chmod(0o755)
    before = os.umask(umask)
    try:
        for name, mode in (("new", 0o700), ("old", 0o755)):
            with locked_folder(tmp_path / name):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
                assert stat.S_IMODE((tmp_path / name / "lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)
