"""A guard process that cleans up when pgversus itself is killed.

kill -9 gives pgversus no chance to clean up. So each run starts one small shell that waits on a pipe held by pgversus.
When pgversus ends, however it ends, the pipe closes. The servers, whose own watchdogs hang on pipes as well, stop;
the guard waits for them and removes the run's directories. After an orderly end there is nothing left for it to do.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

# The arguments are the directories to remove. A data directory
# is any that holds a postmaster.pid; its first line is the server's process id. SIGINT has been sent by the server's
# own watchdog; after 30 seconds (a shutdown checkpoint on a slow disk) it becomes SIGQUIT, which cannot hang.
# The removal is repeated because a program that pgversus had started (initdb, cp) may still be writing.
_SCRIPT = """
trap '' INT TERM HUP
read -r _
tenths=0
while :; do
    pids=
    for directory in "$@"; do
        for file in "$directory"/*/*/postmaster.pid; do
            [ -f "$file" ] && read -r pid < "$file" && kill -0 "$pid" 2>/dev/null && pids="$pids $pid"
        done
    done
    [ -z "$pids" ] && break
    tenths=$((tenths + 1))
    [ "$tenths" -eq 300 ] && kill -QUIT $pids 2>/dev/null
    [ "$tenths" -ge 400 ] && break
    sleep 0.1
done
tries=0
while [ "$tries" -lt 20 ]; do
    rm -rf -- "$@" 2>/dev/null
    sleep 0.1
    left=
    for directory in "$@"; do [ -e "$directory" ] && left=yes; done
    [ -z "$left" ] && exit 0
    tries=$((tries + 1))
done
"""


class Guard:
    """The waiting shell of one run; closing it lets it clean up and end."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "pgversus-guard", *map(str, directories)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Not in our process group: a kill of the whole group must leave the guard.
            start_new_session=True,
        )

    def close(self) -> None:
        """Let the guard remove the run's directories and wait until it has."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
