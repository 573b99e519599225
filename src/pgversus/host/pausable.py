"""A program that can be stopped and continued, such as a load generator that takes turns with another."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pgversus.host.commands import Finished, Output, Program, ending_with_us, kill_group
from pgversus.host.identity import ServerUser

_STOPS_WITHIN_S = 0.1
_SPINS_S, _POLL_S = 0.0002, 0.0001
_STOPPED_OR_ENDED = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG


class ProgramEndedError(Exception):
    """The program ended before it could be stopped or continued."""


def can_pause() -> bool:
    """Return whether the kernel ends a stopped program when pgversus is killed; nothing else would."""
    return bool(ending_with_us())


class PausableProgram:
    """A running program. Its output goes to files, so that it never waits for a reader, and is returned abridged."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        scratch: Path,
        user: ServerUser | None = None,
    ) -> None:
        """Start the program; the caller must call finish(), ended() or kill(). OSError if it cannot be started.

        scratch: directory for its output, in files without a name. user: the user to run as, None for the current one.
        """
        self._stdout = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - closed when the program has ended
        self._stderr = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115
        try:
            self._process = Program(
                arguments,
                environment=environment,
                stdout=self._stdout,
                stderr=self._stderr,
                user=user,
                ends_with_us=True,
            )
        except BaseException:
            self._close()
            raise

        self._was_signalled = False

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def was_signalled(self) -> bool:
        """Whether another process has stopped or continued the program."""
        return self._was_signalled

    def has_ended(self) -> bool:
        """Return whether the program has ended by itself."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Stop the program and wait until all its threads are stopped. ProgramEndedError if it has ended."""
        self._look_for_others()
        # SIGCONT by another process removes a stop that has not taken effect yet, so it is sent again.
        while not self._stopped_within(_STOPS_WITHIN_S):
            self._was_signalled = True

    def _stopped_within(self, seconds: float) -> bool:
        """Send SIGSTOP and return whether all threads stopped within this time. ProgramEndedError if it has ended."""
        self._process.send_signal(signal.SIGSTOP)
        if self._process.returncode is not None:
            raise ProgramEndedError
        begin = time.monotonic()
        # Threads stop one after another and the program keeps working until the last one has. WNOWAIT leaves its end
        # to be reaped by its owner.
        while (state := os.waitid(os.P_PID, self._process.pid, _STOPPED_OR_ENDED)) is None:
            waited_s = time.monotonic() - begin
            if waited_s > seconds:
                return False
            # A stop takes microseconds, which a sleep would exceed. If it takes longer, leave the processor to the
            # program that is about to stop.
            time.sleep(0 if waited_s < _SPINS_S else _POLL_S)
        if state.si_code != os.CLD_STOPPED:
            raise ProgramEndedError
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOHANG)
        return True

    def resume(self) -> None:
        """Continue the program."""
        self._look_for_others()
        self._process.send_signal(signal.SIGCONT)
        # Consume our own event, which the kernel keeps until it is waited for.
        self._event(os.WCONTINUED)

    def finish(self, number: signal.Signals, timeout_s: float) -> Finished:
        """Continue the program, end it with a signal and return its result; it is killed after timeout_s."""
        timed_out = False
        self._look_for_others()
        try:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_group(self._process)
            self._process.wait()
        except BaseException:
            self.kill()
            raise
        return self._finished(timed_out=timed_out)

    def ended(self) -> Finished:
        """Wait for the program to end by itself and return its result."""
        self._process.wait()
        return self._finished(timed_out=False)

    def kill(self) -> None:
        """Kill the program, stopped or not, with its descendants. Never fails."""
        # Once it has been reaped, its id may belong to another program.
        if self._process.poll() is None:
            kill_group(self._process)
            self._process.wait()
        self._close()

    def _look_for_others(self) -> None:
        """Detect signals from other processes: our own events are consumed, so any other event is theirs."""
        # Leave a stop event in place: if the program is already stopped, stop() waits for that event.
        changed = self._event(os.WCONTINUED) or self._event(os.WSTOPPED | os.WNOWAIT)
        self._was_signalled = self._was_signalled or changed

    def _event(self, kinds: int) -> bool:
        try:
            return os.waitid(os.P_PID, self._process.pid, kinds | os.WNOHANG) is not None
        except ChildProcessError:
            # It has ended and was reaped.
            return False

    def _finished(self, *, timed_out: bool) -> Finished:
        texts = []
        for file in (self._stdout, self._stderr):
            output = Output(is_abridged=True)
            file.seek(0)
            output.add_file(file)
            texts.append(output.text())
        self._close()
        return Finished(
            exit_code=self._process.returncode,
            stdout=texts[0],
            stderr=texts[1],
            cpu_s=self._process.cpu_s,
            cpu_user_s=self._process.cpu_user_s,
            timed_out=timed_out,
        )

    def _close(self) -> None:
        self._stdout.close()
        self._stderr.close()
