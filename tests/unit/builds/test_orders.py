"""Builds are checked before anything is fetched, and all missing prerequisites are reported together."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from pgversus.builds import build_commands, orders
from pgversus.builds.model import MANIFEST, BuildInputs, Order
from pgversus.builds.orders import fetched_orders, local_orders
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.study.build_options import USUAL_MANNER, BuildManner, BuildProfile, BuildSystem
from pgversus.study.servers import Release, ServerName, SourceBuild, parse_to_build
from tests.builders import MYSELF
from tests.unit.builds.source_tarballs import tarball

FULL = BuildManner(profile=BuildProfile.FULL)
PROGRAMS = ("gcc", "bison", "flex", "m4", "perl", "make")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in PATH, empty."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setattr(build_commands, "_PATH", str(path))
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache without tarballs; apt must not be called."""

    def unexpected(release: Release, directory: Path) -> tuple[Path, str]:
        raise AssertionError(release, directory)

    monkeypatch.setattr(orders, "debian_archive", unexpected)
    monkeypatch.delenv(orders.VARIABLE, raising=False)
    cache = Cache(root=tmp_path / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    return cache


def to_build(text: str) -> SourceBuild:
    name = parse_to_build(text)
    assert isinstance(name, SourceBuild)
    return name


def only_meson(directory: Path) -> SourceBuild:
    """A source tree without configure."""
    (directory / "src" / "backend").mkdir(parents=True)
    (directory / "meson.build").write_text("project('postgresql')\n")
    return to_build(str(directory))


def fill(path: Path, *names: str) -> None:
    for name in names:
        (path / name).write_text("#!/bin/sh\n")
        (path / name).chmod(0o755)


@pytest.mark.usefixtures("path")
def test_missing_tools_are_reported_before_any_source_is_fetched(tmp_path: Path, cache: Cache) -> None:
    names = [to_build("17+cc=clang-99"), only_meson(tmp_path / "tree"), to_build("18")]
    with pytest.raises(BuildError) as caught:
        local_orders(names, USUAL_MANNER, cache, MYSELF, {})
    assert (caught.value.slug, caught.value.where) == ("build-missing-tools", "build from source+cc=clang-99")
    missing = ("clang-99", "gcc", "bison", "flex", "m4", "perl", "make", "meson", "ninja (package ninja-build)")
    assert caught.value.found == f"no {', no '.join(missing)}"


@pytest.mark.parametrize("is_tree", [False, True])
@pytest.mark.parametrize(("major", "is_enough"), [(13, True), (14, False), (17, False)])
def test_a_full_build_requires_only_the_libraries_of_its_major(
    path: Path, tmp_path: Path, cache: Cache, major: int, *, is_enough: bool, is_tree: bool
) -> None:
    fill(path, *PROGRAMS, "pkg-config")
    # It finds all headers but those of lz4, which 14 was the first to use.
    (path / "cc-1").write_text("#!/bin/sh\n! grep -q lz4.h\n")
    (path / "cc-1").chmod(0o755)
    tree = tmp_path / "tree"
    (tree / "src" / "backend").mkdir(parents=True)
    (tree / "configure").write_text(f"PACKAGE_VERSION='{major}.1'\n")
    name = to_build(f"{tree if is_tree else major}+cc={path}/cc-1")
    if is_enough:
        assert list(local_orders([name], FULL, cache, MYSELF, {})) == [name]
    else:
        with pytest.raises(BuildError) as caught:
            local_orders([name], FULL, cache, MYSELF, {})
        assert caught.value.found.startswith("no lz4.h (package ")
        assert caught.value.found.count("no ") == 1


def test_a_tree_is_read_once_and_a_release_is_fetched_only_when_needed(
    path: Path, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path, *PROGRAMS, "meson", "ninja")
    tree, release = only_meson(tmp_path / "tree"), to_build("17+cassert")
    here = local_orders([tree, release, tree], USUAL_MANNER, cache, MYSELF, {})
    assert list(here) == [tree, release]
    assert here[release] is None
    found = here[tree]
    assert found is not None
    assert found.made_from.manner.system is BuildSystem.MESON
    monkeypatch.setattr(
        orders,
        "debian_archive",
        lambda _, directory: (tarball(directory / "postgresql-17_17.8.orig.tar.bz2"), "17.8-1"),
    )
    fetched = fetched_orders(here, USUAL_MANNER, cache, MYSELF, lambda _: None, lambda _, __: None, {})
    assert fetched[tree] is found
    assert fetched[release].made_from.source.words == "postgresql-17.8.tar.bz2"
    assert fetched[release].made_from.options.cassert


def test_cached_builds_require_no_tools(path: Path, tmp_path: Path, cache: Cache) -> None:
    fill(path, *PROGRAMS, "meson", "ninja")
    tree = only_meson(tmp_path / "tree")
    order = local_orders([tree], USUAL_MANNER, cache, MYSELF, {})[tree]
    assert order is not None
    home = cache.builds / order.name
    home.mkdir()
    made_from = TypeAdapter(BuildInputs).dump_python(order.made_from, mode="json")
    manifest = {"version": "17.8", "bin": "bin", "sha256": order.key, "made_from": made_from}
    (home / MANIFEST).write_text(json.dumps(manifest))
    for program in path.iterdir():
        if program.name != "gcc":
            program.unlink()
    assert keys(local_orders([tree], USUAL_MANNER, cache, MYSELF, {})) == [order.key]
    # A resumed study specifies the compiler of its first run, which may no longer exist.
    (path / "gcc").unlink()
    before: dict[ServerName, str] = {tree: order.made_from.compiler}
    assert keys(local_orders([tree], USUAL_MANNER, cache, MYSELF, before)) == [order.key]


def keys(orders: Mapping[SourceBuild, Order | None]) -> list[str | None]:
    return [None if order is None else order.key for order in orders.values()]
