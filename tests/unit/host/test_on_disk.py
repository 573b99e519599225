"""Files get their final name only when all of them are on disk."""

import os
from pathlib import Path

import pytest

from pgversus.host.on_disk import put_in_place


class Disk:
    """Records calls of fsync before and after the final name exists."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: list[str] = []
        self.after: list[str] = []
        self._place = place
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, number: int) -> None:
        (self.after if self._place.exists() else self.before).append(str(Path(f"/proc/self/fd/{number}").readlink()))
        self._fsync(number)


def test_a_tree_is_on_disk_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, place = tmp_path / "made", tmp_path / "places" / "place"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "postgres").write_text("program")
    (made / "bin" / "postmaster").symlink_to("nowhere")
    place.parent.mkdir()
    disk = Disk(place, monkeypatch)
    put_in_place(made, place)
    assert sorted(disk.before) == [str(path) for path in (made, made / "bin", made / "bin" / "postgres")]
    assert disk.after == [str(place.parent)]
    assert (place / "bin" / "postgres").read_text() == "program"
    assert not made.exists()


def test_a_file_replaces_another_only_after_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, place = tmp_path / "made", tmp_path / "place"
    made.write_text("new")
    disk = Disk(place, monkeypatch)
    put_in_place(made, place)
    assert (disk.before, disk.after) == ([str(made)], [str(tmp_path)])
    made.write_text("newer")
    put_in_place(made, place)
    assert place.read_text() == "newer"
