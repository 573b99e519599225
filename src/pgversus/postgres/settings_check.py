"""What a server makes of a setting's value, asked of its own program or, where it runs already, in a session.

`postgres -C NAME` prints a setting after reading its configuration: no cluster, no start, 30 ms. It knows names, units
and ranges as the running server does, because it is the same code.
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
    """What the server's program said of a setting and a value."""

    value: str | None
    """As the server would say it, so that 4MB and 4096kB are the same; None when it was refused."""
    words: str
    """Why it was refused."""
    nearest: str | None = None
    """A setting of this server with a name much like it, where it has none of this name."""

    @property
    def is_unknown(self) -> bool:
        """Whether this server has no such setting."""
        return _UNKNOWN in self.words


def ask_program(build: Build, setting: Setting, user: ServerUser, directory: Path) -> SettingAnswer:
    """What `build` makes of a setting. directory: empty, and readable for the servers' user.

    A secret is left out of the value: every user of the host reads command lines, and no server looks at a password.
    """
    configuration = directory / "postgresql.conf"
    configuration.touch()
    # Whatever the umask: the servers' user reads it.
    configuration.chmod(0o644)
    shown = f"{setting.name}={value_without_secrets(setting.name, setting.value)}"
    # As root the server's program runs only when -C comes first; it runs as the servers' user all the same.
    arguments = [str(build.program("postgres")), "-C", setting.name, "-c", shown, "-D", str(directory)]
    finished = run(arguments, user=user, directory=directory)
    if finished.succeeded:
        return SettingAnswer(value=finished.stdout.strip(), words="")
    found = _WORDS.findall(finished.stderr)
    refused = SettingAnswer(value=None, words="; ".join(found) or finished.stderr.strip())
    return replace(refused, nearest=_nearest(setting.name, build, user, directory)) if refused.is_unknown else refused


def _nearest(name: str, build: Build, user: ServerUser, directory: Path) -> str | None:
    # One setting on each line, its name first.
    listed = run([str(build.program("postgres")), "--describe-config"], user=user, directory=directory).stdout
    near = get_close_matches(name, [line.partition("\t")[0] for line in listed.splitlines()], n=1, cutoff=0.75)
    return near[0] if near else None


def accepts_sessions(target: Target) -> bool:
    """Whether somebody's server can be asked at all."""
    try:
        with connect(target):
            return True
    except ServerError:
        return False


def ask_running_server(target: Target, setting: Setting) -> SettingAnswer:
    """What a session on somebody's server makes of a setting, given as the load would give it: in the connection."""
    try:
        with connect(target, as_the_load=True) as connection:
            value = catalog.current_setting(connection, setting.name)
    except ServerError as error:
        words = _WORDS.findall(error.found)
        return SettingAnswer(value=None, words="; ".join(words) or error.found)
    return SettingAnswer(value=value, words="")
