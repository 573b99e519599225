"""A dry run refuses what the run would refuse, and counts what the run would measure."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from pgversus.errors import HostError, StoreError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.lab import dry_run as module
from pgversus.lab.dry_run import check_room, dry_run, make_room
from pgversus.lab.studies import open_study
from pgversus.report.dry_run import dry_run_text
from pgversus.store.results import Results
from pgversus.study.needs import Needs
from pgversus.study.study import Study
from tests.unit.lab.kept import cache_in, kept, recipe

# Takes the settings that stand beside it in a file.
POSTGRES = """#!/bin/sh
[ "$1" = --version ] && echo "postgres (PostgreSQL) 17.8" && exit
grep -qx "$2" "${0%/*}/settings" && echo "${4#*=}" && exit
echo "FATAL:  unrecognized configuration parameter \\"$2\\"" >&2
exit 1
"""
TEXT = """
title = "A setting that came late"
compare = "io_method"
if_missing = "skip"

[factors]
server = ["{new}", "{old}"]
io_method = ["sync", "worker"]

[workload]
builtin = "select-only"

[design]
seed = 5
"""
USER = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)


def bin_directory(directory: Path, *settings: str) -> Path:
    directory.mkdir()
    (directory / "settings").write_text("".join(f"{setting}\n" for setting in settings))
    for name in ("postgres", "initdb"):
        (directory / name).write_text(POSTGRES)
        (directory / name).chmod(0o755)
    return directory


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    cache = Cache(root=tmp_path / "cache")
    cache.runs.mkdir(parents=True)
    monkeypatch.setattr(module, "open_cache", lambda: cache)
    new, old = bin_directory(tmp_path / "new", "io_method"), bin_directory(tmp_path / "old")
    (tmp_path / "s.toml").write_text(TEXT.format(new=new, old=old))
    return open_study(str(tmp_path / "s.toml"))[0]


def test_treatments_that_a_server_here_cannot_have_are_not_counted(study: Study, tmp_path: Path) -> None:
    found = dry_run(study, tmp_path / "r", USER)
    assert (study.treatments, found.study.treatments) == (4, 2)
    text = dry_run_text(
        found.study, found.needs, downloads=(), free_bytes=1, blocks_there=found.blocks_there, results=found.results
    )
    assert "1 comparison, 2 treatments, 1 verdict" in text
    assert "left out: 2 treatments" in text
    assert not (tmp_path / "r").exists()


def test_a_results_folder_that_cannot_be_is_refused(study: Study, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        dry_run(study, tmp_path / ("r" * 300), USER)
    assert caught.value.slug == "store-unwritable"


def test_results_of_another_study_are_refused_before_anything_is_done(study: Study, tmp_path: Path) -> None:
    possible = dry_run(study, tmp_path / "r", USER).study
    Results.begin(tmp_path / "r", possible.fact, possible.contexts).close()
    dry_run(study, tmp_path / "r", USER)
    text = (tmp_path / "s.toml").read_text().replace("select-only", "tpcb-like")
    (tmp_path / "s.toml").write_text(text)
    other, _ = open_study(str(tmp_path / "s.toml"))
    with pytest.raises(StoreError) as caught:
        dry_run(other, tmp_path / "r", USER)
    assert caught.value.slug == "store-other-study"
    dry_run(other, tmp_path / "r", USER, afresh=True)


def test_kept_data_give_way_to_a_study_and_only_when_it_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = cache_in(tmp_path)
    kept(cache, recipe(1), size_bytes=1000, last_used=1.0)
    kept(cache, recipe(2), size_bytes=1000, last_used=2.0)

    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=3000 - 1000 * len(list(cache.snapshots.iterdir())))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    said: list[str] = []
    for needed, left, words in ((2000, 1, "removed 1 kept snapshot to make room"), (2000, 1, "")):
        check_room(needs(needed), cache)
        make_room(needs(needed), cache, said.append)
        assert len(list(cache.snapshots.iterdir())) == left
        assert said == ([words] if words else [])
        said.clear()
    for refuse in (check_room, lambda asked, of: make_room(asked, of, said.append)):
        with pytest.raises(HostError) as caught:
            refuse(needs(5000), cache)
        assert (caught.value.slug, caught.value.found) == ("host-no-room", "2 kB free")
    assert len(list(cache.snapshots.iterdir())) == 1
    assert said == []


def needs(disk_bytes: float) -> Needs:
    return Needs(
        snapshots=1, disk_bytes=disk_bytes, setup_files=0, least_trials=1, preparation_s=1.0, least_s=1.0, most_s=None
    )
