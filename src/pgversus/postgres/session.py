"""Connections to managed and external servers."""

import os
import re
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
from pgversus.host.commands import CLEAN_ENVIRONMENT
from pgversus.study.settings import Setting
from pgversus.text.redaction import code_without_secrets, holds_secret

DATABASE = "postgres"
SUPERUSER = "postgres"
APPLICATION_ROLE = "pgversus_application"
"""The role that executes the statements of an application, which are not trusted."""
PORT = 5432
# Managed servers all use this port, each in its own socket directory, so that no port needs to be allocated.

_OTHER_SECRETS = ("sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# libpq does not read these from environment variables, and every user can read a command line.

_NOWHERE = "/nonexistent"
_NOTHING_OF_THE_USER = {"passfile": _NOWHERE, "sslcert": _NOWHERE, "sslkey": _NOWHERE, "gssencmode": "disable"}
# These keep libpq from reading the user's home directory, which it does regardless of the environment.

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The server that sessions connect to, and their settings."""

    conninfo: str
    """Connection string for libpq, without secrets."""
    password: str | None = field(default=None, repr=False)
    options: str = field(default="", repr=False)
    """Settings of every session if one of them is secret; otherwise they are in conninfo."""
    is_ours: bool = True
    """False for an external server, for which libpq's environment variables apply."""
    uses_environment: bool = True
    """Whether the user's environment variables and files for libpq may be used for an external server."""

    def environment(self) -> dict[str, str]:
        """Return the environment for psql and pgbench, which passes secrets so that the command line does not.

        libpq's variables (PGPASSFILE, PGSSLMODE, ...) are passed on only for external servers.
        """
        environment = dict(CLEAN_ENVIRONMENT)
        if self.inherits_libpq:
            variables = os.environ.items()
            environment |= {name: value for name, value in variables if _is_of_libpq(name) or name == "HOME"}
        if self.password is not None:
            environment["PGPASSWORD"] = self.password
        if self.options:
            environment["PGOPTIONS"] = self.options
        return environment

    @property
    def inherits_libpq(self) -> bool:
        """Whether libpq's environment variables apply to it."""
        return self.uses_environment and not self.is_ours


def own_target(socket_directory: Path) -> Target:
    """Return the target of a managed server, through its socket."""
    return Target(
        conninfo=conninfo.make_conninfo(host=str(socket_directory), port=PORT, user=SUPERUSER, dbname=DATABASE)
    )


def as_application(target: Target) -> Target:
    """Return the target of a managed server for sessions of the role that executes statements of an application."""
    return replace(target, conninfo=conninfo.make_conninfo(target.conninfo, user=APPLICATION_ROLE))


def with_options(target: Target, settings: Mapping[str, str]) -> Target:
    """Return the same target with additional settings in every session."""
    options = " ".join(f"-c {_escape(f'{name}={value}')}" for name, value in settings.items())
    if target.options:
        return replace(target, options=f"{target.options} {options}")
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    together = f"{parameters.get('options') or ''} {options}".strip()
    return replace(target, conninfo=conninfo.make_conninfo(target.conninfo, options=together))


def uri_target(uri: str, settings: Sequence[Setting], *, uses_environment: bool = True) -> Target:
    """Return the target of an external server, with the settings in the connection options of every session.

    uses_environment: False for a URI from an untrusted source: the server must not receive a password, certificate or
    ticket of the user.
    StudyError if the URI is invalid or holds a secret that would be visible.
    """
    parameters = _parameters(uri)
    password = parameters.pop("password", None)
    options = " ".join(f"-c {_escape(str(setting))}" for setting in settings)
    # With options in the connection string, libpq ignores PGOPTIONS.
    others = parameters.pop("options", None) or (
        os.environ.get("PGOPTIONS", "") if options and uses_environment else ""
    )
    options = f"{others} {options}".strip()
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
    """Return the label of a URI for display and storage: host, port and database, without user and password.

    A URI without a host is labeled by its service, which names an entry of pg_service.conf.

    StudyError if the URI is invalid or holds a secret that would be visible.
    """
    parameters = _parameters(uri)
    otherwise = f"service {parameters['service']}" if "service" in parameters else "local socket"
    host = str(parameters.get("host") or parameters.get("hostaddr") or otherwise)
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"{host}{port}/{parameters.get('dbname', '')}".rstrip("/")


@contextmanager
def connect(target: Target, *, as_the_load: bool = False) -> Iterator[Connection]:
    """Open a session in autocommit; ServerError with the server's message if it is rejected or lost, or a query fails.

    as_the_load: keep all settings of the load. Otherwise time limits and read-only mode, which are meant for the load,
    are lifted for the queries of pgversus.
    """
    keywords: dict[str, Any] = {"autocommit": True, "application_name": "pgversus", "connect_timeout": 30}
    # After a rollback, psycopg would deallocate all prepared statements, including those of pgversus itself.
    keywords["prepare_threshold"] = None
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
    with asking(target), connection:
        if connection.info.encoding == "ascii":
            _decode_text(connection)
        if not as_the_load:
            _lift_limits(connection)
        yield connection


@cache
def password_of(target: Target) -> str:
    """Return the password that libpq connects with, given or from a password file; empty without one.

    ServerError if it cannot connect.
    """
    with connect(target) as connection:
        return os.fsdecode(connection.pgconn.password)


@contextmanager
def asking(target: Target) -> Iterator[None]:
    """Raise ServerError if a query that pgversus sends in this block fails."""
    try:
        yield
    except psycopg.Error as error:
        what = "a query that pgversus sent to the server failed"
        raise _failed(target, error, what=what, slug="server-query") from error


def _decode_text(connection: Connection) -> None:
    """Select another encoding for the session than SQL_ASCII, with which psycopg returns text as bytes."""
    # A database with the encoding SQL_ASCII converts nothing, and every byte is a character of LATIN1.
    converts = connection.info.parameter_status("server_encoding") != "SQL_ASCII"
    connection.execute(f"SET client_encoding = '{'UTF8' if converts else 'LATIN1'}'".encode())


_UNLIMITED = (
    (0, "statement_timeout", "0"),
    (0, "lock_timeout", "0"),
    (0, "idle_in_transaction_session_timeout", "0"),
    (140000, "idle_session_timeout", "0"),
    (170000, "transaction_timeout", "0"),
    (0, "default_transaction_read_only", "off"),
)
"""First server_version_num that has the setting, its name, its value."""
_LONGER_WITH_EXPLAIN = 10
"""Multiple of the time limits of the load for all that captures plans in its settings."""


def _lift_limits(connection: Connection) -> None:
    """Disable all limits that could end the session: a session that reads counters is idle during windows."""
    version = connection.info.server_version
    calls = [f"set_config('{name}', '{value}', false)" for first, name, value in _UNLIMITED if version >= first]
    connection.execute(f"SELECT {', '.join(calls)}".encode())


def raise_timeouts(connection: Connection) -> None:
    """Raise the time limits of a session with the settings of the load, in which EXPLAIN ANALYZE takes longer."""
    connection.execute(
        "SELECT set_config(name, least(setting::bigint * %s, 2147483647)::text, false) FROM pg_settings "
        "WHERE name IN ('statement_timeout', 'transaction_timeout')",
        (_LONGER_WITH_EXPLAIN,),
    )


_ENVIRONMENT = Lock()


@contextmanager
def _environment_of(target: Target) -> Iterator[None]:
    """Hide libpq's environment variables, such as PGOPTIONS, if they do not apply to the target."""
    # One thread at a time: none may restore variables while another needs them hidden.
    with _ENVIRONMENT:
        names = [name for name in os.environ if _is_of_libpq(name) and not target.inherits_libpq]
        hidden = {name: os.environ.pop(name) for name in names}
        try:
            yield
        finally:
            os.environ.update(hidden)


def _is_of_libpq(name: str) -> bool:
    return name.startswith("PG") and not name.startswith("PGVERSUS_")


def _parameters(uri: str) -> dict[str, Any]:
    """Return the parameters of a URI by libpq keyword. StudyError, without any part of the URI, if it is invalid."""
    try:
        parameters = conninfo.conninfo_to_dict(uri)
    except (psycopg.Error, UnicodeDecodeError):
        # UnicodeDecodeError is for %ff, which is not valid UTF-8. Neither the error nor its message is passed on: they
        # quote the part that holds a password.
        raise _bad_uri(
            "invalid connection URI", found="a text that libpq cannot parse as a URI", to_do=_HOW_TO_WRITE
        ) from None
    if _has_stray_at(uri):
        raise _bad_uri("invalid connection URI", found="an unescaped @ or /", to_do=_HOW_TO_WRITE)
    # The database name may itself be a connection string.
    others = {name: str(value) for name, value in parameters.items() if name not in ("password", "options")}
    secrets = [name for name, value in others.items() if name in _OTHER_SECRETS or code_without_secrets(value) != value]
    if secrets:
        raise _bad_uri(
            "a secret in a connection URI would be visible on the command line of pgbench",
            found=" and ".join(secrets),
            to_do="remove it, and use password authentication or a client key without a passphrase",
        )
    return parameters


def _has_stray_at(uri: str) -> bool:
    """Return whether a password contains an unescaped @ or /: libpq takes part of it for host, port or database."""
    body = uri.partition("://")[2]
    user, at, place = body.partition("@")
    if not at or "/" in user:
        place = body
    return "@" in place.partition("?")[0]


_HOW_TO_WRITE = "escape @ : / % and # in the user, password and database name as %40 %3A %2F %25 and %23"


def _bad_uri(what: str, *, found: str, to_do: str) -> StudyError:
    return StudyError(
        what,
        slug="study-bad-uri",
        where="server postgresql://...",
        found=f"{found} (the URI is not shown, because it may contain a password)",
        expected="postgresql://user@host:port/database",
        to_do=to_do,
    )


def _failed(target: Target, error: psycopg.Error, *, what: str, slug: str) -> ServerError:
    return ServerError(
        what,
        slug=slug,
        where=_place(target),
        found=str(error).strip(),
        expected="a successful connection" if slug == "server-connection" else "a result",
        to_do="check the requested settings and the setup files"
        if target.is_ours
        else "connect with psql as the same operating-system user to find the cause",
    )


def _service_of_the_user(target: Target) -> ServerError:
    return ServerError(
        "an untrusted study refers to one of your connection services",
        slug="server-connection",
        where=_place(target),
        found="service=...",
        expected="a URI with the address of the server",
        to_do="add --trust if this server may receive the contents of your service file",
    )


def _place(target: Target) -> str:
    parameters = conninfo.conninfo_to_dict(target.conninfo)
    return " ".join(f"{key}={parameters[key]}" for key in ("host", "port", "dbname") if key in parameters)


def _escape(text: str) -> str:
    """Escape white space and backslashes, since libpq splits options at white space."""
    return re.sub(r"([\\\s])", r"\\\1", text)
