"""The servers on this host, and whether cached ones are unchanged."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from pgversus.builds.inspect import file_hashes
from pgversus.builds.model import BuildInputs, SourceFacts
from pgversus.builds.provide import CachedBuild, cached_builds
from pgversus.errors import ExitCode, StudyError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.lab import inventory as module
from pgversus.lab.inventory import installed_servers, named_builds, verified
from pgversus.records.inventory import InstalledServer
from pgversus.study.build_options import USUAL_MANNER, BuildManner, BuildOptions, BuildProfile, BuildSystem


def problems_of(build: CachedBuild) -> list[str]:
    return list(verified(build, ME).problems)


POSTGRES = """#!/bin/sh
[ "$1" = --version ] && echo "postgres (PostgreSQL) {version}"
[ "$1" = -C ] && echo {block}
exit 0
"""
ME = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
MADE = BuildInputs(
    source=SourceFacts(words="commit 0a1b of ./postgres", sha256="a"),
    options=BuildOptions(block_size_kb=16, cassert=True),
    manner=USUAL_MANNER,
    compiler="gcc 12",
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """No installed servers."""
    monkeypatch.setattr(module, "_INSTALLED", (f"{tmp_path}/installed/*/bin",))
    cache = Cache(root=tmp_path / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    return cache


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def make(cache: Cache, name: str, version: str = "17.8", block: int = 8192, **manifest: Any) -> CachedBuild:
    home = cache.builds / name
    program(home / "bin" / "postgres", POSTGRES.format(version=version, block=block))
    (home / "share").mkdir()
    (home / "share" / "postgres.bki").write_text("one")
    whole = {"version": version, "bin": "bin", "sha256": "k", "files_sha256": file_hashes(home), **manifest}
    (home / "build.json").write_text(json.dumps({key: value for key, value in whole.items() if value is not None}))
    return found(cache, name)


def found(cache: Cache, name: str) -> CachedBuild:
    return next(build for build in cached_builds(cache) if build.name == name)


def test_an_unchanged_build_has_no_problem(cache: Cache) -> None:
    assert problems_of(make(cache, "zonky-17.8")) == []


def test_an_added_file_is_a_problem_even_if_it_is_named_like_the_manifest(cache: Cache) -> None:
    build = make(cache, "zonky-17.8")
    (build.directory / "share" / "build.json").touch()
    assert problems_of(build) == ["changed since the build: share/build.json"]


def test_every_changed_file_is_a_problem(cache: Cache) -> None:
    build = make(cache, "zonky-17.8")
    (build.directory / "share" / "postgres.bki").write_text("two")
    assert problems_of(build) == ["changed since the build: share/postgres.bki"]
    (build.directory / "share" / "postgres.bki").unlink()
    (build.directory / "a").touch()
    assert problems_of(build) == ["changed since the build: a, share/postgres.bki"]
    for name in "bcd":
        (build.directory / name).touch()
    assert problems_of(build) == ["changed since the build: a, b, c and 2 more"]


def test_a_program_that_reports_a_different_version_is_a_problem(cache: Cache) -> None:
    assert problems_of(make(cache, "zonky-17.8", version="17.8")) == []
    build = make(cache, "zonky-17.9")
    program(build.directory / "bin" / "postgres", POSTGRES.format(version="17.10", block=8192))
    assert problems_of(build) == ["changed since the build: bin/postgres", "reports version 17.10"]
    program(build.directory / "bin" / "postgres", "#!/bin/sh\necho no libicu >&2\nexit 127\n")
    assert list(verified(build, ME).problems)[1:] == ["no libicu"]
    (build.directory / "bin" / "postgres").unlink()
    assert len(verified(build, ME).problems) == 2


@pytest.mark.parametrize("manifest", [None, "", "{}", '{"version": "17.8"}'])
def test_a_build_without_a_complete_manifest_is_incomplete(cache: Cache, manifest: str | None) -> None:
    build = make(cache, "zonky-17.8")
    if manifest is None:
        (build.directory / "build.json").unlink()
    else:
        (build.directory / "build.json").write_text(manifest)
    assert problems_of(build) == ["incomplete: its manifest cannot be read"]


def test_a_build_without_checksums_cannot_be_verified(cache: Cache) -> None:
    found = verified(make(cache, "zonky-17.8", files_sha256=None), ME)
    assert found.problems == ()
    assert str(found) == "runs; no checksums were stored when it was installed"


def test_builds_are_named_as_they_are_shown(cache: Cache) -> None:
    one, other = make(cache, "wheel-17.8"), make(cache, "zonky-16.4")
    assert named_builds(cache, []) == [one, other]
    assert named_builds(cache, ["zonky-16.4", "wheel-17.8", "zonky-16.4"]) == [other, one]


@pytest.mark.parametrize(
    ("name", "to_do"),
    [("zonky-16.5", "did you mean zonky-16.4?"), ("17", "list the servers with: pgversus servers")],
)
def test_an_unknown_name_is_answered_with_the_nearest(cache: Cache, name: str, to_do: str) -> None:
    make(cache, "zonky-16.4")
    with pytest.raises(StudyError) as caught:
        named_builds(cache, ["zonky-16.4", name])
    error = caught.value
    assert (error.slug, error.exit_code, error.found) == ("cache-unknown-name", ExitCode.USAGE, f'"{name}"')
    assert error.to_do == to_do


def test_every_server_is_shown_with_the_properties_it_reports(cache: Cache, tmp_path: Path) -> None:
    make(cache, "source-0a1b", block=16384, made_from=asdict(MADE))
    make(cache, "zonky-17.8")
    global_ = cache.builds / "zonky-17.8" / "lib" / "pgxs" / "src" / "Makefile.global"
    global_.parent.mkdir(parents=True)
    global_.write_text("CC = gcc\nCFLAGS = -Wall -Wmissing-prototypes -O2 -Wl,-z,now\n")
    installed = tmp_path / "installed" / "15" / "bin"
    program(installed / "postgres", POSTGRES.format(version="15.2", block=32768))
    program(installed / "pg_config", "#!/bin/sh\necho -Wall -O2 -g\n")
    program(tmp_path / "installed" / "client" / "bin" / "psql", "#!/bin/sh\n")
    source, zonky, other = installed_servers(cache, ME)
    size = found(cache, "source-0a1b").size_bytes
    assert source == InstalledServer(
        name="source-0a1b",
        version="17.8",
        origin="source",
        block_size_bytes=16384,
        flags="",
        options="+blocksize=16+cassert",
        size_bytes=size,
        directory=str(cache.builds / "source-0a1b"),
        made_from="commit 0a1b of ./postgres, gcc 12",
    )
    assert (zonky.version, zonky.origin, zonky.flags, zonky.made_from) == ("17.8", "zonky", "-O2 -Wl,-z,now", "")
    assert other == InstalledServer(
        name=str(installed),
        version="15.2",
        origin="installed",
        block_size_bytes=32768,
        flags="-O2 -g",
        options="",
        size_bytes=None,
        directory=str(installed),
        made_from="",
    )


def test_builds_made_in_a_different_manner_are_distinguished(cache: Cache) -> None:
    manner = BuildManner(profile=BuildProfile.FULL, system=BuildSystem.MESON)
    make(cache, "source-1", made_from=asdict(replace(MADE, manner=manner)))
    (only,) = installed_servers(cache, ME)
    assert only.made_from == "commit 0a1b of ./postgres, full, meson, gcc 12"


def test_a_server_that_cannot_be_queried_is_shown_without_properties(cache: Cache) -> None:
    (cache.builds / "zonky-17.8").mkdir()
    (only,) = installed_servers(cache, ME)
    assert (only.version, only.block_size_bytes, only.flags) == ("17.8", None, "")
