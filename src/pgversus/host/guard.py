"""Cleanup after killed runs: a guard process for each run, and a sweep by the next run.

kill -9 gives pgversus no chance to clean up, so each run starts a small process that waits on a pipe held by
pgversus. The pipe closes when pgversus ends for any reason. The servers, whose own watchdogs also wait on pipes, then
stop; the guard waits for them and removes the run's directories. After an orderly end nothing is left to do.

A guard can die as well, for example in a reboot or with its container. A run directory is in use as long as its run
holds the lock file next to it; the next run sweeps directories whose lock is free. Processes are found by their working
directory, which for every PostgreSQL process is its data directory: not by name, since the same user may run other
servers, and not by postmaster.pid, which the servers' user can write. Processes of other users are left alone, and
signals are sent as the servers' user, so that nothing this user writes can direct a signal at processes of others.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
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
    """Return the servers' processes whose working directory is this directory or below it."""
    top = directory.resolve()
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            working_directory = Path(process.cwd())
            if working_directory.is_relative_to(top) and process.uids().real == _servers_user(top, working_directory):
                found.append(process)
    return found


def signal_processes_in(directory: Path, number: signal.Signals) -> list[psutil.Process]:
    """Send a signal to the servers' processes that work in this directory or below it, and return them."""
    processes = processes_in(directory)
    for process in processes:
        with suppress(psutil.Error):
            _signal(process, number)
    return processes


def end_processes_in(directory: Path) -> None:
    """Kill the servers' processes that work in this directory or below it, and wait until they have ended."""
    psutil.wait_procs(signal_processes_in(directory, signal.SIGKILL), timeout=_PATIENCE_S)


def sweep(runs: Path) -> list[str]:
    """Remove the remains of dead runs and return the names of these runs.

    A directory is removed only if it has the name of a run, a lock file and a record of its sockets; everything else is
    left alone. A run killed right after its start leaves at most a lock file and an empty directory.
    """
    return [lock.stem for lock in sorted(runs.iterdir()) if _is_lock(lock) and _swept(lock)]


def _swept(lock_path: Path) -> bool:
    """Remove the remains of the run with this lock file if it is dead; return whether they were removed."""
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
    """Return whether a run died before it stored anything, after removing its empty directory.

    A run that is just starting may not hold its lock yet, so the process id in its name is checked too.
    """
    if psutil.pid_exists(int(directory.name.rpartition("-")[2])):
        return False
    with suppress(OSError):
        directory.rmdir()
    return not directory.exists()


def run_name() -> str:
    """Return a name for the directory of a new run."""
    return f"run-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"


def _is_lock(path: Path) -> bool:
    return path.suffix == _LOCK and _RUN_NAME.fullmatch(path.stem) is not None


def lock_file(run_directory: Path) -> Path:
    """Return the lock file that a living run holds."""
    return run_directory.with_suffix(_LOCK)


def remember_socket_directory(run_directory: Path, sockets: Path) -> None:
    """Record the socket directory in the run's directory, so that a sweep finds it."""
    (run_directory / _NOTE).write_bytes(os.fsencode(sockets) + b"\n")


def _remove_sockets(run_directory: Path) -> None:
    with suppress(OSError):
        sockets = Path(os.fsdecode((run_directory / _NOTE).read_bytes()).strip())
        if sockets.name.startswith("pgv-"):
            shutil.rmtree(sockets, ignore_errors=True)


def _servers_user(directory: Path, working_directory: Path) -> int | None:
    """Return the user id that owns the servers below a directory; None if root owns the whole path.

    This is the owner of the topmost directory not owned by root, which root created and gave away. Further down that
    user can create anything, so owners there prove nothing.
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
    # Through a shell, since kill(1) is not always installed; it prints an error if the process has ended meanwhile.
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
# The server's watchdog sends SIGINT first. If the shutdown takes longer, SIGQUIT follows, which cannot hang.
_POLL_S = 0.1
_REMOVALS = 20
# Programs started by pgversus (initdb, cp) may still be writing.


class Guard:
    """The guard process of one run; closing it makes it clean up and end."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._process = subprocess.Popen(
            # The end of a session must not end the guard: signals that a shell ignores stay ignored after exec.
            [
                *("/bin/sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "pgversus-guard"),
                *(sys.executable, "-P", "-m", __name__, *map(str, directories)),
            ],
            # The guard must find the same modules as we did.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Not in our process group: the guard must survive a kill of the whole group.
            start_new_session=True,
        )

    def close(self) -> None:
        """Let the guard remove the run's directories, and wait for it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.wait() != 0:
            # The guard was killed, for example by the OOM killer: clean up here.
            clean_up(self._directories)


def clean_up(directories: Sequence[Path]) -> None:
    """Wait for the servers in these directories, end those that do not stop, and remove the directories."""
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
    """Wait up to timeout_s for the servers in these directories to end; return whether they have."""
    deadline = time.monotonic() + timeout_s
    while any(processes_in(directory) for directory in directories):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _remove(path: Path) -> None:
    """Remove a directory or a lock file without following symbolic links."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def main() -> None:
    """Wait until standard input closes, then clean up the directories given as arguments."""
    sys.stdin.buffer.read()
    clean_up([Path(argument) for argument in sys.argv[1:]])


if __name__ == "__main__":
    main()
