import errno
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgversus.cli.main import pgversus
from pgversus.errors import HostError


def test_a_copy_that_fails_leaves_nothing_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, copyfile = tmp_path / "mine", shutil.copyfile
    copied: list[Path] = []

    def copy_one(source: Path, target: Path) -> None:
        if copied:
            raise OSError(errno.ENOSPC, "No space left on device")
        copied.append(copyfile(source, target))

    monkeypatch.setattr("pgversus.cli.studies.shutil.copyfile", copy_one)
    arguments = ["studies", "copy", "planner-16-vs-17", str(place)]
    error = CliRunner().invoke(pgversus, arguments, standalone_mode=False).exception
    assert isinstance(error, HostError)
    assert "No space" in error.found
    assert not place.exists()
    monkeypatch.undo()
    assert CliRunner().invoke(pgversus, arguments, standalone_mode=False).exception is None
    assert (place / "study.toml").is_file()
