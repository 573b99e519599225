"""Which failures end the run, and which are those of what is measured.

A server, pgbench or psql that fails for want of room fails in words of its own, and so does pgbench whose server is
away. Taken for a property of an arm, they would be kept with the results, and never tried again.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import Apparatus, TrialFailedError
from pgversus.errors import HostError, PgversusError, ServerError, StoreError
from pgversus.host.full_disk import WHAT_IS_KEPT, full_disk, has_no_room, is_full, words_of_full_disk
from pgversus.lab.measuring.arms import ArmServer
from pgversus.postgres.session import connect
from pgversus.records.trials import Window

_LONGEST_AWAY_S, _POLL_S = 30.0, 0.5
# A restart, or the recovery of a small server after a crash, takes less.


@contextmanager
def failures_of_the_host(directory: Path) -> Iterator[None]:
    """HostError in place of whatever failed in here because a disk is full, or the host did not do its part.

    directory: of the run, whose file system is looked at when the words do not tell.
    """
    try:
        yield
    except (HostError, StoreError):
        raise
    except (PgversusError, TrialFailedError) as error:
        words = error.found if isinstance(error, PgversusError) else str(error)
        said = words_of_full_disk(words)
        if said or has_no_room(directory):
            raise full_disk(directory, said or words) from error
        raise
    except OSError as error:
        if is_full(error):
            raise full_disk(error.filename or directory, str(error.strerror)) from error
        raise _host_failed(error, directory) from error


class FailureSortingApparatus:
    """An apparatus under which failures of the host, and of servers of others that stay away, end the run, no trial."""

    def __init__(self, apparatus: Apparatus, servers: Sequence[ArmServer], directory: Path, progress: Progress) -> None:
        """servers: by arm. directory: of the run."""
        self._apparatus = apparatus
        self._servers = servers
        self._directory = directory
        self._progress = progress

    def start(self, arm: int) -> None:
        """Start an arm."""
        with self._failures(arm):
            self._apparatus.start(arm)

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm an arm up."""
        with self._failures(arm):
            return self._apparatus.warm_up(arm, seed)

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        with self._failures(arm):
            self._apparatus.measure(arm, seed, name)

    def collect(self, arm: int) -> Sequence[Window]:
        """End a session."""
        with self._failures(arm):
            return self._apparatus.collect(arm)

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return the counters of a block."""
        with self._failures(arm):
            return self._apparatus.counted(arm, transactions)

    def abandon(self) -> None:
        """End open sessions."""
        self._apparatus.abandon()

    def stop_all(self) -> None:
        """Stop every arm."""
        self._apparatus.stop_all()

    @contextmanager
    def _failures(self, arm: int) -> Iterator[None]:
        try:
            with failures_of_the_host(self._directory):
                yield
        except TrialFailedError:
            if not self._servers[arm].can_restart:
                _wait_for(self._servers[arm], self._progress)
            raise


def _wait_for(server: ArmServer, progress: Progress) -> None:
    """Return when a server of somebody else takes sessions, at once in most cases; ServerError when it stays away."""
    end = time.monotonic() + _LONGEST_AWAY_S
    is_told = False
    while True:
        try:
            with connect(server.target):
                return
        except ServerError as error:
            if time.monotonic() >= end:
                raise _away(server, error) from error
        if not is_told:
            progress.say(f"{server.arm.label} is away; waiting for {_LONGEST_AWAY_S:.0f} s")
            is_told = True
        time.sleep(_POLL_S)


def _away(server: ArmServer, error: ServerError) -> ServerError:
    return ServerError(
        "a server that somebody else runs has gone away in the middle of a run",
        slug="server-away",
        where=server.arm.label,
        found=error.found,
        expected=f"a session, {_LONGEST_AWAY_S:.0f} s after a load failed on it at the latest",
        to_do=f"see that it runs; {WHAT_IS_KEPT}",
    )


def _host_failed(error: OSError, directory: Path) -> HostError:
    return HostError(
        "this host failed in the middle of a run",
        slug="host-failed",
        where=str(error.filename or directory),
        found=error.strerror or str(error),
        expected="files that can be written and read, programs that can be started",
        to_do=f"see to it; {WHAT_IS_KEPT}",
    )
