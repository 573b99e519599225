"""What is made of a connection URI: where to connect, how it is shown, and no word of a secret."""

import pytest

from pgversus.errors import ExitCode, StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.postgres.session import uri_label, uri_target, with_options
from pgversus.study.settings import Setting

PASSWORD = "Geheim99"  # noqa: S105 - what must not be found anywhere


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://u:100%{PASSWORD}@h/db",
        f"postgresql://u:x/{PASSWORD}@h/db",
        f"postgresql://u:12/{PASSWORD}@h/db",
        f"postgresql://u:x@{PASSWORD}@h/db",
        f"postgresql://u:x@y/{PASSWORD}@h/db",
        f"postgresql://u:x@y?{PASSWORD}@h/db",
        f"postgresql://u@h/db?pasword={PASSWORD}&{PASSWORD}",
        f"POSTGRESQL://u:{PASSWORD}@h/db",
    ],
)
def test_of_a_uri_that_cannot_be_read_nothing_is_repeated(uri: str) -> None:
    with pytest.raises(StudyError) as caught:
        labelled_server(uri)
    error = caught.value
    assert (error.slug, error.exit_code) == ("study-bad-uri", ExitCode.USAGE)
    assert "%40" in error.to_do
    assert PASSWORD not in repr(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize("name", ["sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"])
def test_a_secret_that_would_stand_on_a_command_line_is_refused(name: str) -> None:
    with pytest.raises(StudyError) as caught:
        labelled_server(f"postgresql://u@h/db?{name}={PASSWORD}")
    assert caught.value.slug == "study-bad-uri"
    assert name in caught.value.found
    assert PASSWORD not in repr(caught.value)


@pytest.mark.parametrize(
    "uri", [f"postgresql://u:{PASSWORD}@h:5433/db?sslmode=require", f"postgresql://h:5433/db?password={PASSWORD}"]
)
def test_a_password_goes_by_the_environment_alone(uri: str) -> None:
    target = uri_target(uri, [Setting(name="work_mem", value="8 MB")])
    assert target.environment()["PGPASSWORD"] == PASSWORD
    assert PASSWORD not in target.conninfo
    assert uri_label(uri) == "h:5433/db"


@pytest.mark.parametrize(
    ("uri", "label"),
    [
        ("postgresql://u:a%40b%2F@h/db", "h/db"),
        ("postgresql://u:a?b#c@h/db", "h/db"),
        ("postgresql://u@[::1]:5432/db", "::1:5432/db"),
        ("postgresql:///db?host=/run/postgresql", "/run/postgresql/db"),
        ("postgresql:///db?host=@abstract", "@abstract/db"),
        ("postgresql://", "local socket"),
    ],
)
def test_a_uri_is_shown_by_its_place_and_database(uri: str, label: str) -> None:
    assert uri_label(uri) == label


def test_settings_with_a_secret_go_by_the_environment_and_others_stand_in_the_connection() -> None:
    plain = uri_target("postgresql://u@h/db?options=-c%20geqo%3Doff", [Setting(name="work_mem", value="8MB")])
    assert "work_mem=8MB" in plain.conninfo
    assert "PGOPTIONS" not in plain.environment()
    for setting in (Setting(name="my.secret", value=PASSWORD), Setting(name="my.uri", value=f"a://u:{PASSWORD}@h")):
        target = uri_target("postgresql://u@h/db?options=-c%20geqo%3Doff", [setting])
        assert PASSWORD not in target.conninfo
        assert target.environment()["PGOPTIONS"] == f"-c geqo=off -c {setting.name}={setting.value}"
        more = with_options(target, {"jit": "off"})
        assert more.environment()["PGOPTIONS"].endswith(" -c jit=off")
        assert PASSWORD not in more.conninfo


def test_a_database_whose_name_is_a_connection_string_with_a_password_is_refused() -> None:
    with pytest.raises(StudyError) as caught:
        uri_label(f"postgresql://u@h/?dbname=password%3D{PASSWORD}")
    assert (caught.value.slug, PASSWORD in repr(caught.value)) == ("study-bad-uri", False)
