"""The command as it was typed, to be kept among the results: whoever repeats it finds it there."""

import shlex
from collections.abc import Sequence

from pgversus.errors import StudyError
from pgversus.postgres.labels import label_of_running
from pgversus.study.servers import RunningServer, parse_server
from pgversus.text.redaction import word_without_secrets

_SCHEME = "postgresql://"
_NOT_SHOWN = f"{_SCHEME}..."


def command_typed(arguments: Sequence[str]) -> str:
    """For a shell, users and passwords left out, and values of variables that are called as if they were secret."""
    return shlex.join(["pgversus", *(_kept(argument) for argument in arguments)])


def _kept(argument: str) -> str:
    try:
        server = parse_server(argument)
    except StudyError:
        return word_without_secrets(argument)
    return _running(server) if isinstance(server, RunningServer) else word_without_secrets(argument)


def _running(server: RunningServer) -> str:
    """Its label, if nothing of a password that libpq reads otherwise than it was meant can be in it."""
    user, at, place = server.uri.partition("://")[2].partition("@")
    if at and ("/" in user or "@" in place):
        return _NOT_SHOWN
    try:
        label = label_of_running(server)
    except StudyError:
        return _NOT_SHOWN
    # A name of a database may be a whole connection string.
    return _NOT_SHOWN if {*"@="} & {*label} else f"{_SCHEME}{label}"
