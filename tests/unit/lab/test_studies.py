"""Finding a study file, its seed, and the folder of its results."""

import hashlib
import os
import tracemalloc
from pathlib import Path

import pytest

from pgversus.errors import StudyError
from pgversus.lab import studies
from pgversus.lab.studies import StudyFiles, find_study, library, open_study
from pgversus.statements.collection import Collection
from pgversus.statements.sources import read_source
from pgversus.store.writing import Results
from pgversus.study.dataset import DumpFormat
from pgversus.study.study import StudyMetadata

TEXT = """
title = "Two servers"
[factors]
server = ["16.12", "17.8"]
[workload]
builtin = "select-only"
"""


@pytest.mark.parametrize(
    ("in_file", "requested", "earlier", "expected"),
    [
        ("", 9, None, 9),
        ("[design]\nseed = 5", None, None, 5),
        # The flag takes precedence, and a resumed run then refuses the change.
        ("[design]\nseed = 5", 9, None, 9),
        ("[design]\nseed = 5", 9, 4, 9),
        ("[design]\nseed = 5", None, 4, 5),
        ("", 9, 4, 9),
        ("", None, 4, 4),
    ],
)
def test_the_seed_comes_from_the_flag_the_file_or_earlier_results(
    tmp_path: Path, in_file: str, requested: int | None, earlier: int | None, expected: int
) -> None:
    file, folder = tmp_path / "s.toml", tmp_path / "r"
    file.write_text(TEXT + in_file)
    if earlier is not None:
        fact = StudyMetadata(name="s", title="t", question="q", seed=earlier, verdicts=0, contexts=0)
        Results.begin(folder, fact, []).close()
    study = open_study(str(file), seed=requested, results=folder).study
    assert study.seed == expected
    assert {context.comparison.design.seed for context in study.contexts} == {expected}


@pytest.mark.parametrize(
    ("text", "found"),
    [("/dev/zero", "a directory, a pipe or a device"), ("empty", "a folder without a study.toml")],
)
def test_a_path_that_is_not_a_study_file_is_reported_and_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError) as caught:
        open_study(text)
    assert (caught.value.slug, caught.value.found) == ("study-no-file", found)


def test_files_larger_than_the_limits_are_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "study.toml").write_text("x")
    os.truncate(tmp_path / "study.toml", 10_000_001)
    with pytest.raises(StudyError) as caught:
        find_study(str(tmp_path)).text()
    assert caught.value.found == "a study file of more than 10 MB"
    monkeypatch.setattr(studies, "_MOST_BYTES", 10)
    (tmp_path / "a.sql").write_text("SELECT 1;\n")
    (tmp_path / "b.sql").write_text(" ")
    for trusted in (True, False):
        files = StudyFiles(tmp_path, reads_outside=trusted)
        assert files.read("a.sql")[1] == b"SELECT 1;\n"
        if trusted:
            assert files.read("b.sql")[1] == b" "
        else:
            with pytest.raises(OSError, match="more than 10 bytes, the limit without --trust"):
                files.read("b.sql")


def test_a_file_counts_once_however_often_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed study is read twice: with a random seed, and with that of its results."""
    monkeypatch.setattr(studies, "_MOST_BYTES", 10)
    (tmp_path / "a.sql").write_text("SELECT 1;")
    files = StudyFiles(tmp_path, reads_outside=False)
    assert files.read("a.sql") == files.read("a.sql") == (str(tmp_path / "a.sql"), b"SELECT 1;")


def test_a_dump_outside_the_folder_is_not_read_without_consent(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "study.toml").write_text(f'{TEXT}[dataset]\nrestore = "../app.dump"\n')
    unread = open_study(str(folder))
    assert unread.has_unread_files
    assert "reads: ../app.dump" in unread.access.lines
    (tmp_path / "app.dump").write_bytes(b"PGDMP")
    whole = open_study(str(folder), reads_outside=True)
    restore = whole.study.contexts[0].comparison.dataset.restore
    assert restore is not None
    assert (restore.format, restore.sha256) == (DumpFormat.CUSTOM, hashlib.sha256(b"PGDMP").hexdigest())
    (tmp_path / "app.dump").write_bytes(b"PGDMP of another application")
    assert open_study(str(folder), reads_outside=True).digest != whole.digest


def test_a_folder_of_the_same_name_does_not_hide_a_bundled_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planner-16-vs-17").mkdir()
    assert open_study("planner-16-vs-17").study.contexts


@pytest.mark.parametrize("text", [".", "../mine", "study.toml", "inner/..", "{folder}", "{folder}/study.toml"])
def test_a_study_file_in_a_folder_is_named_after_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    folder = tmp_path / "mine"
    (folder / "inner").mkdir(parents=True)
    (folder / "study.toml").write_text(TEXT)
    monkeypatch.chdir(folder)
    opened = open_study(text.format(folder=folder))
    assert (opened.study.name, opened.results) == ("mine", Path("pgversus-results/mine"))


@pytest.mark.parametrize("text", ["x" * 300, TEXT * 100])
def test_text_that_cannot_be_a_path_is_reported_briefly(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        find_study(text)
    assert len(caught.value.where) < 400


def test_reading_a_small_file_takes_little_memory_although_much_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "fill.sql").write_text("SELECT 1;")
    tracemalloc.start()
    _, content = StudyFiles(tmp_path, reads_outside=True).read("fill.sql")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert content == b"SELECT 1;"
    assert peak < 10e6


def test_all_values_of_the_bundled_shop_are_in_its_counters_and_its_log() -> None:
    collection = Collection()
    for name in ("statements.csv", "postgresql.csv"):
        with (library() / "shop-15-to-18" / name).open() as lines:
            read_source(name, iter(lines), collection)
    found = collection.statements
    assert len(found) == 62
    assert [one.text for one in found if one.obstacle] == []
    assert all(one.calls and one.seconds for one in found)
