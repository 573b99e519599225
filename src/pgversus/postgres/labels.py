"""Display labels of servers: the user's own names, without secrets.

This is a separate module so that commands that do not connect to a server do not import psycopg.
"""

import os

from pgversus.study.servers import RunningServer, ServerName, parse_server


def labelled_server(text: str) -> tuple[str, ServerName]:
    """Return the label of a server and its parsed name; StudyError for an invalid name or URI."""
    server = parse_server(text)
    if isinstance(server, RunningServer):
        return label_of_running(server), server
    # A path that is not valid UTF-8 can be opened, but not shown or stored unchanged.
    return os.fsencode(text).decode(errors="replace"), server


def label_of_running(server: RunningServer) -> str:
    """Return host, port and database of a server, without user and password. StudyError for an invalid URI."""
    from pgversus.postgres.session import uri_label  # noqa: PLC0415 - imports psycopg only when it is needed

    return uri_label(server.uri)
