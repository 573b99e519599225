"""Ending and removing what a run left behind that died together with its guard: a reboot, a killed container.

A run directory belongs to a living run while that run holds the lock file beside it. One whose lock is free is swept
by the next run. Processes are found by their working directory, which for every PostgreSQL process is its data
directory: never by name, since the same user may run other servers, and never by a postmaster.pid, which the servers'
user can write. A process of any other user is left alone, and signals are sent as the servers' user: whatever that user
writes, nothing of root's or of others can be hit.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import Timeout

from pgversus.host.private import private_lock

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
