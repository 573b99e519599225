"""Blocks of different builds, clients or machines are not mixed; changes by a reboot are accepted."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pgversus.builds.model import FROM_SOURCE, Build, BuildInputs, SourceFacts
from pgversus.errors import StoreError
from pgversus.host.directories import Cache
from pgversus.lab.resume_checks import (
    as_measured_before,
    build_facts,
    changes_of_host,
    check_same_builds,
    check_same_client,
    check_same_host,
    check_same_load_hosts,
    client_facts,
    compilers_before,
)
from pgversus.postgres.client import Client
from pgversus.study.build_options import NO_OPTIONS, USUAL_MANNER, BuildOptions
from pgversus.study.servers import (
    BuildFamily,
    Checkout,
    Download,
    LocalPath,
    Release,
    RunningServer,
    ServerName,
    SourceBuild,
)
from tests.builders import MYSELF

FOLDER = Path("r")
HOST = {
    "machine": "x86_64",
    "cpu_model": "Xeon",
    "cpus": 2,
    "cpus_usable": 2,
    "memory_bytes": 8_000_000_000,
    "file_system": "ext4",
    "kernel": "Linux 6.1.0-30",
    "free_bytes": 7,
}


@pytest.fixture
def build(tmp_path: Path) -> Build:
    (tmp_path / "postgres").write_text("one")
    return Build(version="17.8", bin_directory=tmp_path, origin="zonky", sha256="abc")


def test_builds_of_two_families_have_two_names(build: Build) -> None:
    zonky, wheel = (Release(major=17, minor=8, family=family) for family in BuildFamily)
    facts = build_facts({zonky: build, wheel: replace(build, origin="wheel"), RunningServer(uri="x"): None})
    assert sorted(facts) == ["wheel:17.8", "zonky:17.8"]
    check_same_builds({"builds": facts}, facts, FOLDER)


def test_a_different_version_under_the_same_name_is_refused(build: Build) -> None:
    name = Release(major=17, minor=None)
    before = {"builds": build_facts({name: build})}
    with pytest.raises(StoreError) as caught:
        check_same_builds(before, build_facts({name: replace(build, version="17.9")}), FOLDER)
    assert caught.value.slug == "store-other-build"
    assert (caught.value.found, caught.value.expected) == ("version 17.9", "version 17.8")


def test_a_release_resolves_to_the_version_and_family_measured_before(build: Build) -> None:
    major, minor = Release(major=17, minor=None), Release(major=16, minor=4)
    mine = LocalPath(path="/my/bin")
    others: list[ServerName] = [RunningServer(uri="postgresql:///x"), mine, Release(major=18, minor=None)]
    builds = build_facts({major: build, minor: replace(build, version="16.4"), mine: build})
    assert as_measured_before([major, minor, *others], {"builds": builds}) == [
        Release(major=17, minor=8, family=BuildFamily.ZONKY),
        Release(major=16, minor=4, family=BuildFamily.ZONKY),
        *others,
    ]
    assert as_measured_before([major], {}) == [major]


def test_a_release_built_from_source_resolves_to_the_version_measured_before(build: Build) -> None:
    cassert = BuildOptions(cassert=True)
    made = replace(build, origin="source")
    release, major = Release(major=17, minor=8), Release(major=17, minor=None)
    names: list[ServerName] = [major, SourceBuild(source=major), SourceBuild(source=major, options=cassert)]
    facts = build_facts(dict.fromkeys(names, made))
    assert sorted(facts) == ["17", "source:17", "source:17+cassert"]
    assert as_measured_before(names, {"builds": facts}) == [
        release,
        SourceBuild(source=release),
        SourceBuild(source=release, options=cassert),
    ]
    others: list[ServerName] = [
        SourceBuild(source=major, options=BuildOptions(block_size_kb=16)),
        Release(major=16, minor=None),
    ]
    assert as_measured_before(others, {"builds": facts}) == others


def test_a_resumed_run_uses_builds_of_the_earlier_compiler(build: Build, tmp_path: Path) -> None:
    cache = Cache(root=tmp_path / "cache")
    key = "0a1b2c3d4e5f" + 52 * "0"
    home = cache.builds / "source-0a1b2c3d4e5f"
    home.mkdir(parents=True)
    made_from = BuildInputs(
        source=SourceFacts(words="p.tar", sha256="a"), options=NO_OPTIONS, manner=USUAL_MANNER, compiler="gcc 11"
    )
    manifest = {"version": "17.8", "bin": "bin", "sha256": key, "made_from": asdict(made_from)}
    (home / "build.json").write_text(json.dumps(manifest))
    release, tree = Release(major=17, minor=None), SourceBuild(source=Checkout(path="./a", ref="master"))
    names: list[ServerName] = [release, tree, RunningServer(uri="postgresql:///x"), Release(major=16, minor=1)]
    made = replace(build, origin="source", sha256=key)
    earlier = {"builds": build_facts({release: made, tree: replace(made, sha256="f" * 64)})}
    meant = as_measured_before(names, earlier)
    # The tree's build has been removed.
    assert compilers_before(names, meant, earlier, cache) == {
        SourceBuild(source=Release(major=17, minor=8)): "gcc 11",
    }


def test_builds_of_other_sources_keep_their_name(build: Build) -> None:
    sources = (LocalPath(path="./a"), Checkout(path="./a", ref="master"), Download(address="https://h/p.tar"))
    names: list[ServerName] = [SourceBuild(source=source) for source in sources]
    for version in ("17.8", "19devel"):
        facts = build_facts(dict.fromkeys(names, replace(build, origin="source", version=version)))
        assert as_measured_before(names, {"builds": facts}) == names
    unreleased = SourceBuild(source=Release(major=19, minor=None))
    facts = build_facts({unreleased: replace(build, origin="source", version="19beta1")})
    assert as_measured_before([unreleased], {"builds": facts}) == [unreleased]


@pytest.mark.parametrize(
    "fact",
    [
        {},
        {"version": None},
        {"version": "17.8"},
        {"version": "17.8", "origin": None},
        {"version": "17.8", "origin": "source"},
        {"version": "17.8", "origin": "source", "artifact_sha256": None},
    ],
)
def test_a_build_without_version_origin_or_key_is_unknown_and_never_the_same(
    fact: dict[str, str | None], build: Build, tmp_path: Path
) -> None:
    name = Release(major=17, minor=None)
    earlier = {"builds": {"17": fact}}
    meant = as_measured_before([name], earlier)
    assert meant in ([name], [Release(major=17, minor=8)])
    assert compilers_before([name], meant, earlier, Cache(root=tmp_path)) == {}
    with pytest.raises(StoreError) as caught:
        check_same_builds(earlier, build_facts({name: build}), FOLDER)
    assert caught.value.slug == "store-other-build"


def test_a_different_build_of_the_same_version_in_the_same_directory_is_refused(build: Build) -> None:
    name = LocalPath(path="/my/bin")
    before = {"builds": build_facts({name: build})}
    build.program("postgres").write_text("another")
    with pytest.raises(StoreError) as caught:
        check_same_builds(before, build_facts({name: build}), FOLDER)
    assert caught.value.slug == "store-other-build"
    assert "postgres_sha256" in caught.value.found
    assert caught.value.found != caught.value.expected


def test_an_unreadable_program_is_identified_by_its_version(build: Build) -> None:
    build.program("postgres").unlink()
    facts = build_facts({Release(major=17, minor=None): build})
    assert facts["17"]["postgres_sha256"] is None


def test_a_different_pgbench_is_refused(tmp_path: Path) -> None:
    pgbench = tmp_path / "pgbench"
    pgbench.write_text("one")
    client = Client(pgbench=pgbench, psql=tmp_path / "psql", version="18.6", origin="--pgbench", user=MYSELF)
    before = {"client": client_facts(client)}
    check_same_client(before, client_facts(client), FOLDER)
    for other in (replace(client, version="17.8"), replace(client, origin="package 2")):
        with pytest.raises(StoreError) as caught:
            check_same_client(before, client_facts(other), FOLDER)
        assert caught.value.slug == "store-other-client"
    pgbench.write_text("another")
    with pytest.raises(StoreError):
        check_same_client(before, client_facts(client), FOLDER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cpu_model", "EPYC"),
        ("cpus", 4),
        ("cpus_usable", 1),
        ("machine", "aarch64"),
        ("memory_bytes", 16_000_000_000),
        ("file_system", "tmpfs"),
    ],
)
def test_a_different_machine_is_refused(name: str, value: object) -> None:
    with pytest.raises(StoreError) as caught:
        check_same_host({"host": HOST}, {**HOST, name: value}, FOLDER)
    assert caught.value.slug == "store-other-host"
    assert (caught.value.found, caught.value.expected) == (f"{name} {value}", f"{name} {HOST[name]}")


def test_an_updated_kernel_is_reported_and_accepted() -> None:
    now = {**HOST, "kernel": "Linux 6.1.0-31", "memory_bytes": 7_999_000_000, "free_bytes": 9}
    check_same_host({"host": HOST}, now, FOLDER)
    (line,) = changes_of_host({"host": HOST}, now)
    assert "6.1.0-30" in line
    assert "6.1.0-31" in line


@pytest.mark.parametrize(("before", "now"), [(["db1"], None), (None, ["db1"]), (["db1", "db2"], ["db1"])])
def test_blocks_under_the_load_of_other_hosts_are_not_mixed(before: list[str] | None, now: list[str] | None) -> None:
    earlier = {} if before is None else {"load_hosts": before}
    with pytest.raises(StoreError) as caught:
        check_same_load_hosts(earlier, now, Path("results"))
    assert caught.value.slug == "store-other-load-hosts"
    check_same_load_hosts(earlier, before, Path("results"))


def test_equal_builds_from_source_may_contain_the_paths_of_different_directories(build: Build) -> None:
    name, made = Release(major=17, minor=None), replace(build, origin=FROM_SOURCE, sha256="0" * 64)
    before = {"builds": build_facts({name: made})}
    made.program("postgres").write_text("with another path")
    check_same_builds(before, build_facts({name: made}), FOLDER)
    with pytest.raises(StoreError):
        check_same_builds(before, build_facts({name: replace(made, sha256="1" * 64)}), FOLDER)
