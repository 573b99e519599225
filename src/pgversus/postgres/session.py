"""Connections to servers, ours and others'."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import psycopg
from psycopg import conninfo

from pgversus.errors import ServerError, StudyError
from pgversus.host.commands import client_environment
from pgversus.study.settings import Setting
from pgversus.text.redaction import code_without_secrets, holds_secret

DATABASE = "postgres"
SUPERUSER = "postgres"
PORT = 5432
# Every server of ours has the same port, in a socket directory of its own: no port is ever allocated.

_OTHER_SECRETS = ("sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# libpq takes them from no variable of the environment, and what stands on a command line is read by every user.

_NOWHERE = "/nonexistent"
_NOTHING_OF_THE_USER = {"passfile": _NOWHERE, "sslcert": _NOWHERE, "sslkey": _NOWHERE, "gssencmode": "disable"}
# What libpq would otherwise take from the user's home directory, whatever the environment says.

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where sessions connect to, and with which settings."""

    conninfo: str
    """For libpq, without what is secret."""
    password: str | None = field(default=None, repr=False)
    options: str = field(default="", repr=False)
    """The settings of every session, where one of them is secret; else they are in conninfo."""
    is_ours: bool = True
    """False for a server that somebody else runs: libpq's own variables then hold."""
    uses_environment: bool = True
    """Whether a server that somebody else runs may get what the user's variables and files have for libpq."""

    def environment(self) -> dict[str, str]:
        """The environment for psql and pgbench; no secret ever stands on a command line."""
        additions = {} if self.password is None else {"PGPASSWORD": self.password}
        additions |= {"PGOPTIONS": self.options} if self.options else {}
        return client_environment(additions, inherit_libpq=self.inherits_libpq)

    @property
    def inherits_libpq(self) -> bool:
        """Whether libpq's own variables hold for it."""
        return self.uses_environment and not self.is_ours


def own_target(socket_directory: Path) -> Target:
    """A server of ours, through its socket."""
    return Target(
        conninfo=conninfo.make_conninfo(host=str(socket_directory), port=PORT, user=SUPERUSER, dbname=DATABASE)
    )


def with_options(target: Target, settings: Mapping[str, str]) -> Target:
    """The same server with further settings in every session."""
    options = " ".join(f"-c {_escape(f'{name}={value}')}" for name, value in settings.items())
    if target.options:
        return replace(target, options=f"{target.options} {options}")
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    together = f"{parameters.get('options') or ''} {options}".strip()
    return replace(target, conninfo=conninfo.make_conninfo(target.conninfo, options=together))


def uri_target(uri: str, settings: Sequence[Setting], *, uses_environment: bool = True) -> Target:
    """A server of somebody else, whose settings are given in the connection of every session.

    uses_environment: False for a URI that comes from somebody whom the user does not trust: no password, certificate or
    ticket of the user's is for that server.
    StudyError when the URI is none, or holds a secret that would be seen.
    """
    parameters = _parameters(uri)
    password = parameters.pop("password", None)
    options = " ".join(f"-c {_escape(str(setting))}" for setting in settings)
    options = f"{parameters.pop('options', '')} {options}".strip()
    is_secret = code_without_secrets(options) != options or any(
        holds_secret(setting.name, setting.value) for setting in settings
    )
    if options and not is_secret:
        parameters["options"] = options
    if not uses_environment:
        parameters |= _NOTHING_OF_THE_USER
    return Target(
        conninfo=conninfo.make_conninfo("", **parameters),
        password=None if password is None else str(password),
        options=options if is_secret else "",
        is_ours=False,
        uses_environment=uses_environment,
    )


def uri_label(uri: str) -> str:
    """How a URI is shown and stored: host, port and database, no user and no password.

    StudyError when it is none, or holds a secret that would be seen.
    """
    parameters = _parameters(uri)
    host = str(parameters.get("host") or parameters.get("hostaddr") or "local socket")
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"{host}{port}/{parameters.get('dbname', '')}".rstrip("/")


@contextmanager
def connect(target: Target, *, as_the_load: bool = False) -> Iterator[Connection]:
    """A session in autocommit; ServerError with the server's words when it is refused, lost, or a question fails.

    as_the_load: with every setting as the load has it. Otherwise time limits and read-only mode, which are meant for
    the load, do not hold for pgversus' own questions.
    """
    keywords: dict[str, Any] = {"autocommit": True, "application_name": "pgversus", "connect_timeout": 30}
    if not target.uses_environment and "service" in conninfo.conninfo_to_dict(target.conninfo):
        raise _service_of_the_user(target)
    if target.password is not None:
        keywords["password"] = target.password
    if target.options:
        keywords["options"] = target.options
    try:
        with _environment_of(target):
            connection = psycopg.connect(target.conninfo, **keywords)
    except psycopg.Error as error:
        raise _failed(target, error, what="the connection to the server failed", slug="server-connection") from error
    try:
        with connection:
            if not as_the_load:
                _lift_limits(connection)
            yield connection
    except psycopg.Error as error:
        raise question_failed(target, error) from error


