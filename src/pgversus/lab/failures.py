"""Which failures are this host's and end the run, and which are those of what is measured.

A server, pgbench or psql that fails for want of room fails in words of its own. Taken for a property of an arm, they
would be kept with the results, and never tried again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgversus.errors import HostError, PgversusError, StoreError
from pgversus.host.full_disk import WHAT_IS_KEPT, full_disk, has_no_room, is_full, words_of_full_disk
from pgversus.lab.apparatus import Apparatus, TrialFailedError
from pgversus.stats.trials import Window


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


class HostAwareApparatus:
    """An apparatus under which failures of the host end the run, instead of a trial."""

    def __init__(self, apparatus: Apparatus, directory: Path) -> None:
        """directory: of the run."""
        self._apparatus = apparatus
        self._directory = directory

    def start(self, arm: int) -> None:
        """Start an arm."""
        with failures_of_the_host(self._directory):
            self._apparatus.start(arm)

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        """Warm an arm up."""
        with failures_of_the_host(self._directory):
            return self._apparatus.warm_up(arm, seed)

    def measure(self, arm: int, seed: int, name: str) -> None:
        """Measure one window."""
        with failures_of_the_host(self._directory):
            self._apparatus.measure(arm, seed, name)

    def collect(self, arm: int) -> Sequence[Window]:
        """End a session."""
        with failures_of_the_host(self._directory):
            return self._apparatus.collect(arm)

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        """Return the counters of a block."""
        with failures_of_the_host(self._directory):
            return self._apparatus.counted(arm, transactions)

    def abandon(self) -> None:
        """End open sessions."""
        self._apparatus.abandon()

    def stop_all(self) -> None:
        """Stop every arm."""
        self._apparatus.stop_all()


def _host_failed(error: OSError, directory: Path) -> HostError:
    return HostError(
        "this host failed in the middle of a run",
        slug="host-failed",
        where=str(error.filename or directory),
        found=error.strerror or str(error),
        expected="files that can be written and read, programs that can be started",
        to_do=f"see to it; {WHAT_IS_KEPT}",
    )
