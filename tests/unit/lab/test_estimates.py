"""A dry run refuses what the run would refuse, and counts what the run would measure."""

import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pgversus.builds import build_commands
from pgversus.cli.run import run
from pgversus.errors import BuildError, HostError, StoreError, StudyError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.lab import estimates as module
from pgversus.lab.estimates import check_disk_space, dry_run
from pgversus.lab.resume import EarlierResults
from pgversus.lab.studies import open_study
from pgversus.records.dry_run import DryRun
from pgversus.report.dry_run import dry_run_text
from pgversus.store.writing import Results
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from pgversus.study.servers import BuildFamily, Release, RunningServer, ServerName
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script
from tests.real_results import PUBLISHED
from tests.unit.postgres.listening import listening

# Accepts the settings that are listed in a file next to it.
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
    return open_study(str(tmp_path / "s.toml")).study


def requested(study: Study, tmp_path: Path) -> DryRun:
    """The study after its servers were queried."""
    return dry_run(study, tmp_path / "r", USER, asks_servers=True)


def test_a_precision_that_no_number_of_blocks_reaches_is_refused(study: Study, tmp_path: Path) -> None:
    design = Design(metric=Metric.LATENCY_P95, precision=0.01)
    contexts = tuple(
        replace(context, comparison=replace(context.comparison, design=design)) for context in study.contexts
    )
    with pytest.raises(StudyError) as caught:
        requested(replace(study, contexts=contexts), tmp_path)
    assert caught.value.slug == "study-precision-of-percentile"


def test_treatments_that_a_local_server_does_not_support_are_not_counted(study: Study, tmp_path: Path) -> None:
    found = requested(study, tmp_path)
    assert (study.treatments, found.study.treatments) == (4, 2)
    text = dry_run_text(found)
    assert "1 comparison, 2 treatments, 1 verdict" in text
    assert text.count("skipped: ") == 2
    assert not (tmp_path / "r").exists()


def test_a_dry_run_of_a_comparison_names_servers_load_and_design(study: Study, tmp_path: Path) -> None:
    load = PgbenchWorkload(scripts=(Script(name="select-only"),), clients=4, threads=2)
    servers: tuple[ServerName, ...] = (
        Release(major=16, minor=None),
        Release(major=17, minor=8),
        RunningServer(uri="postgresql://h/d"),
        Release(major=16, minor=None, family=BuildFamily.WHEEL),
    )
    first = study.contexts[0].comparison
    arms = tuple(
        replace(first.baseline, index=index, label=str(index), server=server, workload=load)
        for index, server in enumerate(servers)
    )
    one = replace(study.contexts[0], comparison=replace(first, arms=arms), levels=())
    found = replace(
        requested(study, tmp_path),
        study=replace(study, contexts=(one,), kind=StudyKind.COMPARISON),
        versions={servers[1]: "17.8, wheel"},
        downloads=("zonky 16.15", "wheel 16.9"),
    )
    lines = dry_run_text(found).splitlines()
    assert lines[2:6] == [
        "baseline: 0 (16.15, zonky, to be downloaded)",
        "contender: 1 (17.8, wheel)",
        "contender: 2 (external server)",
        "contender: 3 (16.9, wheel, to be downloaded)",
    ]
    assert lines[6].startswith("load: pgbench -n -c 4 -j 2 ")
    assert lines[6].endswith(" -b select-only (4 clients)")
    assert lines[7].startswith("design: tps, margin ±2.0 %, windows of a length fitted to the load per arm and block, ")
    assert not [line for line in dry_run_text(replace(found, study=study)).splitlines() if line.startswith("load:")]


def test_servers_to_be_built_are_listed(study: Study, tmp_path: Path) -> None:
    found = requested(study, tmp_path)
    lines = dry_run_text(replace(found, to_build=("17+blocksize=16", "./tree@HEAD"))).splitlines()
    assert "builds: 17+blocksize=16, ./tree@HEAD (several minutes each, on all processors)" in lines
    assert "downloads: none, all sources are available" in lines
    both = dry_run_text(replace(found, downloads=("zonky 17.8",), to_build=("18+cassert",))).splitlines()
    assert "downloads: zonky 17.8" in both
    neither = dry_run_text(found).splitlines()
    assert "downloads: none" in neither
    assert not [line for line in neither if line.startswith("builds:")]