@cache
def password_of(target: Target) -> str:
    """Return the password with which libpq connects: given, or from a password file; empty where it has none.

    ServerError when it cannot connect.
    """
    with connect(target) as connection:
        return os.fsdecode(connection.pgconn.password)


def question_failed(target: Target, error: psycopg.Error) -> ServerError:
    """The error of a question of ours that the server did not answer."""
    return _failed(target, error, what="a question that pgversus asks the server failed", slug="server-query")


_UNLIMITED = (
    (0, "statement_timeout", "0"),
    (0, "lock_timeout", "0"),
    (0, "idle_in_transaction_session_timeout", "0"),
    (140000, "idle_session_timeout", "0"),
    (170000, "transaction_timeout", "0"),
    (0, "default_transaction_read_only", "off"),
)
# The first server_version_num that has it, name, value.


def _lift_limits(connection: Connection) -> None:
    """Nothing ends a session of ours: one that reads counters is idle as long as a window lasts."""
    version = connection.info.server_version
    calls = [f"set_config('{name}', '{value}', false)" for first, name, value in _UNLIMITED if version >= first]
    connection.execute(f"SELECT {', '.join(calls)}".encode())


_ENVIRONMENT = Lock()


@contextmanager
def _environment_of(target: Target) -> Iterator[None]:
    """libpq reads PGOPTIONS and its like by itself; for servers of ours they must not count."""
    # One at a time: what one thread puts back must not be there for another that has hidden it.
    with _ENVIRONMENT:
        names = [name for name in os.environ if name.startswith("PG") and not target.inherits_libpq]
        hidden = {name: os.environ.pop(name) for name in names}
        try:
            yield
        finally:
            os.environ.update(hidden)


def _parameters(uri: str) -> dict[str, Any]:
    """What a URI says, by libpq's keywords. StudyError, in which nothing of it is repeated, when it cannot be used."""
    try:
        parameters = conninfo.conninfo_to_dict(uri)
    except (psycopg.Error, UnicodeDecodeError):
        # The second is for %ff, a byte that is no character. Without libpq's words and without the error itself: they
        # quote the part that holds a password.
        raise _bad_uri(
            "this is no connection URI", found="something that libpq cannot read", to_do=_HOW_TO_WRITE
        ) from None
    if _has_stray_at(uri):
        raise _bad_uri("this is no connection URI", found="an @ behind the first one", to_do=_HOW_TO_WRITE)
    # The name of a database may be a whole connection string.
    others = {name: str(value) for name, value in parameters.items() if name not in ("password", "options")}
    secrets = [name for name, value in others.items() if name in _OTHER_SECRETS or code_without_secrets(value) != value]
    if secrets:
        raise _bad_uri(
            "a secret in a connection URI would be seen on the command line of pgbench",
            found=" and ".join(secrets),
            to_do="leave it out, and let the server take a password or a key without one",
        )
    return parameters


def _has_stray_at(uri: str) -> bool:
    """Whether a password holds an @ or a / as it is: libpq then takes a part of it for host, port or database."""
    body = uri.partition("://")[2]
    user, at, place = body.partition("@")
    if not at or "/" in user:
        place = body
    return "@" in place.partition("?")[0]


_HOW_TO_WRITE = "write @ : / % and # in a user, a password or a name as %40 %3A %2F %25 and %23"


def _bad_uri(what: str, *, found: str, to_do: str) -> StudyError:
    return StudyError(
        what,
        slug="study-bad-uri",
        where="server postgresql://...",
        found=f"{found} (not shown, because a password may be in it)",
        expected="postgresql://user@host:port/database",
        to_do=to_do,
    )


def _failed(target: Target, error: psycopg.Error, *, what: str, slug: str) -> ServerError:
    return ServerError(
        what,
        slug=slug,
        where=_place(target),
        found=str(error).strip(),
        expected="a session" if slug == "server-connection" else "an answer",
        to_do="check the settings given with --set and what --setup has changed"
        if target.is_ours
        else "try the same with psql, as the same user",
    )


def _service_of_the_user(target: Target) -> ServerError:
    return ServerError(
        "a study that is not trusted names a service of yours",
        slug="server-connection",
        where=_place(target),
        found="service=...",
        expected="a URI that says by itself where the server is",
        to_do="add --trust if this server may have what your service file says",
    )


def _place(target: Target) -> str:
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    return " ".join(f"{key}={parameters[key]}" for key in ("host", "port", "dbname") if key in parameters)


def _escape(text: str) -> str:
    """libpq's options split at white space, and backslash protects it."""
    return text.replace("\\", "\\\\").replace(" ", "\\ ")
