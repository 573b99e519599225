"""All missing prerequisites of a build are reported together, with their packages."""

import os
from pathlib import Path

import pytest

from pgversus.builds import build_commands as module
from pgversus.builds.build_commands import check_tools, compiler_of, compiler_version, with_ccache
from pgversus.errors import BuildError, ExitCode
from pgversus.study.build_options import NO_OPTIONS, USUAL_MANNER, BuildManner, BuildOptions, BuildProfile, BuildSystem
from tests.builders import MYSELF

PROGRAMS = ("bison", "flex", "m4", "perl", "make")
FULL = BuildManner(profile=BuildProfile.FULL)
# Does not find headers whose name contains `missing`.
COMPILER = """#!/bin/sh
[ "$1" = --version ] && echo " cc (Some Linux) 14.2.0 " && echo "Copyright" && exit
! grep -q "{missing}"
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory in PATH."""
    path = tmp_path / "bin"
    path.mkdir()
    monkeypatch.setattr(module, "_PATH", str(path))
    return path


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def compiler(path: Path, missing: str = "nothing") -> BuildOptions:
    """A compiler at a path of its own, so that no other is found."""
    return BuildOptions(compiler=str(program(path / "cc-14", COMPILER.format(missing=missing))))


def refused(options: BuildOptions, manner: BuildManner, system: BuildSystem) -> BuildError:
    with pytest.raises(BuildError) as caught:
        check_tools([options], manner, [system], MYSELF, newest_major=18)
    assert (caught.value.slug, caught.value.exit_code) == ("build-missing-tools", ExitCode.HOST)
    return caught.value


@pytest.mark.usefixtures("path")
def test_all_missing_programs_are_reported_together() -> None:
    error = refused(BuildOptions(cassert=True), USUAL_MANNER, BuildSystem.CONFIGURE)
    assert error.found == "no gcc, no bison, no flex, no m4, no perl, no make"
    assert error.where == "build from source+cassert"
    assert error.to_do.endswith("gcc bison flex m4 perl make")


@pytest.mark.usefixtures("path")
def test_a_program_is_reported_with_its_package_if_the_names_differ() -> None:
    error = refused(NO_OPTIONS, FULL, BuildSystem.MESON)
    assert "no meson, no ninja (package ninja-build), no pkg-config" in error.found
    assert "make" not in error.found
    assert "ninja-build" in error.to_do


def test_existing_programs_are_not_reported(path: Path) -> None:
    for name in PROGRAMS:
        program(path / name)
    requested = compiler(path)
    check_tools([requested], USUAL_MANNER, [BuildSystem.CONFIGURE], MYSELF, newest_major=18)
    (path / "flex").unlink()
    (path / "m4").chmod(0o644)
    assert refused(requested, USUAL_MANNER, BuildSystem.CONFIGURE).found == "no flex, no m4"


@pytest.mark.parametrize(
    ("missing", "manner", "found"),
    [
        ("stdio.h", USUAL_MANNER, ("stdio.h", "libc6-dev", "glibc-devel")),
        ("lz4.h", FULL, ("lz4.h", "liblz4-dev", "lz4-devel")),
        ("<libxml/parser.h>", FULL, ("libxml2/libxml/parser.h", "libxml2-dev", "libxml2-devel")),
    ],
)
def test_missing_headers_are_reported(
    path: Path, missing: str, manner: BuildManner, found: tuple[str, str, str]
) -> None:
    for name in (*PROGRAMS, "pkg-config"):
        program(path / name)
    error = refused(compiler(path, missing), manner, BuildSystem.CONFIGURE)
    header, *packages = found
    assert error.found in [f"no {header} (package {package})" for package in packages]
    assert any(error.to_do.endswith(package) for package in packages)


def test_a_minimal_build_requires_no_libraries(path: Path) -> None:
    for name in PROGRAMS:
        program(path / name)
    check_tools([compiler(path, "lz4.h")], USUAL_MANNER, [BuildSystem.CONFIGURE], MYSELF, newest_major=18)


def test_every_requested_compiler_is_checked(path: Path) -> None:
    for name in (*PROGRAMS, "clang"):
        program(path / name)
    with pytest.raises(BuildError) as caught:
        check_tools(
            [BuildOptions(compiler=name) for name in ("clang -m64", "tcc", "icx")],
            USUAL_MANNER,
            [BuildSystem.CONFIGURE],
            MYSELF,
            newest_major=18,
        )
    assert "no tcc, no icx" in caught.value.found
    assert "no clang" not in caught.value.found


def test_headers_missing_for_one_compiler_are_reported_with_another_missing_compiler(path: Path) -> None:
    for name in PROGRAMS:
        program(path / name)
    requested = [BuildOptions(compiler="tcc"), compiler(path, "stdio.h")]
    with pytest.raises(BuildError) as caught:
        check_tools(requested, USUAL_MANNER, [BuildSystem.CONFIGURE], MYSELF, newest_major=18)
    assert caught.value.found.startswith("no tcc, no stdio.h (package ")


def test_a_compiler_is_identified_by_the_first_line_of_its_version(path: Path) -> None:
    assert compiler_version(compiler(path), MYSELF) == "cc (Some Linux) 14.2.0"
    mute = BuildOptions(compiler=str(program(path / "mute", "#!/bin/sh\nexit 1\n")))
    assert compiler_version(mute, MYSELF) == str(path / "mute")
    assert compiler_version(BuildOptions(compiler="clang-99 -m64"), MYSELF) == "clang-99 -m64"
    assert compiler_of(NO_OPTIONS) == "gcc"


def test_ccache_comes_first_in_path_under_the_compilers_name(path: Path, tmp_path: Path) -> None:
    ccache = program(path / "ccache")
    links = tmp_path / "links"
    for _ in range(2):
        assert with_ccache(links, "clang -m64") == {"PATH": f"{links}:{path}"}
        assert {name: (links / name).readlink() for name in os.listdir(links)} == {"clang": ccache}  # noqa: PTH208


def test_without_ccache_the_compiler_is_used_directly(path: Path, tmp_path: Path) -> None:
    assert with_ccache(tmp_path / "links", "gcc") == {}
    program(path / "ccache")
    assert with_ccache(tmp_path / "links", "/opt/bin/gcc") == {}
    assert not (tmp_path / "links").exists()