@pytest.mark.needs_tools
@pytest.mark.usefixtures("study")
def test_a_source_build_that_is_not_cached_is_to_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGVERSUS_SOURCES", raising=False)
    (tmp_path / "cache" / "sources").mkdir()
    compiler = tmp_path / "cc-1"
    compiler.write_text("#!/bin/sh\necho cc 1.0\n")
    compiler.chmod(0o755)
    server, file = f"17.8+blocksize=16+cc={compiler}", tmp_path / "s.toml"
    text = file.read_text().replace('compare = "io_method"', 'compare = "server"')
    file.write_text(text.replace(str(tmp_path / "old"), server))
    found = requested(open_study(str(file)).study, tmp_path)
    assert (found.to_build, found.downloads) == ((server,), ("source of 17.8",))


def test_parts_are_reported_if_there_are_several(study: Study, tmp_path: Path) -> None:
    found = requested(study, tmp_path)

    def text(parts: int) -> str:
        return dry_run_text(replace(found, needs=replace(found.needs, parts=parts), free_bytes=2000))

    assert "at a time" not in text(1)
    assert " at a time (measured in 17 consecutive parts), 2 kB free" in text(17)


def test_an_insufficient_budget_is_distinguished_from_a_possible_one(study: Study, tmp_path: Path) -> None:
    found = requested(study, tmp_path)

    def text(budget_s: float) -> str:
        return dry_run_text(replace(found, needs=replace(found.needs, least_s=3600.0, most_s=budget_s)))

    assert "blocks: 1 h (all verdicts known at the first check) to 2 h (budget)" in text(7200.0)
    too_little = "blocks: 15 min, the whole budget, too short for all verdicts (about 1 h for the first checks alone)"
    assert too_little in text(900.0)


def test_a_dry_run_names_the_precision_that_ends_measuring(study: Study, tmp_path: Path) -> None:
    first, *rest = study.contexts
    design = replace(first.comparison.design, precision=0.03)
    precise = replace(study, contexts=(replace(first, comparison=replace(first.comparison, design=design)), *rest))
    found = requested(study, tmp_path)
    needs = replace(found.needs, least_s=3600.0, most_s=7200.0)
    text = dry_run_text(replace(found, study=precise, needs=needs))
    assert "blocks: 1 h (all intervals within ±3.0 % at the first check) to 2 h (budget)" in text


def test_a_study_without_disk_space_is_planned_and_refused(study: Study, tmp_path: Path) -> None:
    found = requested(study, tmp_path)
    check_disk_space(found)
    with pytest.raises(HostError) as caught:
        check_disk_space(replace(found, needs=replace(found.needs, disk_bytes=1e18)))
    assert caught.value.slug == "host-no-room"


@pytest.mark.usefixtures("study")
def test_settings_refused_by_a_local_server_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(file.read_text().replace('if_missing = "skip"', ""))
    with pytest.raises(StudyError) as caught:
        requested(open_study(str(file)).study, tmp_path)
    assert caught.value.slug == "study-setting-refused"


