"""How copies are made is tried, not guessed."""

from pathlib import Path

import pytest

from pgversus.host import reflink
from pgversus.host.commands import Finished
from pgversus.host.reflink import way_of_copying


@pytest.mark.parametrize(("code", "way"), [(0, "reflink"), (1, "copy")])
def test_it_is_what_cp_can_do_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, way: str) -> None:
    asked = []

    def run(arguments: list[str]) -> Finished:
        asked.append((arguments[1], Path(arguments[-2]).stat().st_size > 4096))
        return Finished(exit_code=code, stdout="", stderr="", cpu_s=0.0, cpu_user_s=0.0)

    monkeypatch.setattr(reflink, "run", run)
    assert way_of_copying(tmp_path) == way
    assert asked == [("--reflink=always", True)]
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_in_memory_shares_nothing() -> None:
    assert way_of_copying(Path("/dev/shm")) == "copy"


def test_where_nothing_can_be_tried_nothing_is_promised(tmp_path: Path) -> None:
    assert way_of_copying(tmp_path / "gone") == "copy"
