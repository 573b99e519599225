"""A program that is stopped and continued while it runs, such as a load generator that takes turns with another."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from pgversus.host.commands import Finished, Output, Program, ending_with_us, kill_group
from pgversus.host.identity import ServerUser


class ProgramEndedError(Exception):
    """The program ended by itself when it was to be stopped or continued."""


def can_pause() -> bool:
    """Whether the kernel ends a stopped program when pgversus is killed: nobody else would."""
    return bool(ending_with_us())


class PausableProgram:
    """A running program; its output goes to files, so that it never waits for a reader, and comes back abridged."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], user: ServerUser | None = None
    ) -> None:
        """Start it; whoever does calls finish(), ended() or kill(). OSError when it cannot be started.

        user: whom it runs as, None for oneself.
        """
        self._stdout = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the program has ended
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
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

        self._was_meddled_with = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def was_meddled_with(self) -> bool:
        """Whether somebody else has stopped or continued it."""
        return self._was_meddled_with

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """Return when all its threads are stopped. ProgramEndedError when it has ended."""
        self._look_for_others()
        self._process.send_signal(signal.SIGSTOP)
        if self._process.returncode is not None:
            raise ProgramEndedError
        # Threads stop one after another; until the last one has, work goes on. The end of the program is left to be
        # waited for by its owner.
        state = os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if state is None or state.si_code != os.CLD_STOPPED:
            raise ProgramEndedError
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def resume(self) -> None:
        """Let it go on."""
        self._look_for_others()
        self._process.send_signal(signal.SIGCONT)
        # The kernel remembers that it was continued until somebody asks.
        self._event(os.WCONTINUED)

    def finish(self, number: signal.Signals, timeout_s: float) -> Finished:
        """Continue it, send the signal on which it ends, and return its end; it is killed after timeout_s."""
        timed_out = False
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
        """Wait for a program that ends by itself."""
        self._process.wait()
        return self._finished(timed_out=False)

    def kill(self) -> None:
        """End it, stopped or not, with whatever it has started. Never fails."""
        # Once it was waited for, its id may be that of another program.
        if self._process.poll() is None:
            kill_group(self._process)
            self._process.wait()
        self._close()

    def _look_for_others(self) -> None:
        """Between our own signals, of which nothing is left to be asked for, any change of state is somebody else's."""
        # A stop is left to be waited for: one that lasts is the one that our own signal would bring.
        changed = self._event(os.WCONTINUED) or self._event(os.WSTOPPED | os.WNOWAIT)
        self._was_meddled_with = self._was_meddled_with or changed

    def _event(self, kinds: int) -> bool:
        try:
            return os.waitid(os.P_PID, self._process.pid, kinds | os.WNOHANG) is not None
        except ChildProcessError:
            # It has ended and was waited for.
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
