"""The command line as typed, stored with the results so that the run can be repeated."""

import os
import shlex
from collections.abc import Sequence

from pgversus.errors import StudyError
from pgversus.postgres.labels import label_of_running
from pgversus.study.servers import RunningServer, parse_server
from pgversus.text.redaction import word_without_secrets

_SCHEME = "postgresql://"
_NOT_SHOWN = f"{_SCHEME}..."


def command_typed(arguments: Sequence[str]) -> str:
    """Return the command line, quoted for a shell, without users, passwords and values of secret-sounding variables."""
    words = shlex.join(["pgversus", *(_kept(argument) for argument in arguments)])
    # Results with bytes that are not UTF-8 could not be read.
    return os.fsencode(words).decode(errors="replace")


def _kept(argument: str) -> str:
    try:
        server = parse_server(argument)
    except StudyError:
        return word_without_secrets(argument)
    return _running(server) if isinstance(server, RunningServer) else word_without_secrets(argument)


def _running(server: RunningServer) -> str:
    """Return the server's label, unless libpq might parse the URI differently, with part of a password in the label."""
    user, at, place = server.uri.partition("://")[2].partition("@")
    if at and ("/" in user or "@" in place):
        return _NOT_SHOWN
    try:
        label = label_of_running(server)
    except StudyError:
        return _NOT_SHOWN
    # A database name can be a whole connection string.
    return _NOT_SHOWN if {*"@="} & {*label} else f"{_SCHEME}{label}"
