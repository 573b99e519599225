"""`pgversus servers` on the command line, with a cache of its own and without a network."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pgversus.builds import build_commands
from pgversus.builds.inspect import file_hashes
from pgversus.cli.main import pgversus
from pgversus.errors import BuildError, ExitCode, StudyError
from pgversus.host.directories import Cache
from pgversus.lab import inventory as module
from tests.unit.data.kept import USER, cache_in, kept, recipe

POSTGRES = """#!/bin/sh
[ "$1" = --version ] && echo "postgres (PostgreSQL) 17.8"
[ "$1" = -C ] && echo 8192
exit 0
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache with two builds and a snapshot."""
    cache = cache_in(tmp_path)
    for place in cache.places:
        place.mkdir(exist_ok=True)
    monkeypatch.setattr("pgversus.host.directories.open_cache", lambda: cache)
    # No other user can enter it.
    monkeypatch.setattr("pgversus.host.identity.server_user", lambda: USER)
    monkeypatch.setattr(module, "_INSTALLED", ())
    kept(cache, recipe())
    for name in ("wheel-17.8", "zonky-17.8"):
        home = cache.builds / name
        (home / "bin").mkdir(parents=True)
        for program in ("postgres", "initdb"):
            (home / "bin" / program).write_text(POSTGRES)
            (home / "bin" / program).chmod(0o755)
        manifest = {"version": "17.8", "bin": "bin", "sha256": "k", "files_sha256": file_hashes(home)}
        (home / "build.json").write_text(json.dumps(manifest))
    return cache


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(pgversus, ["servers", *arguments], standalone_mode=False)


def names() -> list[str]:
    found: dict[str, Any] = json.loads(typed("--json").stdout)
    assert found["schema"] == "pgversus.servers/1"
    return [server["name"] for server in found["servers"]]


def test_list_is_the_default_command_and_shows_only_servers(cache: Cache) -> None:
    heads, *lines = typed().stdout.splitlines()
    assert heads.split()[:4] == ["name", "version", "origin", "block"]
    assert [line.split()[:3] for line in lines] == [
        ["wheel-17.8", "17.8", "wheel"],
        ["zonky-17.8", "17.8", "zonky"],
    ]
    assert typed("list").stdout == typed().stdout
    assert typed("list", "--json").stdout == typed("--json", "list").stdout == typed("--json").stdout
    assert json.loads(typed("--json").stdout)["cache"] == str(cache.root)
    assert names() == ["wheel-17.8", "zonky-17.8"]


@pytest.mark.usefixtures("cache")
def test_unchanged_builds_are_reported() -> None:
    ended = typed("verify")
    assert ended.stdout.splitlines() == ["wheel-17.8: unchanged", "zonky-17.8: unchanged"]
    assert ended.return_value == ExitCode.DONE


def test_a_changed_build_is_reported_and_fails(cache: Cache) -> None:
    (cache.builds / "zonky-17.8" / "bin" / "initdb").write_text("another")
    ended = typed("verify", "zonky-17.8")
    assert ended.stdout == "zonky-17.8: changed since the build: bin/initdb\n"
    assert ended.return_value == ExitCode.HOST
    assert typed("verify").return_value == ExitCode.HOST
    assert typed("verify", "wheel-17.8").return_value == ExitCode.DONE


@pytest.mark.usefixtures("cache")
def test_an_unknown_name_is_not_verified() -> None:
    ended = typed("verify", "zonky-17.9")
    assert isinstance(ended.exception, StudyError)
    assert (ended.exception.slug, ended.exception.to_do) == ("cache-unknown-name", "did you mean zonky-17.8?")


@pytest.mark.usefixtures("cache")
def test_removing_an_unknown_server_points_to_the_list_of_servers() -> None:
    error = typed("remove", "zonky-17.9").exception
    assert isinstance(error, StudyError)
    assert (error.where, error.to_do) == ("pgversus servers", "did you mean zonky-17.8?")


@pytest.mark.usefixtures("cache")
def test_only_named_servers_are_removed() -> None:
    ended = typed("remove", "zonky-17.8")
    assert ended.stdout.startswith("removed zonky-17.8, ")
    assert names() == ["wheel-17.8"]
    assert isinstance(typed("remove").exception, Exception)


def test_snapshots_are_not_servers(cache: Cache) -> None:
    ended = typed("remove", recipe().key)
    assert isinstance(ended.exception, StudyError)
    assert ended.exception.slug == "cache-unknown-name"
    assert (cache.snapshots / recipe().key).is_dir()
    typed("remove", "zonky-17.8", "wheel-17.8")
    assert typed("verify").stdout == "no servers in the cache\n"
    assert "pgversus servers install" in typed().stdout


def test_a_bin_directory_needs_no_installation(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    # Under root, servers run as a user who cannot enter the directories of tests.
    monkeypatch.setattr("pgversus.host.identity.server_user", lambda: USER)
    directory = cache.builds / "zonky-17.8" / "bin"
    assert typed("install", f"{directory}/").stdout == f"PostgreSQL 17.8 (bin directory) {directory}\n"


@pytest.mark.parametrize("command", ["install", "build"])
@pytest.mark.usefixtures("cache")
def test_external_servers_are_neither_installed_nor_built(command: str) -> None:
    ended = typed(command, "postgresql:///x")
    assert "an external server cannot be installed or built" in str(ended.exception)


@pytest.mark.usefixtures("cache")
def test_ready_made_builds_are_not_compiled() -> None:
    ended = typed("build", "zonky:17.8")
    assert isinstance(ended.exception, StudyError)
    assert ended.exception.slug == "study-ready-made"


@pytest.mark.usefixtures("cache")
def test_missing_tools_are_reported_for_the_requested_build_system_and_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_commands, "_PATH", str(tmp_path / "nothing"))
    found = []
    for flags in ([], ["--build-system", "meson"], ["--build-profile", "full"]):
        ended = typed("build", "17.8", *flags)
        assert isinstance(ended.exception, BuildError)
        assert ended.exception.slug == "build-missing-tools"
        found.append(ended.exception.found)
    assert [("meson" in one, "make" in one, "pkg-config" in one) for one in found] == [
        (False, True, False),
        (True, False, False),
        (False, True, True),
    ]
