"""The client that comes with pgversus, asked for what it cannot do."""

import pytest

from pgversus.errors import BuildError, ExitCode
from pgversus.postgres.client import fixed_client, refuse_unencrypted
from pgversus.postgres.session import uri_target


def found(uri: str, *, runs_psql: bool = False) -> BuildError | None:
    try:
        refuse_unencrypted(fixed_client(), uri_target(uri, ()), "h/db", runs_psql=runs_psql)
    except BuildError as error:
        return error
    return None


@pytest.mark.parametrize(
    "demand", ["sslmode=require", "sslmode=verify-full", "sslmode=prefer&sslrootcert=system", "gssencmode=require"]
)
def test_a_uri_that_asks_for_encryption_is_refused_before_anything_runs(demand: str) -> None:
    error = found(f"postgresql://u:Geheim99@192.0.2.1:1,192.0.2.2:2/db?{demand}")
    assert error is not None
    assert (error.slug, error.exit_code) == ("build-client-unencrypted", ExitCode.HOST)
    assert error.found.endswith("support is not compiled in")
    assert "error" not in error.found
    assert error.where.endswith("pgbench, for h/db")
    assert "--pgbench" in error.to_do
    assert "Geheim99" not in repr(error)


@pytest.mark.parametrize("demand", ["", "?sslmode=prefer", "?sslmode=disable", "?connect_timeout=1&service="])
def test_a_uri_that_asks_for_none_is_not(demand: str) -> None:
    assert found(f"postgresql://u@192.0.2.1/db{demand}", runs_psql=True) is None


def test_what_the_environment_asks_for_counts_and_a_real_server_is_never_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    assert found("postgresql://u@h/db", runs_psql=True) is None
    monkeypatch.setenv("PGSSLMODE", "require")
    assert found("postgresql://u@h/db") is not None
