"""The build commands pass exactly the requested options to configure, make and meson."""

from pathlib import Path

import pytest

from pgversus.builds.build_commands import BuildDirectories, Command, as_typed, commands, compiled_directories
from pgversus.study.build_options import (
    NO_OPTIONS,
    USUAL_MANNER,
    BuildManner,
    BuildOptions,
    BuildProfile,
    BuildSystem,
)

MESON = BuildManner(system=BuildSystem.MESON)
FULL = BuildManner(profile=BuildProfile.FULL, system=BuildSystem.CONFIGURE)
FULL_MESON = BuildManner(profile=BuildProfile.FULL, system=BuildSystem.MESON)
PLACES = BuildDirectories(tree=Path("/s/tree"), build=Path("/s/build"), stage=Path("/s/stage"))
EVERYTHING = BuildOptions(
    block_size_kb=16,
    wal_block_size_kb=64,
    cassert=True,
    cflags="-O3 -g",
    handed_on=("enable-dtrace", "with-lz4", "with-uuid=e2fs", "without-zlib"),
)
LINKED = "LDFLAGS=-Wl,-rpath,'$$ORIGIN/../lib'"


def all_of(options: BuildOptions, manner: BuildManner, major: int = 17, compiler: str = "gcc") -> list[Command]:
    requested = manner if manner.system else BuildManner(profile=manner.profile, system=BuildSystem.CONFIGURE)
    return list(commands(PLACES, options, requested, compiler=compiler, major=major, jobs=3))


def configured(options: BuildOptions, manner: BuildManner, major: int = 17, compiler: str = "gcc") -> list[str]:
    """The arguments of configure or meson, without the program and the directories."""
    first, *_ = all_of(options, manner, major, compiler)
    assert first.step == "configuring"
    return [word for word in first.arguments if not word.startswith("/") and word not in ("meson", "setup")]


def test_configure_gets_the_options_of_every_build() -> None:
    assert configured(NO_OPTIONS, USUAL_MANNER) == [
        "--prefix=/pgversus",
        "--disable-rpath",
        "--without-icu",
        "--without-readline",
        "--without-zlib",
        "CC=gcc",
        LINKED,
    ]
    assert all_of(NO_OPTIONS, USUAL_MANNER)[0].arguments[0] == "/s/tree/configure"


def test_configure_gets_every_option_and_rejects_unknown_ones() -> None:
    assert configured(EVERYTHING, USUAL_MANNER, compiler="clang -m64") == [
        "--enable-option-checking=fatal",
        "--prefix=/pgversus",
        "--disable-rpath",
        "--without-icu",
        "--without-readline",
        "--without-zlib",
        "--with-blocksize=16",
        "--with-wal-blocksize=64",
        "--enable-cassert",
        "--enable-dtrace",
        "--with-lz4",
        "--with-uuid=e2fs",
        "--without-zlib",
        "CC=clang -m64",
        "CFLAGS=-O3 -g",
        LINKED,
    ]


@pytest.mark.parametrize(
    ("major", "libraries"),
    [
        (13, ["--with-icu", "--with-openssl", "--with-libxml"]),
        (14, ["--with-icu", "--with-lz4", "--with-openssl", "--with-libxml"]),
        (15, ["--with-icu", "--with-lz4", "--with-zstd", "--with-openssl", "--with-libxml"]),
        (99, ["--with-icu", "--with-lz4", "--with-zstd", "--with-openssl", "--with-libxml"]),
    ],
)
def test_a_full_build_has_the_libraries_that_its_major_supports(major: int, libraries: list[str]) -> None:
    words = configured(NO_OPTIONS, FULL, major)
    assert [word for word in words if word.startswith("--with")] == ["--without-readline", *libraries]


