"""Running a program to its end, with an environment of our own and its words kept.

No variable of the user's environment reaches PostgreSQL's programs by accident: PGOPTIONS or LC_ALL in a shell
would make two sessions differ that should be equal.

Of long output the first and the last part are stored: a script may raise a notice in each of a million transactions,
and a server may log every statement.
"""

import math
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from pgversus.host.identity import ServerUser

_KEPT_BYTES = 64 * 1024


class Output:
    """A stream of bytes that is taken in piece by piece: all of it, or its first and last 64 kB."""

    def __init__(self, *, is_abridged: bool = False) -> None:
        self._is_abridged = is_abridged
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Take in the next piece."""
        if not self._is_abridged:
            self._first += chunk
            return
        room = _KEPT_BYTES - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        # Cut seldom, since what is left is moved each time.
        if len(self._last) > 2 * _KEPT_BYTES:
            self._cut()

    def add_file(self, file: IO[bytes]) -> None:
        """Take in a file, from where it stands to its end."""
        while chunk := file.read(_CHUNK_BYTES):
            self.add(chunk)

    def text(self) -> str:
        """Return it decoded; what is no text becomes U+FFFD. Where it was cut a line says how much is missing."""
        return bytes(self).decode(errors="replace")

    def __bytes__(self) -> bytes:
        """Return what was kept, whole lines where there are any."""
        self._cut()
        if not self._left_out:
            return bytes(self._first + self._last)
        first = self._first[: self._first.rfind(b"\n") + 1] or self._first
        last = self._last[self._last.find(b"\n") + 1 :]
        left_out = self._left_out + len(self._first) - len(first) + len(self._last) - len(last)
        return bytes(first) + f"... {left_out} bytes left out ...\n".encode() + bytes(last)

    def _cut(self) -> None:
        surplus = max(0, len(self._last) - _KEPT_BYTES)
        del self._last[:surplus]
        self._left_out += surplus


_CHUNK_BYTES = 64 * 1024
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
    """A running program; its processor time is known once it has been waited for."""

    cpu_s = 0.0
    cpu_user_s = 0.0

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
        directory: Path | None = None,
        user: ServerUser | None = None,
        ends_with_us: bool = False,
    ) -> None:
        """Start it. OSError when that fails; with ends_with_us a program that is missing ends with exit code 127.

        user: None for oneself. directory: None for ours; for / where the user may not enter ours. ends_with_us: kill -9
        of pgversus ends the program too.
        """
        prefix = ending_with_us(user) if ends_with_us else ()
        # With a user of its own Popen forks instead of borrowing our memory, which takes longer the more we have.
        as_user = user.popen_arguments() if user is not None and not prefix else {}
        super().__init__(
            [*prefix, *arguments],
            env=dict(environment),
            cwd=directory or _directory_of(user),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            # Its own group: Ctrl-C reaches pgversus alone, which then ends the program and whatever that has started.
            process_group=0,
            **as_user,
        )

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
    is_abridged: bool = False,
) -> Finished:
    """The end of a program, its output decoded without ever failing on it.

    The rest is as for Program. A program that outlives timeout_s is killed and comes back with exit code -9.
    ends_with_us: for load on servers that do not end with us themselves. is_abridged: of each output the first and last
    64 kB are enough. OSError when it cannot be started at all.
    """
    process = Program(
        arguments,
        environment=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        directory=directory,
        user=user,
        ends_with_us=ends_with_us,
    )
    stdout, stderr = Output(is_abridged=is_abridged), Output(is_abridged=is_abridged)
    timed_out = False
    try:
        try:
            _take_in(process, stdout, stderr, timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_group(process)
            _take_in(process, stdout, stderr, None)
    except BaseException:
        kill_group(process)
        process.wait()
        raise
    return Finished(
        exit_code=process.returncode,
        stdout=stdout.text(),
        stderr=stderr.text(),
        cpu_s=process.cpu_s,
        cpu_user_s=process.cpu_user_s,
        timed_out=timed_out,
    )


def _take_in(process: Program, stdout: Output, stderr: Output, timeout_s: float | None) -> None:
    """Read both outputs to their ends, then wait for the program's. TimeoutExpired after timeout_s.

    As Popen.communicate() does it, which however keeps everything in memory.
    """
    deadline = math.inf if timeout_s is None else time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        for pipe, output in ((process.stdout, stdout), (process.stderr, stderr)):
            if pipe is not None and not pipe.closed:
                selector.register(pipe, selectors.EVENT_READ, (pipe, output))
        while selector.get_map():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(process.args, timeout_s or 0.0)
            for key, _ in selector.select(None if timeout_s is None else left_s):
                pipe, output = key.data
                if chunk := os.read(key.fd, _CHUNK_BYTES):
                    output.add(chunk)
                else:
                    selector.unregister(pipe)
                    pipe.close()
    process.wait(None if timeout_s is None else max(0.0, deadline - time.monotonic()))


def client_environment(additions: Mapping[str, str], *, inherit_libpq: bool) -> dict[str, str]:
    """The environment for psql and pgbench.

    inherit_libpq: for servers that the user runs, libpq's own variables (PGPASSFILE, PGSSLMODE, ...) mean what they
    mean in psql; for servers of ours they are left out.
    """
    environment = dict(CLEAN_ENVIRONMENT)
    if inherit_libpq:
        environment |= {name: value for name, value in os.environ.items() if name.startswith("PG") or name == "HOME"}
    return environment | dict(additions)


def ending_with_us(user: ServerUser | None = None) -> tuple[str, ...]:
    """What is put before a command so that the kernel kills it when its parent has ended; nothing where it is missing.

    setpriv(1) asks for it and becomes the program: same process, same exit code. Done between fork and exec by
    ourselves, it would run Python in a child of a process with threads. user: whom it runs as, None for oneself. The
    user is changed before the signal is asked for, since the kernel forgets it with every change of users; for the same
    reason, and since nothing of it is needed, no program gains privileges by being executed.
    """
    program = _setpriv()
    if program is None:
        return ()
    as_user = []
    if user is not None and not user.is_self:
        as_user = ["--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups", "--no-new-privs"]
    return (program, *as_user, "--pdeathsig", "KILL", "--")


@cache
def _setpriv() -> str | None:
    program = shutil.which("setpriv", path=CLEAN_ENVIRONMENT["PATH"])
    return program if program is not None and "--pdeathsig" in run([program, "--help"]).stdout else None


def may_read(user: ServerUser, path: Path) -> bool:
    """Return whether a user can read a file, as the kernel decides it: by modes, ACLs, and every directory above.

    True for oneself, without asking: whoever opens it says what is wrong, in the system's own words.
    """
    return _may(user, "-r", path)


@cache
def may_execute(user: ServerUser, path: Path) -> bool:
    """Return whether a user can run a program or enter a directory, decided in the same way; asked once."""
    return _may(user, "-x", path)


def _may(user: ServerUser, test: str, path: Path) -> bool:
    if user.is_self:
        return True
    return run(["/bin/sh", "-c", f'test {test} "$0"', str(path)], user=user, directory=Path("/")).succeeded


def _directory_of(user: ServerUser | None) -> Path | None:
    """Where a program begins that is given no directory of its own; None for where we are.

    A process that begins in a directory can read what is there, even where it could not have entered those above it.
    """
    if user is None or user.is_self:
        return None
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return Path("/")
    return here if may_execute(user, here) else Path("/")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """End a program that has a process group of its own, and whatever it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
