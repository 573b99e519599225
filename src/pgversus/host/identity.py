"""Which user programs run as that others have a say in: oneself, or an unprivileged user when pgversus runs as root.

PostgreSQL refuses to run as root. Neither does root run what a study or a source tree says: psql, pgbench, commands,
builds. Only such programs and /bin/sh run as the other user, never a Python of ours, which that user may not even be
allowed to read; archives are unpacked by a fork (builds/unpacking.py).
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
# The system's own words; a server that denies a permission writes it small.
_ENTERED_BY_GROUP = 0o710


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUser:
    """The operating system user that owns clusters, and runs servers and whatever a study has a say in."""

    name: str
    uid: int
    gid: int
    is_self: bool
    """True when it is the user that runs pgversus, so that nothing has to be handed over."""

    def popen_arguments(self) -> Mapping[str, Any]:
        """Keyword arguments with which subprocess starts a program as this user."""
        if self.is_self:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def give(self, path: Path) -> None:
        """Hand a file or directory of ours over to this user."""
        if not self.is_self:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def way_out(self, words: str) -> str:
        """Return what to do where a program of this user could not open a file; empty where it says nothing of one."""
        if self.is_self or not _CLOSED.search(words):
            return ""
        return (
            f"programs run as {self.name}, in this directory if {self.name} may enter it, else in /: put the files "
            f"that they open where {self.name} can read them, or name another user with --run-as USER"
        )

    def let_through(self, directory: Path) -> None:
        """Let this user enter a directory of ours, which stays ours; it cannot be listed, and nobody else gets in."""
        if not self.is_self:
            os.chown(directory, -1, self.gid)
            directory.chmod(_ENTERED_BY_GROUP)


def server_user(requested: str | None = None) -> ServerUser:
    """The user for PostgreSQL's programs; HostError when it does not exist or may not be used.

    requested: a user name; only root may name another one than itself.
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
                to_do="leave --run-as out: servers then run as you",
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
            to_do=f"leave --run-as out ({DEFAULT_SERVER_USER} is used), or name another user",
        )
    return ServerUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid, is_self=False)


def _own_entry() -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        # initdb would say "could not look up effective user ID"; say it before anything is made.
        raise HostError(
            "this user has no entry in the password database, and initdb needs one",
            slug="host-no-passwd-entry",
            where=f"user id {os.geteuid()}",
            found="no entry",
            expected="a named user",
            to_do="in a container, run as a user of its image or as root",
        ) from None


def _no_such_user(name: str) -> HostError:
    return HostError(
        f'there is no user "{name}" on this host',
        slug="host-unknown-user",
        where="--run-as",
        found=f'"{name}"',
        expected="an existing unprivileged user",
        to_do="make one (useradd --system pgversus) and name it with --run-as",
    )