def test_meson_gets_the_defaults_of_configure() -> None:
    assert configured(NO_OPTIONS, MESON) == [
        "--prefix=/pgversus",
        "--libdir=lib",
        "-Doptimization=2",
        "-Ddebug=false",
        "-Dauto_features=disabled",
        "-Drpath=false",
        "-Dtap_tests=disabled",
        "-Dblocksize=8",
        "-Dwal_blocksize=8",
        "-Dcassert=false",
        "-Dc_link_args=-Wl,-rpath,$ORIGIN/../lib",
    ]
    first, *_ = all_of(NO_OPTIONS, MESON, compiler="clang")
    assert first.arguments[:4] == ("meson", "setup", "/s/build", "/s/tree")
    assert (first.environment, first.directory) == ({"CC": "clang"}, Path("/s"))


def test_meson_gets_every_option_by_its_own_names() -> None:
    words = configured(EVERYTHING, MESON)
    assert words[2:4] == ["--buildtype=plain", "-Dc_args=-O3 -g"]
    assert {"-Dblocksize=16", "-Dwal_blocksize=64", "-Dcassert=true"} < set(words)
    assert words[-4:] == ["-Ddtrace=enabled", "-Dlz4=enabled", "-Duuid=e2fs", "-Dzlib=disabled"]


def test_a_full_build_with_meson_has_the_same_libraries() -> None:
    libraries = [
        "-Dicu=enabled",
        "-Dlz4=enabled",
        "-Dzstd=enabled",
        "-Dssl=openssl",
        "-Dlibxml=enabled",
        "-Dzlib=enabled",
    ]
    assert configured(NO_OPTIONS, FULL_MESON)[-6:] == libraries


def test_compiled_directories_are_installed_in_the_stage() -> None:
    _, *rest = all_of(NO_OPTIONS, USUAL_MANNER)
    headers, *others = [one.arguments for one in rest if one.step == "compiling"]
    assert headers == ("make", "-j3", "-C", "src/backend", "generated-headers")
    assert all(words[:3] == ("make", "-j3", "-C") and words[4:] == ("all",) for words in others)
    installed = [one.arguments for one in rest if one.step == "installing"]
    assert all(words[-1] == "DESTDIR=/s/stage" for words in installed)
    compiled = [words[3] for words in others]
    assert [words[3] for words in installed] == compiled
    assert {"src/backend", "src/bin/initdb", "src/pl/plpgsql", "contrib/pg_prewarm"} < set(compiled)
    assert set(compiled) < set(compiled_directories(USUAL_MANNER))


def test_a_full_build_compiles_all_of_postgresql() -> None:
    rest = [one.arguments for one in all_of(NO_OPTIONS, FULL)[1:]]
    assert [(words[-2], words[-1]) for words in rest[:2]] == [("src", "all"), ("contrib", "all")]
    assert [words[3] for words in rest[2:]] == list(compiled_directories(FULL)) == ["src", "contrib"]


def test_meson_builds_and_installs_in_three_commands() -> None:
    assert [one.arguments for one in all_of(NO_OPTIONS, MESON)[1:]] == [
        ("ninja", "-j3"),
        ("meson", "install", "--quiet", "--no-rebuild", "--destdir=/s/stage"),
    ]


def test_a_command_is_shown_as_typed_in_a_shell() -> None:
    shown = as_typed(
        Command(step="w", arguments=("configure", "CFLAGS=-O3 -g", "$X"), environment={"CC": "clang -m64"})
    )
    assert shown == "'CC=clang -m64' configure 'CFLAGS=-O3 -g' '$X'"


def test_directories_required_by_options_are_built() -> None:
    options = BuildOptions(handed_on=("with-llvm", "with-perl"))
    shown = [as_typed(one) for one in commands(PLACES, options, USUAL_MANNER, compiler="gcc", major=17, jobs=1)]
    for directory in ("src/backend/jit/llvm", "src/pl/plperl"):
        assert f"make -j1 -C {directory} all" in shown
        assert f"make -s -C {directory} install DESTDIR=/s/stage" in shown
