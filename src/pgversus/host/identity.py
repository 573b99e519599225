"""The user that servers and programs of a study run as: an unprivileged user if pgversus runs as root.

PostgreSQL refuses to run as root. pgversus also runs nothing as root that a study or a source tree controls, such as
psql, pgbench, commands and builds. Only these programs and /bin/sh run as the other user, never our Python, which that
user may not be allowed to read; archives are unpacked by a fork (builds/unpacking.py).
"""

import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgversus.errors import HostError

DEFAULT_SERVER_USER = "nobody"
_CLOSED = re.compile("Permission denied|No such file or directory")
# Messages of the operating system; PostgreSQL's own "permission denied" is lower-case.
_ENTERED_BY_GROUP = 0o710


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUser:
    """The operating system user that owns the clusters and runs servers and programs of a study."""

    name: str
    uid: int
    gid: int
    is_self: bool
    """Whether it is the user that runs pgversus, so that no file has to change owner."""

    def popen_arguments(self) -> Mapping[str, Any]:
        """Return the keyword arguments for subprocess to run a program as this user."""
        if self.is_self:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def change_owner(self, path: Path) -> None:
        """Make this user the owner of a file or directory of pgversus."""
        if not self.is_self:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def run_as_hint(self, words: str) -> str:
        """Return advice if a message says that a program of this user could not open a file; else an empty string."""
        if self.is_self or not _CLOSED.search(words):
            return ""
        return (
            f'programs run as user "{self.name}", in the current directory if that user can enter it, otherwise in /: '
            "move their files to a place that this user can read, or specify a different user with --run-as USER"
        )

    def grant_access(self, directory: Path) -> None:
        """Let this user enter, but not list, a directory that we continue to own; no other user may enter it."""
        if not self.is_self:
            os.chown(directory, -1, self.gid)
            directory.chmod(_ENTERED_BY_GROUP)


def server_user(requested: str | None = None) -> ServerUser:
    """Return the user for PostgreSQL's programs; HostError if it does not exist or may not be used.

    requested: a user name; only root may choose another user.
    """
    if os.geteuid() != 0:
        own = _own_entry()
        if requested not in (None, own.pw_name):
            raise HostError(
                "only root can run servers as another user",
                slug="host-not-root",
                where=f"--run-as {requested}",
                found=f"user {own.pw_name}",
                expected="root, or no --run-as",
                to_do="omit --run-as: servers then run as you",
            )
        return ServerUser(name=own.pw_name, uid=own.pw_uid, gid=own.pw_gid, is_self=True)
    name = requested or DEFAULT_SERVER_USER
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise _no_such_user(name) from None
    if entry.pw_uid == 0:
        raise HostError(
            "PostgreSQL refuses to run as root",
            slug="host-server-as-root",
            where=f"--run-as {name}",
            found="root",
            expected="an unprivileged user",
            to_do=f"omit --run-as to use {DEFAULT_SERVER_USER}, or choose another user",
        )
    return ServerUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid, is_self=False)


def _own_entry() -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        # initdb would fail with "could not look up effective user ID"; report it before anything is created.
        raise HostError(
            "the current user is not in the password database, which initdb requires",
            slug="host-no-passwd-entry",
            where=f"user id {os.geteuid()}",
            found="no entry",
            expected="a named user",
            to_do="run as a user that is listed in /etc/passwd; in a container, as a user of its image or as root",
        ) from None


def _no_such_user(name: str) -> HostError:
    return HostError(
        f'user "{name}" does not exist on this host',
        slug="host-unknown-user",
        where="--run-as",
        found=f'"{name}"',
        expected="an existing unprivileged user",
        to_do="create one (useradd --system pgversus) and pass it with --run-as",
    )
