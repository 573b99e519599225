"""Connection URIs: targets and labels, without leaking secrets."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgversus.errors import ExitCode, ServerError, StudyError
from pgversus.host.commands import CLEAN_ENVIRONMENT
from pgversus.postgres.labels import labelled_server
from pgversus.postgres.session import Target, connect, uri_label, uri_target, with_options
from pgversus.study.settings import Setting
from tests.unit.postgres.listening import listening

PASSWORD = "Geheim99"  # noqa: S105 - must not appear anywhere


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
        f"postgresql://u:{PASSWORD}@h/db%99",
        f"postgresql://u:{PASSWORD}%ff@h/db",
    ],
)
def test_an_error_repeats_no_part_of_an_invalid_uri(uri: str) -> None:
    with pytest.raises(StudyError) as caught:
        labelled_server(uri)
    error = caught.value
    assert (error.slug, error.exit_code) == ("study-bad-uri", ExitCode.USAGE)
    assert "%40" in error.to_do
    assert PASSWORD not in repr(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize("name", ["sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key"])
def test_a_secret_that_would_appear_on_a_command_line_is_rejected(name: str) -> None:
    with pytest.raises(StudyError) as caught:
        labelled_server(f"postgresql://u@h/db?{name}={PASSWORD}")
    assert caught.value.slug == "study-bad-uri"
    assert name in caught.value.found
    assert PASSWORD not in repr(caught.value)


@pytest.mark.parametrize(
    "uri", [f"postgresql://u:{PASSWORD}@h:5433/db?sslmode=require", f"postgresql://h:5433/db?password={PASSWORD}"]
)
def test_a_password_is_passed_only_in_the_environment(uri: str) -> None:
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
        ("postgresql:///?service=reports", "service reports"),
        ("postgresql://h/db?service=reports", "h/db"),
    ],
)
def test_the_label_of_a_uri_is_its_address_and_database(uri: str, label: str) -> None:
    assert uri_label(uri) == label


def test_settings_with_a_secret_are_passed_in_the_environment_and_others_in_the_connection_string() -> None:
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


def test_a_setting_of_the_comparison_takes_precedence_over_the_uri() -> None:
    target = uri_target("postgresql://u@h/db?options=-c%20work_mem%3D1MB", [Setting(name="work_mem", value="8MB")])
    options = conninfo_to_dict(target.conninfo)["options"]
    # Of several -c, the last one counts.
    assert str(options).split()[-1] == "work_mem=8MB"


def test_variables_of_pgversus_are_not_those_of_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", "/somewhere")
    monkeypatch.setenv("PGAPPNAME", "x")
    seen = []

    def connected(*_arguments: object, **_keywords: object) -> None:
        seen.append((os.environ.get("PGVERSUS_CACHE"), os.environ.get("PGAPPNAME")))
        raise psycopg.OperationalError

    monkeypatch.setattr(psycopg, "connect", connected)
    with suppress(ServerError), connect(Target(conninfo="")):
        pass
    assert seen == [("/somewhere", None)]
    assert "PGVERSUS_CACHE" not in Target(conninfo="", is_ours=False).environment()


def test_white_space_in_a_setting_does_not_end_the_option() -> None:
    target = uri_target("postgresql://u@h/db", [Setting(name="my.secret", value="x\ty\n z\\")])
    assert target.options == "-c my.secret=x\\\ty\\\n\\ z\\\\"


def test_libpq_variables_are_inherited_only_for_external_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    inherited = Target(conninfo="", password=PASSWORD, is_ours=False).environment()
    assert inherited["PGSSLMODE"] == "require"
    assert inherited["HOME"] == "/home/somebody"
    assert "LANG" not in inherited
    assert Target(conninfo="", password=PASSWORD).environment() == {**CLEAN_ENVIRONMENT, "PGPASSWORD": PASSWORD}


def test_options_of_a_target_override_inherited_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c jit=off")
    assert Target(conninfo="", options="-c jit=on", is_ours=False).environment()["PGOPTIONS"] == "-c jit=on"


def test_a_database_name_that_is_a_connection_string_with_a_password_is_rejected() -> None:
    with pytest.raises(StudyError) as caught:
        uri_label(f"postgresql://u@h/?dbname=password%3D{PASSWORD}")
    assert (caught.value.slug, PASSWORD in repr(caught.value)) == ("study-bad-uri", False)


@pytest.fixture
def users_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A password in each place where libpq looks for one."""
    (tmp_path / ".pgpass").write_text(f"*:*:*:*:{PASSWORD}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    (tmp_path / ".pg_service.conf").write_text(f"[mine]\npassword={PASSWORD}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.mark.usefixtures("users_secrets")
@pytest.mark.parametrize("variable", ["PGPASSWORD", "PGPASSFILE", "PGSERVICE", "HOME"])
def test_a_server_given_by_the_user_receives_the_password_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / ".pg_service.conf"))
    if variable != "PGPASSWORD":
        monkeypatch.delenv("PGPASSWORD")
    if variable == "PGPASSFILE":
        monkeypatch.setenv(variable, str(tmp_path / ".pgpass"))
    if variable != "HOME":
        (tmp_path / "empty").mkdir()
        monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    if variable == "PGSERVICE":
        monkeypatch.setenv(variable, "mine")
    with listening() as server, pytest.raises(ServerError), connect(uri_target(server.uri, ())):
        pass
    assert server.passwords == [PASSWORD.encode()]


@pytest.mark.usefixtures("users_secrets")
@pytest.mark.parametrize("variable", ["PGPASSWORD", "PGPASSFILE", "PGSERVICE", "HOME", "uri"])
def test_a_server_of_an_untrusted_study_receives_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / ".pg_service.conf"))
    if variable == "PGPASSFILE":
        monkeypatch.setenv(variable, str(tmp_path / ".pgpass"))
    if variable == "PGSERVICE":
        monkeypatch.setenv(variable, "mine")
    with listening() as server:
        uri = f"{server.uri}&passfile={tmp_path}/.pgpass" if variable == "uri" else server.uri
        target = uri_target(uri, (), uses_environment=False)
        for _ in range(2):
            with pytest.raises(ServerError), connect(target):
                pass
    assert (server.connections >= 2, server.passwords) == (True, [])
    assert "PGPASSWORD" not in target.environment()
    assert os.environ["PGPASSWORD"] == PASSWORD


@pytest.mark.usefixtures("users_secrets")
def test_the_users_services_are_not_looked_up_for_an_untrusted_study() -> None:
    with listening() as server:
        target = uri_target(f"{server.uri}&service=mine", (), uses_environment=False)
        with pytest.raises(ServerError) as caught, connect(target):
            pass
    assert (caught.value.slug, server.connections) == ("server-connection", 0)


@pytest.mark.usefixtures("users_secrets")
def test_concurrent_connections_do_not_expose_the_environment_to_each_other() -> None:
    def try_once(target: Target) -> None:
        with suppress(ServerError), connect(target):
            pass

    switch = sys.getswitchinterval()
    # Threads then switch between any two steps.
    sys.setswitchinterval(1e-6)
    try:
        with listening() as server, ThreadPoolExecutor(max_workers=8) as pool:
            target = uri_target(server.uri, (), uses_environment=False)
            list(pool.map(try_once, [target] * 200))
    finally:
        sys.setswitchinterval(switch)
    assert (server.connections, server.passwords) == (200, [])


def test_the_repr_of_a_target_contains_no_secret() -> None:
    target = uri_target(f"postgresql://u:{PASSWORD}@h/db", [Setting(name="my.secret", value=PASSWORD)])
    assert PASSWORD not in repr(target)
