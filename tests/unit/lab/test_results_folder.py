"""Handling of earlier results in the folder of a run, and its lock."""

from pathlib import Path

import pytest

from pgversus.errors import StoreError
from pgversus.lab.resume import EarlierResults, results_folder
from pgversus.store.folder import FILE_NAME
from pgversus.store.writing import Results
from pgversus.study.study import StudyMetadata

FACT = StudyMetadata(name="s", title="t", question="q", seed=7, verdicts=0, contexts=0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Results.begin(tmp_path / "r", FACT, []).close()
    return tmp_path / "r"


def test_earlier_results_are_refused_read_or_moved_away(folder: Path) -> None:
    with pytest.raises(StoreError) as caught, results_folder(folder, EarlierResults.REFUSE):
        pass
    assert caught.value.slug == "store-not-empty"
    with results_folder(folder, EarlierResults.RESUME) as held:
        assert held.earlier is not None
        assert held.earlier.study == FACT
        assert held.begin() is None
    with results_folder(folder, EarlierResults.MOVE_AWAY) as held:
        assert held.earlier is None
        assert not held.is_ours
        aside = held.begin()
        assert held.is_ours
    assert aside is not None
    assert list(folder.parent.iterdir()) == [aside]
    assert aside.name.startswith("r-until-")
    assert (aside / FILE_NAME).exists()


def test_a_run_that_does_not_begin_moves_nothing_away(folder: Path) -> None:
    with results_folder(folder, EarlierResults.MOVE_AWAY):
        pass
    assert [path.name for path in folder.parent.iterdir()] == ["r"]
    with results_folder(folder.with_name("new"), EarlierResults.MOVE_AWAY) as held:
        assert held.begin() is None
    assert [path.name for path in folder.parent.iterdir()] == ["r"]


@pytest.mark.parametrize("name", [".", "..", "sub/.."])
def test_results_in_the_working_directory_or_above_are_not_moved_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (folder / "sub").mkdir()
    monkeypatch.chdir(folder / "sub" if name == ".." else folder)
    with pytest.raises(StoreError) as caught, results_folder(Path(name), EarlierResults.MOVE_AWAY):
        pass
    assert caught.value.slug == "store-unwritable"
    with results_folder(Path(name), EarlierResults.RESUME) as held:
        assert held.earlier is not None
    (folder / FILE_NAME).unlink()
    with results_folder(Path(name), EarlierResults.MOVE_AWAY) as held:
        assert held.begin() is None


def test_the_folder_that_replaces_moved_results_is_locked(folder: Path) -> None:
    with results_folder(folder, EarlierResults.MOVE_AWAY) as held:
        held.begin()
        Results.begin(folder, FACT, []).close()
        for earlier in (EarlierResults.RESUME, EarlierResults.MOVE_AWAY):
            with pytest.raises(StoreError) as caught, results_folder(folder, earlier):
                pass
            assert caught.value.slug == "store-in-use"
    with results_folder(folder, EarlierResults.RESUME) as held:
        assert held.earlier is not None


@pytest.mark.parametrize("earlier", [EarlierResults.RESUME, EarlierResults.MOVE_AWAY])
def test_the_folder_of_a_live_run_is_neither_resumed_nor_moved_away(folder: Path, earlier: EarlierResults) -> None:
    with results_folder(folder, EarlierResults.RESUME):
        with pytest.raises(StoreError) as caught, results_folder(folder, earlier):
            pass
        assert caught.value.slug == "store-in-use"
        assert [path.name for path in folder.parent.iterdir()] == ["r"]
