"""A guard process that cleans up when pgversus itself is killed.

kill -9 gives pgversus no chance to clean up. So each run starts a small process that waits on a pipe held by pgversus.
When pgversus ends, however it ends, the pipe closes. The servers, whose own watchdogs wait on pipes as well, stop;
the guard waits for them and removes the run's directories. After an orderly end there is nothing left for it to do.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pgversus.host.leftovers import processes_in, signal_processes_in

_SHUTDOWN_S, _IMMEDIATE_SHUTDOWN_S = 30.0, 10.0
# The server's own watchdog has sent SIGINT. If the shutdown takes longer, SIGQUIT follows, which cannot hang.
_POLL_S = 0.1
_REMOVALS = 20
# A program that pgversus had started (initdb, cp) may still be writing.


class Guard:
    """The waiting process of one run; closing it lets it clean up and end."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._process = subprocess.Popen(
            # What ends a session must not end the guard: signals that a shell ignores stay ignored after exec.
            [
                *("/bin/sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "pgversus-guard"),
                *(sys.executable, "-P", "-m", __name__, *map(str, directories)),
            ],
            # It imports what we have imported, wherever that was found.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd="/",
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
        if self._process.wait() != 0:
            # It was killed, by the kernel for want of memory for one: then it is ours to do.
            clean_up(self._directories)


def clean_up(directories: Sequence[Path]) -> None:
    """Wait for the servers that run in these directories, end those that do not stop, and remove the directories."""
    if not _have_ended(directories, _SHUTDOWN_S):
        for directory in directories:
            signal_processes_in(directory, signal.SIGQUIT)
        _have_ended(directories, _IMMEDIATE_SHUTDOWN_S)
    for _ in range(_REMOVALS):
        for directory in directories:
            _remove(directory)
        if not any(map(os.path.lexists, directories)):
            break
        time.sleep(_POLL_S)


def _have_ended(directories: Sequence[Path], timeout_s: float) -> bool:
    """Whether no server works in these directories any more, after timeout_s at the latest."""
    deadline = time.monotonic() + timeout_s
    while any(processes_in(directory) for directory in directories):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _remove(path: Path) -> None:
    """Remove a directory, or a lock file; symbolic links in it are never followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def main() -> None:
    """Wait until standard input closes, then clean up the directories that the arguments name."""
    sys.stdin.buffer.read()
    clean_up([Path(argument) for argument in sys.argv[1:]])


if __name__ == "__main__":
    main()
