"""Ending and removing what a run left behind that died together with its guard: a reboot, a killed container.

A run directory belongs to a living run while that run holds the lock file beside it. One whose lock is free is swept
by the next run. Processes are found by their working directory, which for every PostgreSQL process is its data
directory: never by name and never by owner, since the same user may run servers of somebody else.
"""

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

_PATIENCE_S = 10
_RUN_NAME = re.compile(r"run-[0-9]{8}T[0-9]{6}-[0-9]+")
_NOTE = "sockets"


def processes_in(directory: Path) -> list[psutil.Process]:
    """All processes whose working directory is this one or lies below it."""
    return list(_processes_in(directory.resolve()))


def end_processes_in(directory: Path) -> None:
    """Kill every process that works in this directory, and wait until they are gone."""
    processes = processes_in(directory)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes, timeout=_PATIENCE_S)


def sweep(runs: Path) -> list[str]:
    """Remove the directories of runs that are no more; the names of those removed.

    Only what has the name of a run, its lock file beside it and its note of sockets in it is taken for one: whatever
    else somebody keeps there stays.
    """
    swept = []
    for directory in sorted(path for path in runs.iterdir() if _is_run(path)):
        lock = FileLock(lock_file(directory))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        try:
            end_processes_in(directory)
            _remove_sockets(directory)
            shutil.rmtree(directory, ignore_errors=True)
            swept.append(directory.name)
        finally:
            lock.release()
            lock_file(directory).unlink(missing_ok=True)
    return swept


def run_name() -> str:
    """A name for a new run's directory."""
    return f"run-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"


def _is_run(path: Path) -> bool:
    has_name = _RUN_NAME.fullmatch(path.name) is not None
    return has_name and path.is_dir() and lock_file(path).exists() and (path / _NOTE).exists()


def lock_file(run_directory: Path) -> Path:
    """The lock that a living run holds."""
    return run_directory.with_suffix(".lock")


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
        with suppress(psutil.Error):
            if Path(process.cwd()).is_relative_to(directory):
                yield process
