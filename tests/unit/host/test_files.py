"""Reflinks, hashes and copies of trees."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pgversus.errors import HostError
from pgversus.host.files import first_change, is_linked, manifest, states_of, take_tree, way_of_copying


def test_the_way_of_copying_is_that_of_cp(tmp_path: Path) -> None:
    found = way_of_copying(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "one").write_bytes(bytes(1 << 16))
    copied = subprocess.run(
        ["cp", "--reflink=always", tmp_path / "one", tmp_path / "other"], check=False, capture_output=True
    )
    assert found == ("reflink" if copied.returncode == 0 else "copy")


def test_blocks_that_can_be_shared_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def share(other: int, _request: int, one: int) -> int:
        # Without a name, nothing is left if the process is killed here.
        calls.append((os.fstat(one).st_size > 4096, os.fstat(other).st_size, list(tmp_path.iterdir())))
        return 0

    monkeypatch.setattr(fcntl, "ioctl", share)
    assert way_of_copying(tmp_path) == "reflink"
    assert calls == [(True, 0, [])]


def test_a_file_system_in_memory_has_no_reflinks() -> None:
    assert way_of_copying(Path("/dev/shm")) == "copy"


def test_full_copies_are_assumed_if_the_test_of_reflinks_fails(tmp_path: Path) -> None:
    assert way_of_copying(tmp_path / "gone") == "copy"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    directory = tmp_path / "tree"
    (directory / "base" / "5").mkdir(parents=True)
    (directory / "pg_notify").mkdir()
    (directory / "base" / "5" / "1247").write_bytes(b"rows" * 3000)
    (directory / "base.more").write_text("sorted before base/ by some")
    (directory / "PG_VERSION").write_text("17\n")
    return directory


def write_in_place(tree: Path) -> None:
    with (tree / "PG_VERSION").open("r+") as file:
        file.write("16")


def put_a_directory_in_place(tree: Path) -> None:
    (tree / "base.more").unlink()
    (tree / "base.more").mkdir()


CHANGES: dict[str, Callable[[Path], object]] = {
    "PG_VERSION was modified": write_in_place,
    "base/5/1247 was modified": lambda tree: (tree / "base" / "5" / "1247").write_bytes(b"fewer"),
    "pg_notify is missing": lambda tree: (tree / "pg_notify").rmdir(),
    "PG_VERSION is missing": lambda tree: (tree / "PG_VERSION").unlink(),
    "pg_notify/0000 is new": lambda tree: (tree / "pg_notify" / "0000").touch(),
    "base.more has a different type": put_a_directory_in_place,
    "pg_tblspc is neither a file nor a directory": lambda tree: (tree / "pg_tblspc").symlink_to("/"),
}


@pytest.mark.parametrize(("words", "change"), CHANGES.items(), ids=list(CHANGES))
def test_every_change_is_detected_and_described(tree: Path, words: str, change: Callable[[Path], object]) -> None:
    entries = manifest(tree)
    assert first_change(tree, entries, os.getuid()) == ""
    change(tree)
    assert first_change(tree, entries, os.getuid()) == words


def test_a_different_owner_is_a_change(tree: Path) -> None:
    assert "is owned by user id" in first_change(tree, manifest(tree), os.getuid() + 1)


def test_a_missing_tree_is_a_change(tree: Path) -> None:
    entries = manifest(tree)
    shutil.rmtree(tree)
    assert "No such file" in first_change(tree, entries, os.getuid())


def contents(tree: Path) -> set[tuple[str, str | None]]:
    return {(one.path, one.sha256) for one in manifest(tree)}


def test_the_manifest_of_a_copy_has_the_same_names_and_contents(tree: Path, tmp_path: Path) -> None:
    before = contents(tree)
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy, copy_function=shutil.copyfile)
    (copy / "postmaster.opts").write_text("how it was started is not compared")
    assert contents(copy) == before
    (copy / "base.more").rename(copy / "base.less")
    assert contents(copy) != before


def test_a_tree_is_linked_and_outlives_its_source(tree: Path, tmp_path: Path) -> None:
    entries = manifest(tree)
    assert not is_linked(tree)
    take_tree(tree, tmp_path / "taken")
    assert is_linked(tree)
    assert (tree / "PG_VERSION").stat().st_ino == (tmp_path / "taken" / "PG_VERSION").stat().st_ino
    shutil.rmtree(tree)
    assert first_change(tmp_path / "taken", entries, os.getuid()) == ""


def test_without_hard_links_a_tree_is_copied_with_its_times(tree: Path) -> None:
    # Another file system: hard links cannot cross file systems.
    target = Path("/dev/shm") / f"pgversus-test-{os.getpid()}"
    assert Path("/dev/shm").stat().st_dev != tree.stat().st_dev
    try:
        take_tree(tree, target)
        assert first_change(target, manifest(tree), os.getuid()) == ""
        assert not is_linked(tree)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def test_a_tree_of_another_user_is_copied_and_owned_by_us(tree: Path, tmp_path: Path) -> None:
    source = tree
    if os.geteuid() == 0:
        for path in (source, *source.rglob("*")):
            os.chown(path, 65534, 65534)
    else:
        # Owned by root, whichever user we are.
        source = Path("/etc/skel")
    take_tree(source, tmp_path / "taken")
    assert not is_linked(tmp_path / "taken")
    assert first_change(tmp_path / "taken", manifest(source), os.geteuid()) == ""


def test_a_failed_copy_is_an_error_and_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        take_tree(tmp_path / "nowhere", tmp_path / "taken")
    assert caught.value.slug == "host-copy"
    assert "No such file" in caught.value.found
    assert list(tmp_path.iterdir()) == []


# On a file system of 1 MB, mounted only for this program.
FULL = """
import subprocess, sys
from pathlib import Path
from pgversus.errors import HostError
from pgversus.host.files import take_tree

source, disk = map(Path, sys.argv[1:])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
try:
    take_tree(source, disk / "taken")
except HostError as error:
    print(error.slug, error.exit_code, bool(error.where and error.found and error.expected and error.to_do))
print([path.name for path in disk.iterdir()])
"""


def test_a_full_disk_is_a_complete_error_and_leaves_no_files(tree: Path, tmp_path: Path) -> None:
    (tree / "big").write_bytes(bytes(2 << 20))
    (tmp_path / "disk").mkdir()
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", "--mount", *as_root, sys.executable, "-c", FULL, str(tree), str(tmp_path / "disk")]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines() == ["host-disk-full 3 True", "[]"]


def test_what_vanishes_while_a_tree_is_measured_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(10))
    assert [state.st_size for state in states_of([tmp_path / "a", tmp_path / "gone"])] == [10]
