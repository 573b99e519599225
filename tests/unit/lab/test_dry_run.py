"""A dry run refuses what the run would refuse, and counts what the run would measure."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pgversus.errors import HostError, StoreError, StudyError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.lab import dry_run as module
from pgversus.lab.dry_run import dry_run, refuse_without_room
from pgversus.lab.studies import open_study
from pgversus.report.dry_run import dry_run_text
from pgversus.store.results import Results
from pgversus.study.study import Study

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
        found.study,
        found.needs,
        downloads=(),
        to_build=(),
        free_bytes=1,
        blocks_there=found.blocks_there,
        results=found.results,
    )
    assert "1 comparison, 2 treatments, 1 verdict" in text
    assert "left out: 2 treatments" in text
    assert not (tmp_path / "r").exists()


def test_what_is_to_be_built_is_said(study: Study, tmp_path: Path) -> None:
    found = dry_run(study, tmp_path / "r", USER)
    whole = partial(dry_run_text, found.study, found.needs, free_bytes=1, blocks_there=0, results="r")
    lines = whole(downloads=(), to_build=("17+blocksize=16", "./tree@HEAD")).splitlines()
    assert "to be built: 17+blocksize=16, ./tree@HEAD, some minutes of all processors each" in lines
    assert "downloads: none, all source is here" in lines
    both = whole(downloads=("zonky 17.8",), to_build=("18+cassert",)).splitlines()
    assert "downloads: zonky 17.8" in both
    neither = whole(downloads=(), to_build=()).splitlines()
    assert "downloads: none, all builds are in the cache" in neither
    assert not [line for line in neither if line.startswith("to be built")]


@pytest.mark.usefixtures("study")
def test_a_server_from_source_that_is_not_here_is_to_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGVERSUS_SOURCES", raising=False)
    (tmp_path / "cache" / "sources").mkdir()
    compiler = tmp_path / "cc-1"
    compiler.write_text("#!/bin/sh\necho cc 1.0\n")
    compiler.chmod(0o755)
    server, file = f"17.8+blocksize=16+cc={compiler}", tmp_path / "s.toml"
    text = file.read_text().replace('compare = "io_method"', 'compare = "server"')
    file.write_text(text.replace(str(tmp_path / "old"), server))
    found = dry_run(open_study(str(file))[0], tmp_path / "r", USER)
    assert (found.to_build, found.downloads) == ((server,), ("source of 17.8",))


def test_parts_are_said_where_there_are_some(study: Study, tmp_path: Path) -> None:
    needs = dry_run(study, tmp_path / "r", USER).needs

    def text(parts: int) -> str:
        asked = replace(needs, parts=parts)
        return dry_run_text(study, asked, downloads=(), to_build=(), free_bytes=2000, blocks_there=0, results="r")

    assert "at once" not in text(1)
    assert " at once (measured in 17 parts one after another), 2 kB free" in text(17)


def test_a_budget_that_cannot_be_enough_is_told_from_one_that_may(study: Study, tmp_path: Path) -> None:
    needs = dry_run(study, tmp_path / "r", USER).needs

    def text(budget_s: float) -> str:
        asked = replace(needs, least_s=3600.0, most_s=budget_s)
        return dry_run_text(study, asked, downloads=(), to_build=(), free_bytes=1, blocks_there=0, results="r")

    assert "blocks: 1 h to 2 h (all known at the first look; the whole budget)" in text(7200.0)
    too_little = (
        "blocks: 15 min, the whole budget, too little for all (about 1 h until all could be known at the first look)"
    )
    assert too_little in text(900.0)


def test_a_study_without_room_is_planned_and_refused(study: Study, tmp_path: Path) -> None:
    found = dry_run(study, tmp_path / "r", USER)
    refuse_without_room(found)
    with pytest.raises(HostError) as caught:
        refuse_without_room(replace(found, needs=replace(found.needs, disk_bytes=1e18)))
    assert caught.value.slug == "host-no-room"


@pytest.mark.usefixtures("study")
def test_what_a_server_here_refuses_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(file.read_text().replace('if_missing = "skip"', ""))
    with pytest.raises(StudyError) as caught:
        dry_run(open_study(str(file))[0], tmp_path / "r", USER)
    assert caught.value.slug == "study-setting-refused"


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
