"""Builds happen once, completely or not at all, and store their log. The tree is a small one with the same layout."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from pgversus.builds import build_commands
from pgversus.builds.build_commands import check_tools, compiled_directories, compiler_version
from pgversus.builds.compile import build, built
from pgversus.builds.inspect import changed_files
from pgversus.builds.model import Build, Order, order_of
from pgversus.builds.provide import cached_builds
from pgversus.builds.source_tree import tree_source
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser, server_user
from pgversus.study.build_options import USUAL_MANNER, BuildManner, BuildOptions, BuildSystem
from pgversus.study.servers import Release
from tests.builders import MYSELF

DIRECTORIES = compiled_directories(USUAL_MANNER)
# No compiler is required: "compiling" only prints a line, and postgres is a script.
CONFIGURE = f"""#!/bin/sh
PACKAGE_VERSION='17.8'
echo "configured $*"
for directory in {" ".join(DIRECTORIES)}; do
    mkdir -p $directory
    cp "${{0%/*}}/src/makefile" $directory/Makefile
done
"""
MAKEFILE = """all:
\t@echo gcc -c -o x.o x.c
generated-headers:
install:
\tmkdir -p $(DESTDIR)/pgversus/bin
\tcp $(DESTDIR)/../tree/src/backend/postgres $(DESTDIR)/pgversus/bin/postgres
"""
POSTGRES = '#!/bin/sh\necho "postgres (PostgreSQL) 17.8"\n'
BROKEN = MAKEFILE.replace("@echo gcc", "@echo 'main.c:3:1: error: no such thing'; echo '    3 | int'; exit 1 #")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(root=tmp_path / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    return cache


@pytest.fixture(autouse=True)
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildOptions:
    """A host with all prerequisites; programs that this build does not run do nothing."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bison", "flex", "m4", "perl", "make", "cc-1"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setattr(build_commands, "_PATH", str(programs))
    return BuildOptions(compiler=str(programs / "cc-1"), cassert=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with everything that a build uses."""
    tree = tmp_path / "tree"
    (tree / "src" / "backend").mkdir(parents=True)
    for name, text in {"configure": CONFIGURE, "src/makefile": MAKEFILE, "src/backend/postgres": POSTGRES}.items():
        (tree / name).write_text(text)
        (tree / name).chmod(0o755)
    for number in range(3):
        (tree / "src" / "backend" / f"{number}.c").touch()
    return tree


def order(tree: Path, options: BuildOptions, manner: BuildManner = USUAL_MANNER) -> Order:
    return order_of("17.8+cassert", tree_source(tree), options, manner, "cc 1.0")


def made(order: Order, cache: Cache, user: ServerUser = MYSELF) -> tuple[Build, list[str], list[tuple[str, int, int]]]:
    said: list[str] = []
    steps: list[tuple[str, int, int]] = []
    found = build(order, cache, user, said.append, lambda *step: steps.append(step))
    return found, said, steps


def left(cache: Cache) -> list[str]:
    return [path.name for path in cache.staging.iterdir() if path.is_dir()]


def test_a_build_is_made_once_and_stored_completely(tree: Path, cache: Cache, options: BuildOptions) -> None:
    requested = order(tree, options)
    assert built(cache, requested.name) is None
    found, said, steps = made(requested, cache)
    home = cache.builds / requested.name
    assert found == Build(
        version="17.8", bin_directory=home / "bin", origin="source", sha256=requested.key, made_from=requested.made_from
    )
    assert said == [f"building 17.8+cassert from tree {tree}"]
    count = len(DIRECTORIES) - 1  # src/fe_utils is compiled as a dependency
    assert [(done, max(done, 3)) for done in range(1, count + 1)] == [(done, total) for _, done, total in steps]
    assert {label for label, _, _ in steps} == {"17.8+cassert"}
    manifest = json.loads((home / "build.json").read_text())
    assert sorted(manifest["files_sha256"]) == ["bin/postgres", "build.log"]
    assert changed_files(home, manifest["files_sha256"]) == []
    log = (home / "build.log").read_text()
    assert "--enable-cassert" in log.splitlines()[0]
    assert "configured " in log
    assert home.stat().st_mode & 0o777 == 0o755
    assert left(cache) == []
    again, said, steps = made(requested, cache)
    assert (again, said, steps) == (found, [], [])
    assert [(one.name, one.built) for one in cached_builds(cache)] == [(requested.name, found)]


def test_a_failed_build_leaves_only_its_log(tree: Path, cache: Cache, options: BuildOptions) -> None:
    (tree / "src" / "makefile").write_text(BROKEN)
    requested = order(tree, options)
    with pytest.raises(BuildError) as caught:
        made(requested, cache)
    error = caught.value
    log = cache.logs / f"{requested.name}.log"
    assert (error.slug, error.what) == ("build-failed", "17.8+cassert could not be built")
    assert error.where == f"tree {tree}, compiling"
    assert error.found == "main.c:3:1: error: no such thing\n    3 | int"
    assert error.to_do == f"see the full log in {log}"
    assert "$ make -j" in log.read_text()
    assert (list(cache.builds.iterdir()), left(cache)) == ([], [])


def test_an_error_of_configure_is_reported(tree: Path, cache: Cache, options: BuildOptions) -> None:
    (tree / "configure").write_text("#!/bin/sh\necho 'configure: error: no lz4'\necho 'see config.log'\nexit 1\n")
    with pytest.raises(BuildError) as caught:
        made(order(tree, options), cache)
    assert caught.value.where == f"tree {tree}, configuring"
    assert caught.value.found == "configure: error: no lz4"


def test_a_build_whose_program_does_not_run_is_rejected(tree: Path, cache: Cache, options: BuildOptions) -> None:
    (tree / "src" / "backend" / "postgres").write_text("#!/bin/sh\necho 'no libicu' >&2\nexit 1\n")
    with pytest.raises(BuildError) as caught:
        made(order(tree, options), cache)
    assert (caught.value.slug, caught.value.found) == ("build-cannot-run", "no libicu")
    assert (list(cache.builds.iterdir()), left(cache)) == ([], [])


def test_remains_of_killed_builds_are_removed_but_not_builds_in_progress(
    tree: Path, cache: Cache, options: BuildOptions
) -> None:
    requested = order(tree, options)
    for name in ("source-killed", "source-running", requested.name, "other"):
        (cache.staging / name / "build").mkdir(parents=True)
    (cache.builds / requested.name).mkdir()
    with FileLock(cache.staging / "source-running.lock"):
        made(requested, cache)
    assert sorted(left(cache)) == ["other", "source-running"]


def test_a_tree_without_meson_build_cannot_be_built_with_meson(tree: Path, cache: Cache, options: BuildOptions) -> None:
    with pytest.raises(BuildError) as caught:
        made(order(tree, options, BuildManner(system=BuildSystem.MESON)), cache)
    error = caught.value
    assert (error.slug, error.where) == ("build-other-system", "17.8+cassert")
    assert error.found == f"no meson.build in tree {tree}"
    assert error.to_do == "--build-system configure"


@pytest.mark.parametrize("text", ["", "{}", '{"version": "17.8", "bin": "bin", "sha256": "a", "made_from": {}}'])
def test_a_build_without_a_valid_manifest_is_ignored(cache: Cache, text: str) -> None:
    (cache.builds / "source-1").mkdir()
    assert built(cache, "source-1") is None
    (cache.builds / "source-1" / "build.json").write_text(text)
    assert built(cache, "source-1") is None


def test_a_cached_build_reports_the_requested_source(tree: Path, cache: Cache, options: BuildOptions) -> None:
    first, _, _ = made(order(tree, options), cache)
    requested = order(tree, options)
    # The same files, committed since then.
    committed = replace(requested.made_from, source=replace(requested.made_from.source, words="commit 1", commit="1"))
    again, said, _ = made(replace(requested, made_from=committed), cache)
    assert (again.bin_directory, said) == (first.bin_directory, [])
    assert again.made_from == committed


@pytest.mark.parametrize("is_there", [False, True])
def test_a_source_named_after_a_different_release_is_rejected(
    tree: Path, cache: Cache, options: BuildOptions, *, is_there: bool
) -> None:
    requested = order(tree, options)
    if is_there:
        made(requested, cache)
    with pytest.raises(BuildError) as caught:
        made(replace(requested, release=Release(major=16, minor=4)), cache)
    assert caught.value.slug == "build-damaged"
    assert (caught.value.found, caught.value.expected) == ("PostgreSQL 17.8", "PostgreSQL 16.4")
    assert len(list(cache.builds.iterdir())) == is_there
    found, _, _ = made(replace(requested, release=Release(major=17, minor=None)), cache)
    assert found.version == "17.8"


def test_commands_of_a_source_run_as_the_servers_user_and_the_result_belongs_to_us(
    tree: Path, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, notes = server_user(), open_directory / "notes"
    notes.mkdir()
    notes.chmod(0o777)
    cache = Cache(root=open_directory / "cache")
    for place in cache.places:
        place.mkdir(parents=True)
    programs = open_directory / "programs"
    programs.mkdir()
    for name in ("bison", "flex", "m4", "perl", "make"):
        (programs / name).write_text("#!/bin/sh\n")
    (programs / "cc-1").write_text(f"#!/bin/sh\nid -u >> {notes}/cc\necho 'cc 1.0'\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setattr(build_commands, "_PATH", str(programs))
    # Any source may run the programs that it is built with.
    (tree / "configure").write_text(
        f'{CONFIGURE}\nset -e\nid -u > {notes}/configure\nmkdir -p "$CCACHE_DIR"\n'
        'touch "$HOME/file" "$TMPDIR/file" "$CCACHE_DIR/file"\n'
        'for argument; do case $argument in CC=*) "${argument#CC=}" -c conftest.c;; esac; done\n'
    )
    makefile = MAKEFILE.replace("\t@echo gcc", f"\t@id -u > {notes}/make\n\t@echo gcc")
    (tree / "src" / "makefile").write_text(makefile.replace("install:\n", f"install:\n\tid -u > {notes}/install\n"))
    (tree / "src" / "backend" / "postgres").write_text(f"{POSTGRES}id -u > {notes}/postgres\n")
    options = BuildOptions(compiler=str(programs / "cc-1"))
    assert compiler_version(options, user) == "cc 1.0"
    check_tools([options], USUAL_MANNER, [BuildSystem.CONFIGURE], user, newest_major=18)
    found, _, _ = made(order(tree, options), cache, user)
    ran_as = {note.name: set(note.read_text().split()) for note in notes.iterdir()}
    assert ran_as == {name: {str(user.uid)} for name in ("cc", "configure", "make", "install", "postgres")}
    home = found.bin_directory.parent
    states = [path.lstat() for path in (home, *home.rglob("*"))]
    assert {state.st_uid for state in states} == {MYSELF.uid}
    assert {state.st_mode & 0o022 for state in states} == {0}
    assert left(cache) == []
    # Commands of a study run as the same user.
    assert user.is_self or (cache.ccache.stat().st_uid, cache.ccache.stat().st_mode & 0o777) == (MYSELF.uid, 0o700)


def test_a_build_that_installs_a_link_to_elsewhere_is_rejected(tree: Path, cache: Cache, options: BuildOptions) -> None:
    (tree / "src" / "makefile").write_text(f"{MAKEFILE}\tln -sf /etc/passwd $(DESTDIR)/pgversus/bin/build.json\n")
    with pytest.raises(BuildError) as caught:
        made(order(tree, options), cache)
    assert caught.value.slug == "build-failed"
    assert caught.value.found == "bin/build.json is a link to /etc/passwd, which is outside of the tree"
    assert (list(cache.builds.iterdir()), left(cache)) == ([], [])