def test_an_impossible_results_folder_is_refused(study: Study, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        dry_run(study, tmp_path / ("r" * 300), USER)
    assert caught.value.slug == "store-unwritable"


def test_results_of_a_different_study_are_refused_first(study: Study, tmp_path: Path) -> None:
    possible = requested(study, tmp_path).study
    Results.begin(tmp_path / "r", possible.metadata, possible.contexts).close()
    requested(study, tmp_path)
    text = (tmp_path / "s.toml").read_text().replace("select-only", "tpcb-like")
    (tmp_path / "s.toml").write_text(text)
    other = open_study(str(tmp_path / "s.toml")).study
    with pytest.raises(StoreError) as caught:
        requested(other, tmp_path)
    assert caught.value.slug == "store-other-study"
    dry_run(other, tmp_path / "r", USER, earlier_results=EarlierResults.MOVE_AWAY, asks_servers=True)
    with pytest.raises(StoreError) as caught:
        dry_run(other, tmp_path / "r", USER, earlier_results=EarlierResults.REFUSE)
    assert caught.value.slug == "store-not-empty"


RAN = """#!/bin/sh
: > "{marker}"
[ "$1" = --version ] && echo "postgres (PostgreSQL) 17.8"
exit 0
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    cache = Cache(root=tmp_path / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    monkeypatch.setattr(module, "open_cache", lambda: cache)
    monkeypatch.delenv("PGVERSUS_SOURCES", raising=False)
    return cache


def of_servers(tmp_path: Path, *servers: str) -> Study:
    names = ", ".join(f'"{server}"' for server in servers)
    text = (
        f'title = "t"\n[factors]\nserver = [{names}]\nwork_mem = ["4MB", "8MB"]\n[workload]\nbuiltin = "select-only"\n'
    )
    (tmp_path / "s.toml").write_text(f'compare = "work_mem"\n{text}')
    return open_study(str(tmp_path / "s.toml")).study


def program(file: Path, marker: Path) -> Path:
    """A program that creates a file when it runs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(RAN.format(marker=marker))
    file.chmod(0o755)
    return file


def hostile_tree(tree: Path, marker: Path) -> Path:
    """A source tree whose repository makes git run a program."""
    (tree / "src" / "backend").mkdir(parents=True)
    (tree / "configure").touch()
    git = ("git", "-C", str(tree), "-c", "user.name=me", "-c", "user.email=me@example")
    for arguments in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "x")):
        subprocess.run([*git, *arguments], check=True)
    subprocess.run([*git, "config", "core.fsmonitor", str(program(tree / ".git" / "watch", marker))], check=True)
    return tree


@pytest.mark.needs_tools
@pytest.mark.usefixtures("cache")
def test_a_program_named_by_a_study_runs_only_when_servers_are_queried(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    for name in ("postgres", "initdb"):
        program(tmp_path / "bin" / name, marker)
    compiler = program(tmp_path / "cc", marker)
    for server, label in (
        (f"{tmp_path}/bin", f"{tmp_path}/bin"),
        (f"17.8+cc={compiler}", f"17.8+cc={compiler}"),
        (f"{hostile_tree(tmp_path / 'tree', marker)}", f"{tmp_path}/tree"),
        (f"{tmp_path}/tree@HEAD", f"{tmp_path}/tree@HEAD"),
        (f"{tmp_path}/tree+cassert", f"{tmp_path}/tree+cassert"),
    ):
        study = of_servers(tmp_path, server)
        found = dry_run(study, tmp_path / "r", USER)
        assert not marker.exists(), server
        assert (found.not_queried, found.to_build, found.study) == ((label,), (), study)
        line = f"not queried: {label} (add --ask-servers for versions and settings)"
        assert line in dry_run_text(found).splitlines()
    with suppress(BuildError):
        dry_run(of_servers(tmp_path, f"17.8+cc={compiler}"), tmp_path / "r", USER, asks_servers=True)
    assert marker.exists()


@pytest.mark.usefixtures("cache")
def test_a_custom_compiler_does_not_hide_the_other_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "programs"
    for name in ("gcc", "bison", "flex", "m4", "perl", "make"):
        program(path / name, tmp_path / "ran")
    monkeypatch.setattr(build_commands, "_PATH", str(path))
    found = dry_run(of_servers(tmp_path, "17.8+cassert", "17.8+cc=clang-99"), tmp_path / "r", USER)
    assert (found.to_build, found.downloads) == (("17.8+cassert",), ("source of 17.8",))
    assert found.not_queried == ("17.8+cc=clang-99",)


@pytest.mark.usefixtures("cache")
def test_a_directory_without_a_server_is_refused_without_running_anything(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "postgres", tmp_path / "ran")
    with pytest.raises(BuildError) as caught:
        dry_run(of_servers(tmp_path, f"{tmp_path}/bin"), tmp_path / "r", USER)
    assert (caught.value.slug, caught.value.found) == ("build-not-a-bin-directory", "no initdb")
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("cache")
def test_servers_are_queried_only_on_request_and_without_the_users_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "Geheim99")
    with listening() as server:
        study = of_servers(tmp_path, server.uri)
        found = dry_run(study, tmp_path / "r", USER)
        assert (server.connections, len(found.not_queried)) == (0, 1)
        assert found.not_queried[0].startswith("127.0.0.1:")
        found = dry_run(study, tmp_path / "r", USER, asks_servers=True)
        assert (server.connections > 0, server.passwords, found.not_queried) == (True, [], ())
        assert len(found.unreachable) == 1, "it refuses every login"
        assert f"not reachable: {found.unreachable[0]}" in dry_run_text(found).splitlines()
        dry_run(study, tmp_path / "r", USER, asks_servers=True, is_trusted=True)
        assert set(server.passwords) == {b"Geheim99"}


