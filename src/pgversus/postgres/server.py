"""Managed servers: start, readiness and stop, without orphans.

Each postmaster is the child of a small shell that also waits on a pipe held by pgversus. When pgversus ends for any
reason, the pipe closes and the shell sends SIGINT (fast shutdown), so that pgversus itself need not be able to act.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO

from pgversus.errors import ServerError
from pgversus.host.commands import CLEAN_ENVIRONMENT, Output
from pgversus.host.guard import end_processes_in
from pgversus.host.permissions import open_private, write_private
from pgversus.postgres.cluster import Cluster
from pgversus.postgres.session import PORT, Target, own_target
from pgversus.text.redaction import holds_secret
from pgversus.text.sql import quoted

_START_TIMEOUT_S = 120.0
# Fast shutdown with its checkpoint, then immediate shutdown, then SIGKILL; the timeout of each in seconds.
_STOPPING = ((signal.SIGINT, 120.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
_RECOVERS, _RECOVERED = b"terminating any other active server processes", b"is ready to accept connections"
_LAST_BYTES = 65536
# Only this much of the end of the log is searched: a recovering server logs little.
_POLL_S = 0.01
_REPEAT_S = 0.2
# Signals are repeated: a postmaster that has just started loses them, because as a background job of a shell it ignores
# SIGINT until it has installed its handlers. One that is already stopping ignores the next.
_READY_LINE = 7
# The eighth line of postmaster.pid is "ready" once connections are accepted (miscadmin.h, LOCK_FILE_LINE_PM_STATUS).

# The watchdog. Descriptor 3 is the pipe; the server inherits neither it nor standard input. The first line of output is
# the postmaster's process id. The reader ignores INT and TERM so that only the end of the pipe ends it; it repeats its
# signal because a postmaster that has just started may lose it.
_WATCHDOG = """
exec 3<&0
"$@" </dev/null >&2 3<&- &
p=$!
(trap '' INT TERM HUP; read -r _ <&3; while kill -INT "$p"; do sleep 0.2; done) >/dev/null 2>&1 &
r=$!
echo "$p"
exec >/dev/null
wait "$p"
s=$?
kill -9 "$r"
exit "$s"
"""
_WORDS = re.compile(r"(FATAL|PANIC|ERROR|HINT|DETAIL):\s+.*")


class Server:
    """A postmaster on one cluster, which can be started and stopped repeatedly."""

    def __init__(self, cluster: Cluster, socket_directory: Path, log_file: Path, settings: Mapping[str, str]) -> None:
        """settings: by name, passed on the command line, so that nothing in the cluster can override them.

        Settings that contain a secret are passed in a private file next to the log instead, since every user of the
        host can read command lines.
        """
        self.cluster = cluster
        self.settings = dict(settings)
        self._socket_directory = socket_directory
        self._log_file = log_file
        self._pipe: BinaryIO | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None

    @property
    def target(self) -> Target:
        """The target that sessions connect to."""
        return own_target(self._socket_directory)

    @property
    def postmaster_pid(self) -> int | None:
        """The process id of the postmaster; None if it is not started."""
        return self._pid

    def start(self) -> None:
        """Start and wait until connections are accepted; ServerError with the server's log output if that fails."""
        log_position = self._log_file.stat().st_size if self._log_file.exists() else 0
        with open_private(self._log_file, "a") as log:
            self._watchdog = self._start_watchdog(log)
        try:
            assert self._watchdog.stdout is not None  # noqa: S101 - a pipe was requested
            first_line = self._watchdog.stdout.readline().strip()
            self._pid = int(first_line) if first_line else None
            self._wait_until_ready(log_position)
        except BaseException:
            self._stop()
            raise

    def stop(self) -> None:
        """Stop the server if it is started, with SIGKILL if necessary.

        After a crash it is started again, since only a restart removes its shared memory.
        """
        if self._stop() or not (self.cluster.data_directory / "postmaster.pid").exists():
            return
        # OSError: a full disk or too many processes, which may also be why it crashed.
        with suppress(ServerError, OSError):
            self.start()
            self._stop()

    def _stop(self) -> bool:
        """Stop and return whether it stopped cleanly; True if it was not started."""
        if self._watchdog is None:
            # If a start was interrupted before its watchdog was known, closing the pipe ends the server now.
            self._close_pipe()
            return True
        assert self._watchdog.stdout is not None  # noqa: S101 - a pipe was requested
        if self._pid is None:
            # Interrupted before the process id was read: the watchdog ends the server.
            self._close_pipe()
        # A fast shutdown during recovery may never end, and it would save nothing.
        for number, patience_s in _STOPPING[1:] if self._is_recovering() else _STOPPING:
            if self._end(number, patience_s):
                break
        self._close_pipe()
        was_clean = self._watchdog.wait() == 0
        # Not earlier: a watchdog that cannot print the process id would end without waiting for the server.
        self._watchdog.stdout.close()
        self._watchdog, self._pid = None, None
        if not was_clean:
            # Processes that outlive a killed postmaster would block a restart. Some never end by themselves: those that
            # wait for a lock of another killed process.
            end_processes_in(self.cluster.data_directory)
        return was_clean

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            self._pipe.close()

    def _is_recovering(self) -> bool:
        """Return whether, according to its log, a process has crashed and recovery has not finished since."""
        with self._log_file.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
            said = log.read()
        return said.rfind(_RECOVERS) > said.rfind(_RECOVERED)

    def log_text(self, position: int = 0) -> str:
        """Return the errors logged since a position in the log, or the last lines if there are no errors."""
        output = Output(is_abridged=True)
        with self._log_file.open("rb") as log:
            log.seek(position)
            output.add_file(log)
        lines = output.text().splitlines()
        found = [match[0] for match in map(_WORDS.search, lines) if match]
        return "\n".join(found[-4:] or lines[-4:])

    def _start_watchdog(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        cluster = self.cluster
        arguments = [str(cluster.build.program("postgres")), "-D", str(cluster.data_directory), "-p", str(PORT)]
        # Locations that ALTER SYSTEM in a dataset could have changed.
        arguments += ["-k", str(self._socket_directory), "-c", "listen_addresses=", "-c", "external_pid_file="]
        secret = {name: value for name, value in self.settings.items() if holds_secret(name, value)}
        for name, value in self.settings.items():
            arguments += ["-c", f"{name}={value}"] if name not in secret else []
        if secret:
            arguments += ["-c", f"config_file={self._configuration(secret)}"]
        # Not a pipe of Popen: if an interrupt loses the Popen of a running process, Python keeps it with open pipes.
        waited_on, held = os.pipe()
        self._pipe = os.fdopen(held, "wb")
        with os.fdopen(waited_on, "rb") as stdin:
            return subprocess.Popen(
                ["/bin/sh", "-c", _WATCHDOG, "pgversus-watchdog", *arguments],
                env=dict(CLEAN_ENVIRONMENT),
                cwd="/",
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                **cluster.user.popen_arguments(),
            )

    def _configuration(self, settings: Mapping[str, str]) -> Path:
        """Write a configuration file with additional settings, readable only by the server, and return its path."""
        self._check_overridden(settings)
        included = self.cluster.data_directory / "postgresql.conf"
        lines = [f"include {quoted(str(included))}", *(f"{name} = {quoted(value)}" for name, value in settings.items())]
        file = self._log_file.with_suffix(".conf")
        write_private(file, "".join(f"{line}\n" for line in lines))
        self.cluster.user.change_owner(file)
        return file

    def _check_overridden(self, settings: Mapping[str, str]) -> None:
        """Raise ServerError if ALTER SYSTEM has set one of these settings, which would override the file."""
        automatic = self.cluster.data_directory / "postgresql.auto.conf"
        lines = automatic.read_text(encoding="utf-8", errors="replace").splitlines() if automatic.exists() else []
        names = {line.partition("=")[0].strip().lower() for line in lines}
        overridden = [name for name in settings if name.lower() in names]
        if overridden:
            raise self._did_not_start(f"ALTER SYSTEM has also set {', '.join(overridden)} in the data directory")

    def _wait_until_ready(self, log_position: int) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            assert self._watchdog is not None  # noqa: S101 - set by start()
            if self._watchdog.poll() is not None:
                raise self._did_not_start(self.log_text(log_position))
            if time.monotonic() > deadline:
                raise self._did_not_start(f"not ready after {_START_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)

    def _is_ready(self) -> bool:
        try:
            # Read as bytes: the file contains paths in unknown encodings.
            lines = (self.cluster.data_directory / "postmaster.pid").read_bytes().splitlines()
        except OSError:
            return False
        # The process id is compared because the file may be left from a crashed server.
        return (
            len(lines) > _READY_LINE and lines[0] == str(self._pid).encode() and lines[_READY_LINE].strip() == b"ready"
        )

    def _end(self, number: signal.Signals, patience_s: float) -> bool:
        """Repeat a signal until the postmaster has ended or the timeout expires; return whether it has ended."""
        assert self._watchdog is not None  # noqa: S101 - checked by _stop()
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if self._pid is not None and self._watchdog.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._watchdog.wait(_REPEAT_S)
                return True
        return False

    def _did_not_start(self, words: str) -> ServerError:
        return ServerError(
            f"PostgreSQL {self.cluster.build.version} did not start",
            slug="server-start",
            where=", ".join(f"{name}={value}" for name, value in self.settings.items()) or "default settings",
            found=words,
            expected="a server that accepts connections",
            to_do="check that this version supports the requested settings (--set, or [settings] and [factors] in a "
            "study file), and that no setup file sets them with ALTER SYSTEM",
        )
