"""Cleaning up after runs that were killed: a guard process beside each run, and a sweep by the next run.

kill -9 gives pgversus no chance to clean up, so each run starts a small process that waits on a pipe held by
pgversus. When pgversus ends, however it ends, the pipe closes. The servers, whose own watchdogs wait on pipes as
well, stop; the guard waits for them and removes the run's directories. After an orderly end there is nothing left to
do.

A guard can die as well: a reboot, a killed container. A run directory belongs to a living run while that run holds
the lock file beside it; one whose lock is free is swept by the next run. Processes are found by their working
directory, which for every PostgreSQL process is its data directory: never by name, since the same user may run other
servers, and never by a postmaster.pid, which the servers' user can write. Processes of other users are left alone,
and signals are sent as the servers' user: whatever that user writes, no process of root or of others can be hit.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import Timeout

from pgversus.host.permissions import private_lock

_PATIENCE_S = 10
_RUN_NAME = re.compile(r"run-[0-9]{8}T[0-9]{6}-[0-9]+")
_NOTE = "sockets"
_LOCK = ".lock"


def processes_in(directory: Path) -> list[psutil.Process]:
    """Return the servers' processes that work in this directory or below it."""
    return list(_processes_in(directory.resolve()))


def signal_processes_in(directory: Path, number: signal.Signals) -> list[psutil.Process]:
    """Send a signal to each of the servers' processes that work in this directory or below it, and return them."""
    processes = processes_in(directory)
    for process in processes:
        with suppress(psutil.Error):
            _signal(process, number)
    return processes


def end_processes_in(directory: Path) -> None:
    """Kill every process of the servers that works in this directory, and wait until they are gone."""
    psutil.wait_procs(signal_processes_in(directory, signal.SIGKILL), timeout=_PATIENCE_S)


def sweep(runs: Path) -> list[str]:
    """Remove what is left of runs that are no more; the names of those runs.

    Only what has the name of a run, its lock file and its note of sockets is taken for one: whatever else somebody
    keeps there stays. A run that was killed in its first moments has left a lock file at most, and an empty directory.
    """
    return [lock.stem for lock in sorted(runs.iterdir()) if _is_lock(lock) and _swept(lock)]


def _swept(lock_path: Path) -> bool:
    """Whether the run of this lock file is no more, and what it has left was removed."""
    lock = private_lock(lock_path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    try:
        directory = lock_path.with_suffix("")
        if (directory / _NOTE).exists():
            end_processes_in(directory)
            _remove_sockets(directory)
            shutil.rmtree(directory, ignore_errors=True)
        elif not _never_began(directory):
            return False
        lock_path.unlink(missing_ok=True)
    finally:
        lock.release()
    return True


def _never_began(directory: Path) -> bool:
    """Whether a run ended before it kept anything; its directory is then gone, if there was one.

    One that is just beginning may not hold its lock yet: its process id is part of its name.
    """
    if psutil.pid_exists(int(directory.name.rpartition("-")[2])):
        return False
    with suppress(OSError):
        directory.rmdir()
    return not directory.exists()


def run_name() -> str:
    """A name for a new run's directory."""
    return f"run-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"


def _is_lock(path: Path) -> bool:
    return path.suffix == _LOCK and _RUN_NAME.fullmatch(path.stem) is not None


def lock_file(run_directory: Path) -> Path:
    """The lock that a living run holds."""
    return run_directory.with_suffix(_LOCK)


def remember_socket_directory(run_directory: Path, sockets: Path) -> None:
    """Note in a run's directory where its sockets are, so that a sweep finds them."""
    (run_directory / _NOTE).write_bytes(os.fsencode(sockets) + b"\n")


def _remove_sockets(run_directory: Path) -> None:
    with suppress(OSError):
        sockets = Path(os.fsdecode((run_directory / _NOTE).read_bytes()).strip())
        if sockets.name.startswith("pgv-"):
            shutil.rmtree(sockets, ignore_errors=True)


def _processes_in(directory: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            working_directory = Path(process.cwd())
            if working_directory.is_relative_to(directory) and process.uids().real == _servers_user(
                directory, working_directory
            ):
                yield process


def _servers_user(directory: Path, working_directory: Path) -> int | None:
    """Return the user id to whom the servers below a directory belong; None where all of it is root's.

    It is the owner of the first directory on the way down that is not root's: root made and gave it away. Below it that
    user can create what it likes, so nothing below it counts.
    """
    below = working_directory.relative_to(directory)
    for path in (directory / part for part in reversed([below, *below.parents])):
        if owner := path.stat().st_uid:
            return owner
    return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    if os.geteuid() != 0:
        process.send_signal(number)
        return
    # In a shell, since kill(1) is not everywhere; it prints an error if the process has ended meanwhile.
    subprocess.run(
        ["/bin/sh", "-c", 'kill -s "$0" "$1"', number.name.removeprefix("SIG"), str(process.pid)],
        user=process.uids().real,
        group=process.gids().real,
        extra_groups=[],
        cwd="/",
        stderr=subprocess.DEVNULL,
        check=False,
    )


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
