"""Running the commands of a build: all they print goes into one log, and steps are counted as they appear."""

import io
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pgversus.host.commands import CLEAN_ENVIRONMENT, Program, kill_group
from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.source.build_output import Steps, first_error
from pgversus.postgres.builds.source.recipe import Command, as_typed


@dataclass(eq=False)
class CommandFailedError(Exception):
    """A command of a build that failed."""

    words: str
    """What it was to do."""
    error: str

    def __str__(self) -> str:
        """The first error that it told."""
        return self.error


class Workshop:
    """Where one build is made."""

    def __init__(
        self,
        *,
        directory: Path,
        environment: Mapping[str, str],
        user: ServerUser,
        log: Path,
        expected: int,
        progress: Callable[[int, int], None],
    ) -> None:
        """environment: beside what every program of ours gets. user: who builds. log: where that user cannot write.

        expected: steps. progress: takes steps done and all.
        """
        self._directory = directory
        self._user = user
        self._environment = {**CLEAN_ENVIRONMENT, **environment}
        self._log = log
        self._steps = Steps(expected)
        self._progress = progress

    def do(self, command: Command) -> None:
        """Run one command to its end; CommandFailedError with its first error when it fails. It ends with us."""
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {as_typed(command)}\n")
            log.flush()
            from_here = log.tell()
            exit_code = self._run(command, log.write)
        if exit_code != 0:
            with self._log.open(encoding="utf-8", errors="replace") as log:
                log.seek(from_here)
                raise CommandFailedError(command.words, first_error(log))

    def _run(self, command: Command, write: Callable[[str], int]) -> int:
        process = Program(
            command.arguments,
            environment={**self._environment, **command.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            directory=command.directory or self._directory,
            user=self._user,
            ends_with_us=True,
        )
        assert process.stdout is not None  # noqa: S101 - asked for above
        with io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace") as printed:
            try:
                for line in printed:
                    write(line)
                    if self._steps.take(line):
                        self._progress(self._steps.done, self._steps.total)
                return process.wait()
            except BaseException:
                kill_group(process)
                process.wait()
                raise
