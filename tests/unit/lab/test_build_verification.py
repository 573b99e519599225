"""The running server must match the requested build, and requested differences are not reported."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.builds.model import Build, BuildInputs, SourceFacts
from pgversus.errors import BuildError
from pgversus.lab.build_verification import (
    built_from,
    check_same_build,
    compiled_in,
    drop_requested_differences,
    library_differences,
)
from pgversus.postgres.catalog import ServerProperties, SettingValue
from pgversus.postgres.fingerprint import Fingerprint
from pgversus.records.preparation import BuildRecord, Difference
from pgversus.study.build_options import NO_OPTIONS, BuildManner, BuildOptions, BuildProfile, BuildSystem

COMPILER = "gcc (Debian 12.2.0-14) 12.2.0"
FETCHED = Build(version="17.8", bin_directory=Path("/c/builds/zonky-17.8/bin"), origin="zonky", sha256="a")
FACTS = SourceFacts(words="p.tar.bz2", sha256="b", checked="p.tar.bz2.sha256")
SETTINGS = {
    "server_version": "17.8",
    "block_size": "8192",
    "wal_block_size": "8192",
    "segment_size": "1GB",
    "debug_assertions": "off",
    "work_mem": "4MB",
}


def build(options: BuildOptions = NO_OPTIONS, source: SourceFacts = FACTS, manner: BuildManner | None = None) -> Build:
    made = BuildInputs(source=source, options=options, manner=manner or BuildManner(), compiler=COMPILER)
    home = Path("/c/builds/source-1/bin")
    return Build(version="17.8", bin_directory=home, origin="source", sha256="k", made_from=made)


def running(version: str = f"PostgreSQL 17.8 on x86_64, compiled by {COMPILER}, 64-bit", **more: str) -> Fingerprint:
    configuration = {name: value for name, value in more.items() if name.isupper()}
    found = {**SETTINGS, **{name: value for name, value in more.items() if not name.isupper()}}
    return Fingerprint(
        tables={},
        indexes={},
        settings={
            name: SettingValue(value=value, source="default", context="internal") for name, value in found.items()
        },
        properties=ServerProperties(
            version=version, encoding="UTF8", collation="C", has_jit=False, configuration=configuration
        ),
    )


def test_build_properties_that_a_server_reports_are_stored() -> None:
    expected = {name: SETTINGS[name] for name in ("block_size", "wal_block_size", "segment_size", "debug_assertions")}
    assert compiled_in(running()) == expected
    assert compiled_in(running(CONFIGURE="--with-icu")) == {**expected, "CONFIGURE": "--with-icu"}


@pytest.mark.parametrize(
    ("options", "server"),
    [
        (NO_OPTIONS, running()),
        (
            BuildOptions(block_size_kb=16, wal_block_size_kb=64, cassert=True),
            running(block_size="16384", wal_block_size="65536", debug_assertions="on"),
        ),
        (BuildOptions(cflags="-O3 -g"), running(CFLAGS="-Wall -Wmissing-prototypes -O3  -g")),
        (NO_OPTIONS, running(version="PostgreSQL 17.8 on x86_64-linux, compiled by gcc-12.2.0, 64-bit")),
        (NO_OPTIONS, running(version="PostgreSQL 17.8 on x86_64-linux, compiled by mycc, 64-bit")),
    ],
)
def test_a_server_that_matches_the_request_is_accepted(options: BuildOptions, server: Fingerprint) -> None:
    check_same_build("17", build(options), server)


@pytest.mark.parametrize(
    ("options", "server", "found", "expected"),
    [
        (BuildOptions(block_size_kb=16), running(), "block_size 8192", "block_size 16384"),
        (NO_OPTIONS, running(wal_block_size="16384"), "wal_block_size 16384", "wal_block_size 8192"),
        (BuildOptions(cassert=True), running(), "debug_assertions off", "debug_assertions on"),
        (NO_OPTIONS, running(server_version="17.9"), "server_version 17.9", "server_version 17.8"),
        (BuildOptions(cflags="-O3"), running(CFLAGS="-Wall -O2"), "CFLAGS -Wall -O2", "CFLAGS -O3"),
        (
            BuildOptions(block_size_kb=4, cassert=True),
            running(),
            "block_size 8192, debug_assertions off",
            "block_size 4096, debug_assertions on",
        ),
        (
            NO_OPTIONS,
            running(version="PostgreSQL 17.8 on x86_64, compiled by clang version 16.0.6, 64-bit"),
            "compiler clang version 16.0.6",
            f"compiler {COMPILER}",
        ),
        (
            NO_OPTIONS,
            running(version="PostgreSQL 17.8 on x86_64-linux, compiled by gcc-2.2.0, 64-bit"),
            "compiler gcc-2.2.0",
            f"compiler {COMPILER}",
        ),
    ],
)
def test_a_server_that_does_not_match_the_request_is_refused(
    options: BuildOptions, server: Fingerprint, found: str, expected: str
) -> None:
    with pytest.raises(BuildError) as caught:
        check_same_build("17+x", build(options), server)
    error = caught.value
    assert (error.slug, error.where, error.found, error.expected) == ("build-mismatch", "17+x", found, expected)
    assert "pgversus servers remove source-1" in error.to_do


@pytest.mark.parametrize("other", [None, FETCHED])
def test_only_builds_from_source_are_verified(other: Build | None) -> None:
    check_same_build("17", other, running(block_size="32768"))
    assert built_from(other, build()) is None


def test_all_inputs_of_a_build_are_stored() -> None:
    manner = BuildManner(profile=BuildProfile.FULL, system=BuildSystem.MESON)
    source = replace(FACTS, commit="c" * 40, is_changed=True)
    assert built_from(build(BuildOptions(block_size_kb=16, cassert=True), source, manner), None) == BuildRecord(
        source="p.tar.bz2",
        source_sha256="b",
        checked="p.tar.bz2.sha256",
        commit="c" * 40,
        is_changed=True,
        options=("blocksize=16", "cassert"),
        profile="full",
        system="meson",
    )
    for baseline in (FETCHED, build(), build(source=replace(FACTS, sha256="other"))):
        found = built_from(build(), baseline)
        assert found is not None
        assert (found.system, found.diff_stat) == ("configure", None)


def difference(kind: str, name: str) -> Difference:
    return Difference(kind=kind, name=name, values=("a", "b"), is_default=False)


@pytest.mark.parametrize(
    ("options", "follow"),
    [
        (BuildOptions(block_size_kb=16), [("build", "--with-blocksize"), ("setting", "block_size")]),
        (BuildOptions(wal_block_size_kb=16), [("build", "--with-wal-blocksize"), ("setting", "wal_block_size")]),
        (BuildOptions(cassert=True), [("build", "--enable-cassert"), ("setting", "debug_assertions")]),
        (BuildOptions(cflags="-O3"), [("build", "CFLAGS")]),
        (BuildOptions(compiler="clang"), [("build", "compiler")]),
        (
            BuildOptions(handed_on=("with-lz4", "with-uuid=e2fs")),
            [("build", "--with-lz4"), ("build", "--with-uuid"), ("build", "libraries"), ("build", "JIT available")],
        ),
    ],
)
def test_only_requested_differences_are_dropped(options: BuildOptions, follow: list[tuple[str, str]]) -> None:
    requested = [difference(*one) for one in follow]
    others = [difference("setting", "jit"), difference("build", "--with-icu"), difference("setting", "libraries")]
    arms = [build(options), FETCHED, None]
    assert drop_requested_differences([*requested, *others], arms) == tuple(others)
    alike = [build(options), build(options)]
    assert drop_requested_differences([*requested, *others], alike) == (*requested, *others)


def test_options_common_to_all_arms_drop_no_differences() -> None:
    both, one = BuildOptions(handed_on=("with-lz4", "with-zstd")), BuildOptions(handed_on=("with-lz4",))
    found = drop_requested_differences(
        [difference("build", "--with-lz4"), difference("build", "--with-zstd")], [build(both), build(one)]
    )
    assert [one.name for one in found] == ["--with-lz4"]


def test_libraries_of_some_arms_only_are_a_difference() -> None:
    one, other, unknown = frozenset({"libz", "liblz4", "libm"}), frozenset({"libz", "libm"}), frozenset[str]()
    (found,) = library_differences([one, other, unknown])
    assert (found.kind, found.name, found.values) == ("build", "libraries", ("liblz4", "", ""))
    assert [library_differences(same) for same in ([one, one], [one, unknown], [unknown, unknown], [])] == [()] * 4
