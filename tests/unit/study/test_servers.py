import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import ExitCode, StudyError
from pgversus.study.servers import (
    OLDEST_MAJOR,
    BinDirectory,
    Family,
    Release,
    RunningServer,
    Version,
    parse_server,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", Release(major=17, minor=None)),
        ("17.8", Release(major=17, minor=8)),
        ("12.0", Release(major=12, minor=0)),
        ("wheel:17.11", Release(major=17, minor=11, family=Family.WHEEL)),
        ("zonky:17", Release(major=17, minor=None, family=Family.ZONKY)),
        ("/usr/lib/postgresql/17/bin", BinDirectory(path="/usr/lib/postgresql/17/bin")),
        ("./bin", BinDirectory(path="./bin")),
        ("bin/", BinDirectory(path="bin/")),
        ("17/bin", BinDirectory(path="17/bin")),
        ("./cflags=-O3/bin", BinDirectory(path="./cflags=-O3/bin")),
        (".", BinDirectory(path=".")),
        ("..", BinDirectory(path="..")),
        ("postgresql://host/db", RunningServer(uri="postgresql://host/db")),
        ("postgres://u:secret@host:5433/db?sslmode=require", None),
        ("POSTGRESQL://host/db", RunningServer(uri="POSTGRESQL://host/db")),
    ],
)
def test_every_form_names_a_server(text: str, expected: object) -> None:
    assert parse_server(text) == (expected or RunningServer(uri=text))


@given(st.integers(OLDEST_MAJOR, 99), st.none() | st.integers(0, 999), st.none() | st.sampled_from(Family))
def test_a_release_is_read_back_from_its_own_name(major: int, minor: int | None, family: Family | None) -> None:
    release = Release(major=major, minor=minor, family=family)
    assert parse_server(f"{family}:{release}" if family else str(release)) == release


@pytest.mark.parametrize(
    "text", ["", " ", "seventeen", "17.8.1", "-17", "17beta1", "117", "17.", ".8", "host=x", "17 "]
)
def test_anything_else_names_no_server(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    assert caught.value.slug == "study-unknown-server"
    assert caught.value.exit_code is ExitCode.USAGE
    assert "postgresql://host/database" in caught.value.expected


def test_build_options_are_answered_with_what_to_do_instead() -> None:
    with pytest.raises(StudyError) as caught:
        parse_server("17.8+lto")
    assert "build options are not supported" in caught.value.to_do


@pytest.mark.parametrize("text", ["9.6", "11.22", "11", "zonky:10"])
def test_a_version_before_twelve_is_too_old(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    assert caught.value.slug == "study-version-too-old"
    assert "12 or newer" in caught.value.expected


def test_an_unknown_family_names_those_that_are_known_and_the_version_without_it() -> None:
    with pytest.raises(StudyError) as caught:
        parse_server("debian:17.8")
    assert caught.value.slug == "study-unknown-family"
    assert caught.value.expected == "wheel or zonky"
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
def test_other_connection_strings_are_answered_with_the_form_of_a_uri_and_never_shown(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_server(text)
    error = caught.value
    assert error.slug == "study-unknown-server"
    assert "postgresql:///database?host=/run/postgresql" in error.to_do
    assert "Geheim99" not in repr(error)


@given(st.text() | st.from_regex(r"([a-z]+:)?\d{0,4}(\.\d{0,5})?\+?"))
def test_garbage_is_a_study_error_or_a_server_and_nothing_else(text: str) -> None:
    try:
        server = parse_server(text)
    except StudyError as error:
        # One that may hold a password is not shown.
        assert text in error.where or "not shown" in error.found  # noqa: PT017 - the other branch is no failure
    else:
        assert isinstance(server, Release | BinDirectory | RunningServer)


def test_a_release_without_minor_admits_every_minor_of_its_major() -> None:
    assert Release(major=17, minor=None).admits(Version(major=17, minor=3))
    assert not Release(major=17, minor=None).admits(Version(major=16, minor=3))
    assert Release(major=17, minor=3).admits(Version(major=17, minor=3))
    assert not Release(major=17, minor=0).admits(Version(major=17, minor=3))


def test_versions_are_ordered_by_number_and_not_by_letters() -> None:
    assert Version(major=17, minor=10) > Version(major=17, minor=9) > Version(major=16, minor=99)
