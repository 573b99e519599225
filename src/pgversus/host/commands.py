"""Run programs to completion in a clean environment and capture their output.

Programs do not inherit the user's environment: PGOPTIONS or LC_ALL in a shell would make sessions differ that should
be equal.

Only the first and last part of long output are kept: a script may raise a notice in each of a million transactions,
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
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

from pgversus.host.identity import ServerUser

_KEPT_BYTES = 64 * 1024


class Output:
    """A byte stream collected in chunks: all of it, or its first and last 64 kB."""

    def __init__(self, *, is_abridged: bool = False) -> None:
        self._is_abridged = is_abridged
        self._first = bytearray()
        self._last = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        """Add the next chunk."""
        if not self._is_abridged:
            self._first += chunk
            return
        room = _KEPT_BYTES - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        # Cut rarely: each cut moves the remaining bytes.
        if len(self._last) > 2 * _KEPT_BYTES:
            self._cut()

    def add_file(self, file: IO[bytes]) -> None:
        """Add the rest of a file, from its current position."""
        while chunk := file.read(_CHUNK_BYTES):
            self.add(chunk)

    def text(self) -> str:
        """Return the decoded text, with U+FFFD for invalid bytes and a line that gives the number of omitted bytes."""
        return bytes(self).decode(errors="replace")

    def __bytes__(self) -> bytes:
        """Return the bytes kept, cut at line boundaries where possible."""
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
_LONGEST_PAUSE_S = 0.05
CLEAN_ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The result of a completed program."""

    exit_code: int
    """Negative if a signal ended the program."""
    stdout: str
    stderr: str
    cpu_s: float
    """User and system CPU time of the program and the children that it waited for."""
    cpu_user_s: float
    """User CPU time alone."""
    timed_out: bool = False
    """Whether the program was killed because it exceeded its timeout."""

    @property
    def succeeded(self) -> bool:
        """Whether the program ended in time, with exit code 0."""
        return self.exit_code == 0 and not self.timed_out


_MOST_SHOWN = 4000
_AFTER_KILL_S = 1.0


def shortened(output: str) -> str:
    """Return the beginning of an output, and how much was left out."""
    if len(output) <= _MOST_SHOWN:
        return output
    return f"{output[:_MOST_SHOWN]}\n... {len(output) - _MOST_SHOWN} characters left out\n"


