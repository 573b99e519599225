from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import ExitCode, StudyError
from pgversus.study.build_options import BLOCK_SIZES, NO_OPTIONS, WAL_BLOCK_SIZES, BuildOptions
from pgversus.study.servers import (
    OLDEST_MAJOR,
    BuildFamily,
    Checkout,
    Download,
    LocalPath,
    Release,
    RunningServer,
    SourceBuild,
    SourceName,
    Version,
    name_in_full,
    parse_server,
    parse_to_build,
    released_version,
    versions_of,
)

SEVENTEEN = Release(major=17, minor=None)
TARBALL = "https://ftp.example/a+b/postgresql-17.8.tar.bz2"
HASH = "0123456789abcdef" * 4
PATHS = st.from_regex(r"\.{0,2}/([a-z+.][a-z0-9+. -]{0,5}/){0,2}([a-z0-9.][a-z0-9. -]{0,5})?", fullmatch=True)
REFS = st.from_regex(r"[a-zA-Z0-9_][a-zA-Z0-9_.~^-]{0,6}(/[a-zA-Z0-9_.]{1,6})?", fullmatch=True)
SOURCES: st.SearchStrategy[SourceName] = (
    st.builds(Release, major=st.integers(OLDEST_MAJOR, 99), minor=st.none() | st.integers(0, 999))
    | st.builds(LocalPath, path=PATHS)
    | st.builds(Checkout, path=PATHS, ref=REFS)
    | st.builds(
        Download,
        address=st.sampled_from([TARBALL, "http://h/p.tar", "HTTPS://h:80/a@b/p.tgz"]),
        sha256=st.sampled_from([None, HASH, "0" * 64]),
    )
)
FLAGS = st.none() | st.from_regex(r"-[A-Za-z][a-z0-9=/. -]{0,9}", fullmatch=True)
OPTIONS = st.builds(
    BuildOptions,
    block_size_kb=st.sampled_from(BLOCK_SIZES),
    wal_block_size_kb=st.sampled_from(WAL_BLOCK_SIZES),
    cassert=st.booleans(),
    cflags=FLAGS,
    compiler=st.sampled_from([None, "clang", "/opt/bin/gcc-14", "clang -I/x"]),
    handed_on=st.sets(st.sampled_from(["with-lz4", "without-icu", "enable-dtrace", "with-uuid=e2fs"])).map(
        lambda words: tuple(sorted(words))
    ),
)


def built(source: SourceName, **options: Any) -> SourceBuild:
    return SourceBuild(source=source, options=BuildOptions(**options))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", Release(major=17, minor=None)),
        ("17.8", Release(major=17, minor=8)),
        ("12.0", Release(major=12, minor=0)),
        ("wheel:17.11", Release(major=17, minor=11, family=BuildFamily.WHEEL)),
        ("zonky:17", Release(major=17, minor=None, family=BuildFamily.ZONKY)),
        ("/usr/lib/postgresql/17/bin", LocalPath(path="/usr/lib/postgresql/17/bin")),
        ("./bin", LocalPath(path="./bin")),
        ("bin/", LocalPath(path="bin/")),
        ("17/bin", LocalPath(path="17/bin")),
        ("./cflags=-O3/bin", LocalPath(path="./cflags=-O3/bin")),
        (".", LocalPath(path=".")),
        ("..", LocalPath(path="..")),
        ("postgresql://host/db", RunningServer(uri="postgresql://host/db")),
        ("postgres://u:secret@host:5433/db?sslmode=require", None),
        ("POSTGRESQL://host/db", RunningServer(uri="POSTGRESQL://host/db")),
    ],
)
def test_every_form_of_server_name_is_parsed(text: str, expected: object) -> None:
    assert parse_server(text) == (expected or RunningServer(uri=text))


@given(st.integers(OLDEST_MAJOR, 99), st.none() | st.integers(0, 999), st.none() | st.sampled_from(BuildFamily))
def test_release_names_round_trip(major: int, minor: int | None, family: BuildFamily | None) -> None:
    release = Release(major=major, minor=minor, family=family)
    assert parse_server(f"{family}:{release}" if family else str(release)) == release


