"""What a server makes of a setting's value, asked of the server's own program: no cluster, no start, 30 ms.

`postgres -C NAME` prints a setting after reading its configuration. It knows names, units and ranges as the running
server does, because it is the same code.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from pgversus.host.commands import run
from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.model import Build

_WORDS = re.compile(r"(?:FATAL|ERROR|HINT|DETAIL):\s+(.*)")
_UNKNOWN = "unrecognized configuration parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingAnswer:
    """What the server's program said of a setting and a value."""

    value: str | None
    """In the setting's own unit, so that 4MB and 4096kB are the same; None when it was refused."""
    words: str
    """Why it was refused."""

    @property
    def is_unknown(self) -> bool:
        """Whether this server has no such setting."""
        return _UNKNOWN in self.words


def ask_setting(build: Build, name: str, value: str, user: ServerUser, directory: Path) -> SettingAnswer:
    """What `build` makes of name=value. directory: empty, and readable for the servers' user."""
    configuration = directory / "postgresql.conf"
    configuration.touch()
    # Whatever the umask: the servers' user reads it.
    configuration.chmod(0o644)
    # As root the server's program runs only when -C comes first; it runs as the servers' user all the same.
    arguments = [str(build.program("postgres")), "-C", name, "-c", f"{name}={value}", "-D", str(directory)]
    finished = run(arguments, user=user, directory=directory)
    if finished.succeeded:
        return SettingAnswer(value=finished.stdout.strip(), words="")
    found = _WORDS.findall(finished.stderr)
    return SettingAnswer(value=None, words="; ".join(found) or finished.stderr.strip())