class Program(subprocess.Popen[bytes]):
    """A running program; its CPU time is known once poll() or wait() has returned an exit code."""

    cpu_s = 0.0
    cpu_user_s = 0.0

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
        stdin: int | IO[bytes] = subprocess.DEVNULL,
        directory: Path | None = None,
        user: ServerUser | None = None,
        ends_with_us: bool = False,
    ) -> None:
        """Start the program. OSError on failure; with ends_with_us, a missing program exits with code 127 instead.

        user: the user to run as, None for the current one.
        directory: None for the current one, or for / if the user may not enter the current one.
        ends_with_us: the program ends even if pgversus is killed with SIGKILL.
        """
        # Two threads must not collect the same exit code.
        self._collecting = Lock()
        prefix = ending_with_us(user) if ends_with_us else ()
        # With a user argument Popen calls fork instead of vfork, which takes longer the more memory we have.
        as_user = user.popen_arguments() if user is not None and not prefix else {}
        super().__init__(
            [*prefix, *arguments],
            env=dict(environment),
            cwd=directory or _directory_of(user),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            # Its own group: Ctrl-C reaches only pgversus, which then ends the program and its descendants.
            process_group=0,
            **as_user,
        )

    def poll(self) -> int | None:
        """Return the exit code; None while the program runs, or while another thread waits for its end."""
        if self._collecting.acquire(blocking=False):
            try:
                self._collect(os.WNOHANG)
            finally:
                self._collecting.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code when the program has ended; subprocess.TimeoutExpired after `timeout` seconds."""
        if timeout is None:
            with self._collecting:
                self._collect(0)
            return self.returncode
        ends, pause_s = time.monotonic() + timeout, 0.0005
        while self.poll() is None:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(self.args, timeout)
            pause_s = min(2 * pause_s, left_s, _LONGEST_PAUSE_S)
            time.sleep(pause_s)
        return self.returncode

    def _collect(self, options: int) -> None:
        """Collect the exit code and the CPU time of exactly this child if it has ended. options: of waitpid.

        RUSAGE_CHILDREN would be simpler, but includes other children that end at the same time: a server's watchdog, a
        program started by another thread.
        """
        if self.returncode is not None:
            return
        try:
            pid, status, used = os.wait4(self.pid, options)
        except ChildProcessError:
            # Already collected elsewhere; Popen reports 0 then.
            self.returncode = 0
            return
        if pid == self.pid:
            self.cpu_s = used.ru_utime + used.ru_stime
            self.cpu_user_s = used.ru_utime
            self.returncode = os.waitstatus_to_exitcode(status)


def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] = CLEAN_ENVIRONMENT,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    directory: Path | None = None,
    user: ServerUser | None = None,
    timeout_s: float | None = None,
    ends_with_us: bool = False,
    is_abridged: bool = False,
) -> Finished:
    """Run a program to completion and return its result; OSError if it cannot be started.

    Invalid bytes in its output never raise an error. A program that exceeds timeout_s is killed with its process group.
    It also exceeds this time if a program that it started keeps its outputs open.
    ends_with_us: for load on servers that do not end with pgversus themselves.
    is_abridged: keep only the first and last 64 kB of each output.
    The other parameters are those of Program.
    """
    process = Program(
        arguments,
        environment=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=stdin,
        directory=directory,
        user=user,
        ends_with_us=ends_with_us,
    )
    stdout, stderr = Output(is_abridged=is_abridged), Output(is_abridged=is_abridged)
    timed_out = False
    try:
        try:
            _collect_output(process, stdout, stderr, timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_group(process)
            # Read to the end, unless a program in another session still has the outputs open.
            with suppress(subprocess.TimeoutExpired):
                _collect_output(process, stdout, stderr, _AFTER_KILL_S)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
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


def _collect_output(process: Program, stdout: Output, stderr: Output, timeout_s: float | None) -> None:
    """Read both outputs to their ends, then wait for the program. TimeoutExpired after timeout_s.

    Popen.communicate() does the same, but holds all output in memory.
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


def ending_with_us(user: ServerUser | None = None) -> tuple[str, ...]:
    """Return the command prefix that makes the kernel kill a program when its parent ends; empty without setpriv(1).

    setpriv requests the signal and executes the program: same process, same exit code. Doing so between fork and exec
    would run Python in the child of a multi-threaded process. setpriv changes the user first, because the kernel clears
    the request whenever credentials change; for the same reason, programs cannot gain privileges on exec.

    user: the user to run as, None for the current one.
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


def standard_input(file: Path | None) -> AbstractContextManager[int | IO[bytes]]:
    """Return what a program reads from: a file, which its user need not be able to open, or nothing."""
    return nullcontext(subprocess.DEVNULL) if file is None else file.open("rb")


def may_read(user: ServerUser, path: Path) -> bool:
    """Return whether a user can read a file, as decided by the kernel: modes, ACLs and all parent directories.

    Always True for the current user: opening the file reports the problem in the system's own words.
    """
    return _may(user, "-r", path)


@cache
def may_execute(user: ServerUser, path: Path) -> bool:
    """Return whether a user can run a program or enter a directory, decided in the same way; the result is cached."""
    return _may(user, "-x", path)


def _may(user: ServerUser, test: str, path: Path) -> bool:
    if user.is_self:
        return True
    return run(["/bin/sh", "-c", f'test {test} "$0"', str(path)], user=user, directory=Path("/")).succeeded


def _directory_of(user: ServerUser | None) -> Path | None:
    """Return the default working directory for programs of a user; None for the current directory.

    A process can read its working directory even if it may not enter the directories above.
    """
    if user is None or user.is_self:
        return None
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return Path("/")
    return here if may_execute(user, here) else Path("/")


def kill_group(process: subprocess.Popen[Any]) -> None:
    """Kill a program that has its own process group, with its descendants."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
