"""`pgversus cache` on the command line, with a cache of its own."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pgversus.cli.main import pgversus
from pgversus.errors import StudyError
from pgversus.host.directories import Cache, in_use
from tests.unit.data.kept import cache_in, kept, recipe

KEY = recipe().key


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    cache = cache_in(tmp_path)
    monkeypatch.setattr("pgversus.host.directories.open_cache", lambda: cache)
    kept(cache, recipe(), size_bytes=5_000_000)
    (cache.builds / "zonky-17.8").mkdir()
    return cache


def typed(*arguments: str) -> Result:
    return CliRunner().invoke(pgversus, ["cache", *arguments])


def names() -> list[str]:
    return [thing["name"] for thing in json.loads(typed("--json").stdout)["things"]]


@pytest.mark.usefixtures("cache")
def test_list_is_the_default_command() -> None:
    assert "pgbench tables at scale 1" in typed().stdout
    assert typed().stdout == typed("list").stdout
    assert names() == ["zonky-17.8", KEY]
    assert typed("--json", "list").stdout == typed("list", "--json").stdout == typed("--json").stdout


@pytest.mark.usefixtures("cache")
def test_only_list_prints_a_json_document() -> None:
    ended = typed("--json", "remove", "--all")
    assert ended.exit_code == 2
    assert "remove has no JSON output" in ended.stderr
    assert names() == ["zonky-17.8", KEY]


def test_the_ccache_of_a_running_build_stays(cache: Cache) -> None:
    cache.ccache.mkdir(parents=True)
    (cache.ccache / "object").write_bytes(b"x")
    with in_use([cache.ccache]):
        assert "ccache" in typed("remove", "ccache").stdout
        assert cache.ccache.exists()


def test_ccache_is_listed_and_removed_by_all_or_by_name(cache: Cache) -> None:
    for flags in (["ccache"], ["--all"]):
        (cache.ccache / "0" / "1").mkdir(parents=True)
        (cache.ccache / "0" / "1" / "object").write_bytes(b"x" * 3_000_000)
        assert "ccache" in names()
        assert "1 ccache, 3 MB" in typed().stdout
        assert "removed ccache, 3 MB" in typed("remove", *flags).stdout
        assert "ccache" not in names() + typed().stdout.split()
        assert not cache.ccache.exists()


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        (["--snapshots"], ["zonky-17.8"]),
        (["--builds"], [KEY]),
        (["--all"], []),
        ([KEY[:8]], ["zonky-17.8"]),
        (["zonky-17.8", "--snapshots"], []),
    ],
)
@pytest.mark.usefixtures("cache")
def test_named_entries_are_removed_and_reported(flags: list[str], left: list[str]) -> None:
    ended = typed("remove", *flags)
    assert ended.exit_code == 0
    assert (f"removed {KEY}, 5 MB" in ended.stdout) is (KEY not in left)
    assert names() == left


@pytest.mark.usefixtures("cache")
def test_nothing_is_removed_without_valid_names() -> None:
    assert typed("remove").exit_code == 2
    ended = typed("remove", KEY, "nothing")
    assert isinstance(ended.exception, StudyError)
    assert ended.exception.slug == "cache-unknown-name"
    assert names() == ["zonky-17.8", KEY]