@pytest.mark.usefixtures("cache")
def test_requests_that_need_consent_are_listed(tmp_path: Path) -> None:
    found = dry_run(of_servers(tmp_path, "postgresql://u:Geheim99@h/db"), tmp_path / "r", USER)
    lines = dry_run_text(found, access=open_study(str(tmp_path / "s.toml")).access).splitlines()
    assert "connects to: postgresql://h/db" in lines
    assert "to allow all of this, add --trust, or answer yes when asked" in lines
    assert not [line for line in dry_run_text(found).splitlines() if "--trust" in line]


def of_text(tmp_path: Path, text: str) -> Study:
    (tmp_path / "s.toml").write_text(f'title = "t"\n[factors]\n{text}')
    return open_study(str(tmp_path / "s.toml")).study


EXTERNAL = 'server = ["postgresql:///a", "postgresql:///b"]\n[workload]\n'
MANAGED = 'server = ["17.8", "17.9"]\n[workload]\nbuiltin = "select-only"\n'


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("text", "slug"),
    [
        (f'{EXTERNAL}operation = "VACUUM"\n', "study-operation-running-server"),
        (
            f'{EXTERNAL}builtin = "select-only"\n[dataset]\nfull_statistics = true\n',
            "study-statistics-of-running-server",
        ),
        (f'{MANAGED}[design]\npin = "0-9999"\n', "host-processors"),
        (f'{MANAGED}[load]\nrate = 10\n[design]\nwindow = "50ms"\n', "study-short-window"),
    ],
)
def test_a_study_is_refused_if_the_run_would_refuse_its_only_context(tmp_path: Path, text: str, slug: str) -> None:
    with pytest.raises((StudyError, HostError)) as caught:
        dry_run(of_text(tmp_path, text), tmp_path / "r", USER)
    assert caught.value.slug == slug


@pytest.mark.usefixtures("cache")
def test_contexts_that_the_run_would_skip_are_listed_with_the_reason(tmp_path: Path) -> None:
    loads = '[loads.closed]\nclients = 1\n[loads.slow]\nrate = 10\n[design]\nwindow = "50ms"\n'
    study = of_text(tmp_path, f'load = ["closed", "slow"]\n{MANAGED}{loads}')
    found = dry_run(study, tmp_path / "r", USER)
    assert len(found.study.contexts) == 2
    (line,) = found.refused
    assert line.startswith("load=slow: the windows are too short")
    assert dry_run_text(found).splitlines()[-2:] == ["not measured, because it would be rejected:", f"  {line}"]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(("loads", "code"), [(("clients = 1", "rate = 10"), 0), (("rate = 10", "rate = 20"), 4)])
def test_a_dry_run_ends_like_a_run_that_would_measure_nothing(
    tmp_path: Path, loads: tuple[str, str], code: int
) -> None:
    tables = "".join(f"[loads.l{number}]\n{load}\n" for number, load in enumerate(loads))
    (tmp_path / "s.toml").write_text(
        f'title = "t"\n[factors]\nload = ["l0", "l1"]\n{MANAGED}{tables}[design]\nwindow = "50ms"\n'
    )
    arguments = [str(tmp_path / "s.toml"), "--dry-run", "--results", str(tmp_path / "r")]
    assert CliRunner().invoke(run, arguments, standalone_mode=False).return_value == code


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_profile_says_what_to_leave_out_on_a_small_disk(name: str, tmp_path: Path) -> None:
    published = open_study(name, profile="published").study
    found = dry_run(published, tmp_path / "r", USER)
    assert "disk: about" in dry_run_text(found)
    with pytest.raises(HostError) as caught:
        check_disk_space(replace(found, needs=replace(found.needs, disk_bytes=1e18)))
    assert "set PGVERSUS_CACHE to a directory on a different file system" in caught.value.to_do
    largest = found.needs.largest
    assert (f"such as {largest}" if largest else "use smaller data") in caught.value.to_do
