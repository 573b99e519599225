"""Handover of files between root and another user follows no links, and files taken back belong to us."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.host.identity import server_user
from pgversus.host.permissions import copy_tree, give_tree, make_private, open_regular, write_for
from tests.builders import MYSELF

USER = server_user()
SOMEBODY = replace(MYSELF, uid=MYSELF.uid + 1)
"""Who has made none of the files of these tests."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_private_directories_and_files_belong_to_that_user_only(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        make_private(USER, tmp_path / "directory")
        write_for(USER, tmp_path / "file", b"one")
        write_for(USER, tmp_path / "file", b"two")
    finally:
        os.umask(before)
    assert [mode(path) for path in (tmp_path / "directory", tmp_path / "file")] == [0o700, 0o600]
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {USER.uid}
    assert (tmp_path / "file").read_bytes() == b"two"


def test_a_planted_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    write_for(USER, tmp_path / "file", b"mine")
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "file").is_symlink()


def test_a_tree_is_given_away_without_the_targets_of_its_links(tmp_path: Path) -> None:
    (tmp_path / "outside" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "inner").mkdir(parents=True)
    (tmp_path / "tree" / "inner" / "file").touch()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "other").touch()
    (tmp_path / "tree" / "second-name").hardlink_to(tmp_path / "other")
    give_tree(USER, tmp_path / "tree")
    given = {path.name: path.lstat().st_uid for path in (tmp_path / "tree", *(tmp_path / "tree").rglob("*"))}
    assert given == dict.fromkeys(("tree", "inner", "file", "link"), USER.uid) | {"second-name": MYSELF.uid}
    assert {path.lstat().st_uid for path in (tmp_path / "outside").rglob("*")} == {MYSELF.uid}


def test_only_regular_files_of_that_user_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "fifo")
    with open_regular(tmp_path / "file", owner=MYSELF.uid) as file:
        assert file.read() == b"text"
    for name in ("link", "fifo", "."):
        with pytest.raises(ValueError, match="is not a regular file"):
            open_regular(tmp_path / name)
    with pytest.raises(ValueError, match=f"is owned by user id {MYSELF.uid}"):
        open_regular(tmp_path / "file", owner=SOMEBODY.uid)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


def test_a_tree_is_taken_back_as_a_private_copy(tmp_path: Path) -> None:
    made = tmp_path / "made"
    (made / "lib").mkdir(parents=True)
    (made / "lib" / "libpq.so.5").write_text("library")
    (made / "lib" / "libpq.so").symlink_to("libpq.so.5")
    (made / "program").write_text("program")
    (made / "program").chmod(0o4755)
    (made / "same").hardlink_to(made / "program")
    copy_tree(made, tmp_path / "copy", MYSELF)
    # A process that has the original open still writes to that.
    (made / "program").write_text("changed")
    found = {str(path.relative_to(tmp_path / "copy")): path for path in (tmp_path / "copy").rglob("*")}
    assert sorted(found) == ["lib", "lib/libpq.so", "lib/libpq.so.5", "program", "same"]
    assert found["lib/libpq.so"].readlink() == Path("libpq.so.5")
    assert (found["program"].read_text(), found["same"].read_text()) == ("program", "program")
    assert [mode(found[name]) for name in ("lib", "lib/libpq.so.5", "program")] == [0o700, 0o600, 0o700]
    assert {path.lstat().st_uid for path in found.values()} == {MYSELF.uid}


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        ('ln -s /etc/passwd "$0/link"', "which is outside of the tree"),
        ('ln -s ../../outside "$0/link"', "which is outside of the tree"),
        ('ln -s . "$0/here"; ln -s here/here/../../.. "$0/link"', "which is outside of the tree"),
        ('mkfifo "$0/pipe"', "is not a regular file"),
    ],
)
def test_unsafe_entries_of_a_tree_are_rejected(tmp_path: Path, planted: str, words: str) -> None:
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run(["/bin/sh", "-c", planted, str(made)], check=True)
    with pytest.raises(ValueError, match=words):
        copy_tree(made, tmp_path / "copy", MYSELF)


def test_a_file_of_another_user_is_rejected(tmp_path: Path) -> None:
    # As with a hard link to it.
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "shadow").write_text("secret")
    with pytest.raises(ValueError, match="is owned by user id"):
        copy_tree(tmp_path / "made", tmp_path / "copy", SOMEBODY)