@pytest.mark.parametrize(
    "text", ["", " ", "seventeen", "17.8.1", "-17", "17beta1", "117", "17.", ".8", "host=x", "17 "]
)
def test_texts_that_are_not_server_names_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    assert caught.value.slug == "study-unknown-server"
    assert caught.value.exit_code is ExitCode.USAGE
    assert "postgresql://host/database" in caught.value.expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("source:17", built(SEVENTEEN)),
        ("source:17.8+cassert", built(Release(major=17, minor=8), cassert=True)),
        ("17+blocksize=16", built(SEVENTEEN, block_size_kb=16)),
        (
            "17.8+wal-blocksize=16+cassert",
            built(Release(major=17, minor=8), wal_block_size_kb=16, cassert=True),
        ),
        ("18+cflags=-O3", built(Release(major=18, minor=None), cflags="-O3")),
        ("18+cflags=-O3 -g", built(Release(major=18, minor=None), cflags="-O3 -g")),
        ("17+cflags=-I/x", built(SEVENTEEN, cflags="-I/x")),
        ("17+cflags=-I/x+cassert", built(SEVENTEEN, cflags="-I/x", cassert=True)),
        ("17+cc=/usr/bin/clang+blocksize=4", built(SEVENTEEN, compiler="/usr/bin/clang", block_size_kb=4)),
        ("17+with-lz4", built(SEVENTEEN, handed_on=("with-lz4",))),
        ("17+without-icu+enable-dtrace", built(SEVENTEEN, handed_on=("enable-dtrace", "without-icu"))),
        ("./postgres@origin/master", built(Checkout(path="./postgres", ref="origin/master"))),
        ("./postgres@REF+cassert", built(Checkout(path="./postgres", ref="REF"), cassert=True)),
        ("/src/a+b/postgres@HEAD~3", built(Checkout(path="/src/a+b/postgres", ref="HEAD~3"))),
        (
            "./postgresql-17.8.tar.bz2+blocksize=4",
            built(LocalPath(path="./postgresql-17.8.tar.bz2"), block_size_kb=4),
        ),
        (TARBALL, built(Download(address=TARBALL))),
        (f"{TARBALL}+blocksize=32", built(Download(address=TARBALL), block_size_kb=32)),
        ("http://localhost/p.tar", built(Download(address="http://localhost/p.tar"))),
        (f"{TARBALL}#sha256={HASH}", built(Download(address=TARBALL, sha256=HASH))),
        (f"{TARBALL}#sha256={HASH.upper()}+cassert", built(Download(address=TARBALL, sha256=HASH), cassert=True)),
        ("./a+b/tree+cassert", built(LocalPath(path="./a+b/tree"), cassert=True)),
        (".+cassert", built(LocalPath(path="."), cassert=True)),
        ("./c++/+cassert", built(LocalPath(path="./c++/"), cassert=True)),
        ("./c++/", LocalPath(path="./c++/")),
        ("./a+cassert/", LocalPath(path="./a+cassert/")),
        ("/opt/postgresql@17/bin/", LocalPath(path="/opt/postgresql@17/bin/")),
    ],
)
def test_source_builds_are_parsed_with_their_options(text: str, expected: object) -> None:
    assert parse_server(text) == expected


@given(SOURCES, OPTIONS)
def test_full_names_of_source_builds_round_trip(source: SourceName, options: BuildOptions) -> None:
    name = SourceBuild(source=source, options=options)
    again = parse_to_build(name_in_full(name))
    assert again == name
    assert name_in_full(name).endswith(str(name))
    if isinstance(source, Release | Checkout | Download) or options != NO_OPTIONS:
        # A path alone may also be a bin directory, which is determined later.
        assert parse_server(name_in_full(name)) == name


