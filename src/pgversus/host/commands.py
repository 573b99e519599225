"""Running a program to its end, with an environment of our own and its words kept.

No variable of the user's environment reaches PostgreSQL's programs by accident: PGOPTIONS or LC_ALL in a shell
would make two sessions differ that should be equal.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pgversus.host.identity import ServerUser

CLEAN_ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A program that ran to its end."""

    exit_code: int
    """Negative when a signal ended it."""
    stdout: str
    stderr: str
    cpu_s: float
    """Processor time that it and the programs it waited for used, in their own code and in the kernel."""
    cpu_user_s: float
    """In their own code alone."""
    timed_out: bool = False
    """Whether we ended it because it took too long."""

    @property
    def succeeded(self) -> bool:
        """Whether it returned 0."""
        return self.exit_code == 0


class Program(subprocess.Popen[bytes]):
    """A program whose processor time is known once it has been waited for."""

    cpu_s = 0.0
    cpu_user_s = 0.0

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        # Where Popen asks the kernel for the end of exactly this child. RUSAGE_CHILDREN would need no such hook, but
        # has in it whatever else ends meanwhile: a server's watchdog, a program that another thread runs.
        try:
            pid, status, used = os.wait4(self.pid, wait_flags)
        except ChildProcessError:
            # Popen's own answer for a child that somebody else has waited for.
            return self.pid, 0
        if pid == self.pid:
            self.cpu_s = used.ru_utime + used.ru_stime
            self.cpu_user_s = used.ru_utime
        return pid, status


def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] = CLEAN_ENVIRONMENT,
    directory: Path | None = None,
    user: ServerUser | None = None,
    timeout_s: float | None = None,
    ends_with_us: bool = False,
) -> Finished:
    """The end of a program, its output decoded without ever failing on it.

    user: None for oneself. A program that outlives timeout_s is killed and comes back with exit code -9.
    ends_with_us: kill -9 of pgversus ends the program too; for load on servers that do not end with us themselves.
    OSError when it cannot be started at all.
    """
    process = Program(
        [*(ending_with_us() if ends_with_us else ()), *arguments],
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Its own group: Ctrl-C reaches pgversus alone, which then ends the program and whatever that has started.
        process_group=0,
        **(user.popen_arguments() if user else {}),
    )
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process)
        stdout, stderr = process.communicate()
    except BaseException:
        kill_group(process)
        process.wait()
        raise
    return Finished(
        exit_code=process.returncode,
        stdout=stdout.decode(errors="replace"),
        stderr=stderr.decode(errors="replace"),
        cpu_s=process.cpu_s,
        cpu_user_s=process.cpu_user_s,
        timed_out=timed_out,
    )


def client_environment(additions: Mapping[str, str], *, inherit_libpq: bool) -> dict[str, str]:
    """The environment for psql and pgbench.

    inherit_libpq: for servers that the user runs, libpq's own variables (PGPASSFILE, PGSSLMODE, ...) mean what they
    mean in psql; for servers of ours they are left out.
    """
    environment = dict(CLEAN_ENVIRONMENT)
    if inherit_libpq:
        environment |= {name: value for name, value in os.environ.items() if name.startswith("PG") or name == "HOME"}
    return environment | dict(additions)


@cache
def ending_with_us() -> tuple[str, ...]:
    """What is put before a command so that the kernel kills it when its parent has ended; nothing where it is missing.

    setpriv(1) asks for it and becomes the program: same process, same exit code. Done between fork and exec by
    ourselves, it would run Python in a child of a process with threads.
    """
    program = shutil.which("setpriv", path=CLEAN_ENVIRONMENT["PATH"])
    if program is None or "--pdeathsig" not in run([program, "--help"]).stdout:
        return ()
    return (program, "--pdeathsig", "KILL", "--")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """End a program that has a process group of its own, and whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
