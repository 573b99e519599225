"""Labels of servers: as the user named them, without secrets.

A file of its own, so that commands that connect to nothing do not import psycopg.
"""

import os

from pgversus.study.servers import RunningServer, ServerName, parse_server


def labelled_server(text: str) -> tuple[str, ServerName]:
    """How a server is shown, and what it is; StudyError for a text that names none, or a URI that cannot be used."""
    server = parse_server(text)
    if isinstance(server, RunningServer):
        return label_of_running(server), server
    # A path that is no UTF-8 can be opened, and not be shown or stored as it is.
    return os.fsencode(text).decode(errors="replace"), server


def label_of_running(server: RunningServer) -> str:
    """Its host, port and database: no user and no password. StudyError for a URI that cannot be used."""
    from pgversus.postgres.session import uri_label  # noqa: PLC0415 - psycopg's import is for those who need it

    return uri_label(server.uri)