@given(st.lists(SOURCES, min_size=2, max_size=2), st.lists(OPTIONS, min_size=2, max_size=2))
def test_different_builds_have_different_names(sources: list[SourceName], given: list[BuildOptions]) -> None:
    one, other = (SourceBuild(source=source, options=options) for source, options in zip(sources, given, strict=True))
    assert (name_in_full(one) == name_in_full(other)) is (one == other)


def test_a_release_from_source_has_its_own_name() -> None:
    names = [name_in_full(name) for name in (SEVENTEEN, SourceBuild(source=SEVENTEEN))]
    assert names == ["17", "source:17"]


def test_the_order_of_options_does_not_matter() -> None:
    words = ["blocksize=16", "with-lz4", "cassert", "without-icu", "cflags=-O3"]
    names = {parse_server("+".join(["17", *order])) for order in permutations(words)}
    (name,) = names
    assert str(name) == "17+blocksize=16+cassert+cflags=-O3+with-lz4+without-icu"


@pytest.mark.parametrize("text", ["17+blocksize=8", "17+wal-blocksize=8", "17+wal-blocksize=8+blocksize=8"])
def test_default_options_are_omitted_from_names(text: str) -> None:
    name = parse_server(text)
    assert name == SourceBuild(source=SEVENTEEN) == parse_server("source:17")
    assert str(name) == "17"


