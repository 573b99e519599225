"""Validation of settings by the server's own program or, for a running server, in a session.

`postgres -C NAME` prints a setting after reading its configuration, in 30 ms and without a cluster or a start. It
runs the server's own code, so names, units and ranges are the same.
"""

import re
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from pgversus.builds.model import Build
from pgversus.errors import ServerError
from pgversus.host.commands import run
from pgversus.host.identity import ServerUser
from pgversus.postgres import catalog
from pgversus.postgres.session import Target, connect
from pgversus.study.settings import Setting
from pgversus.text.redaction import value_without_secrets

_WORDS = re.compile(r"(?:FATAL|ERROR|HINT|DETAIL):\s+(.*)")
_UNKNOWN = "unrecognized configuration parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingAnswer:
    """The server's answer to a setting and a value."""

    value: str | None
    """The value as the server prints it, so that 4MB and 4096kB are equal; None if it was rejected."""
    message: str
    """Why it was rejected."""
    nearest: str | None = None
    """A setting of this server with a similar name, if the name is unknown."""

    @property
    def is_unknown(self) -> bool:
        """Whether the setting is unknown to this server."""
        return _UNKNOWN in self.message


def ask_program(build: Build, setting: Setting, user: ServerUser, directory: Path) -> SettingAnswer:
    """Return the answer of the postgres program of `build` to a setting.

    Secrets are removed from the value: every user of the host can read command lines, and the server does not check
    passwords. directory: empty and readable for the servers' user.
    """
    configuration = directory / "postgresql.conf"
    configuration.touch()
    # The servers' user must be able to read it, whatever the umask.
    configuration.chmod(0o644)
    shown = f"{setting.name}={value_without_secrets(setting.name, setting.value)}"
    # postgres accepts root only if -C comes first; it is nevertheless run as the servers' user.
    arguments = [str(build.program("postgres")), "-C", setting.name, "-c", shown, "-D", str(directory)]
    finished = run(arguments, user=user, directory=directory)
    if finished.succeeded:
        return SettingAnswer(value=finished.stdout.strip(), message="")
    found = _WORDS.findall(finished.stderr)
    refused = SettingAnswer(value=None, message="; ".join(found) or finished.stderr.strip())
    return replace(refused, nearest=_nearest(setting.name, build, user, directory)) if refused.is_unknown else refused


def _nearest(name: str, build: Build, user: ServerUser, directory: Path) -> str | None:
    # One setting on each line, its name first.
    listed = run([str(build.program("postgres")), "--describe-config"], user=user, directory=directory).stdout
    near = get_close_matches(name, [line.partition("\t")[0] for line in listed.splitlines()], n=1, cutoff=0.75)
    return near[0] if near else None


def accepts_sessions(target: Target) -> bool:
    """Return whether an external server accepts connections."""
    try:
        with connect(target):
            return True
    except ServerError:
        return False


def ask_running_server(target: Target, setting: Setting) -> SettingAnswer:
    """Return the answer of an external server to a setting, passed in the connection as the load passes it.

    ServerError if the server cannot be reached.
    """
    try:
        with connect(target, as_the_load=True) as connection:
            value = catalog.current_setting(connection, setting.name)
    except ServerError as error:
        words = _WORDS.findall(error.found)
        if not words:
            # The server has gone away.
            raise
        return SettingAnswer(value=None, message="; ".join(words))
    return SettingAnswer(value=value, message="")