@pytest.mark.parametrize("text", ["17.8+lto", "17+", "17+BLOCKSIZE=4", "17+casert+blocksize=4"])
def test_an_unknown_build_option_lists_valid_options(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    error = caught.value
    assert (error.slug, error.exit_code) == ("study-bad-build-option", ExitCode.USAGE)
    assert error.where == f"server {text}"
    assert error.found == "+" + text.split("+")[1].partition("=")[0]
    for known in ("blocksize=KB", "wal-blocksize=KB", "cassert", "cflags=FLAGS", "cc=COMPILER", "with-lz4"):
        assert known in error.expected


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("blocksiz=16", "blocksize"),
        ("wal_blocksize=16", "wal-blocksize"),
        ("casert", "cassert"),
        ("cflag=-O3", "cflags"),
    ],
)
def test_a_misspelled_option_suggests_a_similar_one(option: str, meant: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+{option}")
    assert caught.value.found == f"+{option.partition('=')[0]}"
    assert caught.value.to_do == f"did you mean +{meant}?"


@pytest.mark.parametrize("option", ["blocksize=16", "cassert", "cflags=-O3", "cc=gcc", "with-lz4"])
def test_a_repeated_option_is_rejected(option: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+{option}+{option}")
    assert caught.value.slug == "study-bad-build-option"
    assert caught.value.found == f"{option.partition('=')[0]} twice"
    assert caught.value.expected == "each option once"


@pytest.mark.parametrize(
    "option", ["blocksize", "blocksize=", "wal-blocksize", "cflags", "cflags= ", "cc=", "cassert=1", "cassert="]
)
def test_missing_and_unexpected_option_values_are_rejected(option: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+{option}")
    assert caught.value.slug == "study-bad-build-option"
    assert (caught.value.where, caught.value.found) == (f"server 17+{option}", f"+{option}")
    assert "cassert takes no value" in caught.value.to_do


@pytest.mark.parametrize(
    ("option", "sizes"),
    [
        ("blocksize=64", "1, 2, 4, 8, 16, 32 (kB)"),
        ("blocksize=3", "1, 2, 4, 8, 16, 32 (kB)"),
        ("blocksize=016", "1, 2, 4, 8, 16, 32 (kB)"),
        ("blocksize=16kB", "1, 2, 4, 8, 16, 32 (kB)"),
        ("wal-blocksize=128", "1, 2, 4, 8, 16, 32, 64 (kB)"),
        ("wal-blocksize=-8", "1, 2, 4, 8, 16, 32, 64 (kB)"),
    ],
)
def test_an_invalid_block_size_lists_valid_sizes(option: str, sizes: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+{option}")
    assert caught.value.slug == "study-bad-build-option"
    assert (caught.value.found, caught.value.expected) == (option, f"one of {sizes}")


@pytest.mark.parametrize("option", ["with-wal-blocksize=16", "enable-cassert", "disable-rpath", "prefix=x", "with-"])
def test_configure_options_set_by_pgversus_are_rejected(option: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+{option}")
    assert caught.value.slug == "study-bad-build-option"


@pytest.mark.parametrize("text", ["zonky:17.8+cassert", "wheel:17+blocksize=8"])
def test_ready_made_builds_reject_options(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    family, _, version = text.partition(":")
    assert (caught.value.slug, caught.value.found) == ("study-ready-made", text)
    assert version in caught.value.expected
    assert caught.value.to_do == f"omit the prefix {family}:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", built(SEVENTEEN)),
        ("source:17", built(SEVENTEEN)),
        ("17+cassert", built(SEVENTEEN, cassert=True)),
        ("./tree", built(LocalPath(path="./tree"))),
        ("./tree@HEAD", built(Checkout(path="./tree", ref="HEAD"))),
        (TARBALL, built(Download(address=TARBALL))),
        ("postgresql://host/db", RunningServer(uri="postgresql://host/db")),
    ],
)
def test_parse_to_build_returns_source_builds(text: str, expected: object) -> None:
    assert parse_to_build(text) == expected


def test_parse_to_build_rejects_ready_made_families() -> None:
    with pytest.raises(StudyError) as caught:
        parse_to_build("zonky:17.8")
    assert (caught.value.slug, caught.value.where) == ("study-ready-made", "server zonky:17.8")
    assert "17.8" in caught.value.expected


@pytest.mark.parametrize("text", ["9.6", "11.22", "11", "zonky:10", "source:11", "11+cassert"])
def test_a_version_before_twelve_is_too_old(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    assert caught.value.slug == "study-version-too-old"
    assert "12 or newer" in caught.value.expected


def test_an_unknown_family_lists_known_families_and_the_plain_version() -> None:
    with pytest.raises(StudyError) as caught:
        parse_server("debian:17.8")
    assert caught.value.slug == "study-unknown-family"
    assert caught.value.expected == "wheel, zonky or source"
    assert "17.8" in caught.value.to_do


@pytest.mark.parametrize(
    "text",
    [
        "host=/run/postgresql dbname=app password=Geheim99",
        " dbname = app password=Geheim99",
        "password='Geheim99' host=db/x",
        "postgresql:/u:Geheim99@host/db",
        "jdbc:postgresql://host/db?password=Geheim99",
        " postgresql://u:Geheim99@host/db",
    ],
)
def test_other_connection_strings_are_rejected_without_showing_them(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    error = caught.value
    assert error.slug == "study-unknown-server"
    assert "postgresql:///database?host=/run/postgresql" in error.to_do
    assert "Geheim99" not in repr(error)


@given(st.text() | st.from_regex(r"([a-z]+:)?\d{0,4}(\.\d{0,5})?\+?"))
def test_any_text_is_a_server_or_a_study_error(text: str) -> None:
    try:
        server = parse_server(text)
    except StudyError as error:
        # Text that may contain a password is not shown.
        assert text in error.where or "not shown" in error.found  # noqa: PT017 - the other branch does not fail
    else:
        assert isinstance(server, Release | LocalPath | SourceBuild | RunningServer)


def test_a_release_without_minor_admits_every_minor_of_its_major() -> None:
    assert Release(major=17, minor=None).admits(Version(major=17, minor=3))
    assert not Release(major=17, minor=None).admits(Version(major=16, minor=3))
    assert Release(major=17, minor=3).admits(Version(major=17, minor=3))
    assert not Release(major=17, minor=0).admits(Version(major=17, minor=3))


def test_versions_are_ordered_numerically() -> None:
    assert Version(major=17, minor=10) > Version(major=17, minor=9) > Version(major=16, minor=99)


def test_a_slash_in_an_option_value_does_not_make_a_path() -> None:
    named = parse_server("17+with-includes=/opt/include+cassert")
    assert named == SourceBuild(
        source=Release(major=17, minor=None),
        options=BuildOptions(cassert=True, handed_on=("with-includes=/opt/include",)),
    )


@pytest.mark.parametrize(
    "text", ["./postgres@debian/17.2-1+deb12u1", "17+cflags=-march=armv8-a+crc", "/opt/pg+ssl", "./tree+lto"]
)
def test_a_plus_without_an_option_belongs_to_the_path(text: str) -> None:
    assert str(parse_server(text)) == text


@pytest.mark.parametrize("address", ["https://me:word@host/p.tar.gz", "https://host/p.tar.gz?token=word"])
def test_an_address_that_may_contain_a_secret_is_rejected_without_showing_it(address: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(address)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("address", ["https://", "https:///p.tar.gz", "https://[bad/p.tar.gz", "https://[::1/p.tar.gz"])
def test_an_address_without_a_valid_host_is_rejected(address: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(address)
    assert caught.value.slug == "study-unknown-server"


def test_the_default_compiler_is_omitted_from_names() -> None:
    assert parse_server("17+cc=gcc") == parse_server("source:17")


@pytest.mark.parametrize(
    "fragment",
    ["word", "#sha256=", f"sha256={HASH}0", f"sha256={HASH[1:]}", f"sha256={HASH}#word", f"md5={HASH}", "x=word"],
)
def test_an_address_only_accepts_a_hash_as_fragment(fragment: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"{TARBALL}#{fragment}")
    assert caught.value.slug == "study-unknown-server"
    assert "word" not in str(caught.value)
    assert HASH[1:] not in str(caught.value)


def test_an_invalid_hash_reports_the_expected_form() -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"{TARBALL}#sha256=abc")
    assert caught.value.expected == "64 hexadecimal digits"


@pytest.mark.parametrize(
    "compiler",
    ["gcc;x", "sh -c 'x'", "$(x)", "gcc `x`", "gcc|x", "gcc &", "gcc\nx", "gcc # x", "PATH=/x gcc", "-x", '"gcc"'],
)
def test_a_compiler_with_shell_syntax_is_rejected(compiler: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(f"17+cc={compiler}")
    assert caught.value.slug == "study-bad-build-option"
    assert "/opt/bin/gcc" in caught.value.to_do


@pytest.mark.parametrize("compiler", ["g++-13", "clang -m64", "/opt/bin/gcc-14", "ccache gcc", "gcc -I/x --sysroot=/y"])
def test_a_compiler_may_have_options(compiler: str) -> None:
    assert parse_server(f"17+cc={compiler}") == built(SEVENTEEN, compiler=compiler)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("17.11-0+deb13u1", (17, 11)),
        ("17.11", (17, 11)),
        ("1:16.4-1ubuntu2", (16, 4)),
        ("15.8-1.pgdg120+1", (15, 8)),
        ("19~beta2-1", None),
        ("17.0~rc1-1", None),
        ("9.6.24-1", None),
        ("17", None),
        ("", None),
    ],
)
def test_pre_releases_are_not_versions(text: str, version: tuple[int, int] | None) -> None:
    assert released_version(text) == (version and Version(major=version[0], minor=version[1]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14..16", ["14", "15", "16"]),
        ("17.8..17.10", ["17.8", "17.9", "17.10"]),
        ("wheel:16..17", ["wheel:16", "wheel:17"]),
        ("zonky:17.0..17.1", ["zonky:17.0", "zonky:17.1"]),
        ("17.8", ["17.8"]),
        ("../postgres", ["../postgres"]),
    ],
)
def test_a_range_of_versions_is_expanded(text: str, expected: list[str]) -> None:
    assert versions_of(text) == expected


@pytest.mark.parametrize("text", ["18..14", "17..17", "17.1..17.1", "16.3..17.4", "16.3..17", "16..17.4"])
def test_a_range_needs_a_later_version_of_the_same_kind(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        versions_of(text)
    assert (caught.value.slug, caught.value.where) == ("study-no-range", text)
