"""Worker processes that read inputs until a time or number is reached; a worker that dies or hangs is a finding."""

import multiprocessing
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz.target import Finding, Outcome, Target, examine
from tests.fuzz.watching import bounded_memory

_HANGS_S = 120.0
"""Seconds without a finished input, whatever the load of the host. The worker itself limits CPU time."""
_POLL_S = 1.0
_FORK = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Tally:
    """The outcomes of the inputs of one target."""

    inputs: int = 0
    accepted: int = 0
    slowest_s: float = 0.0
    slowest_seed: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, seed: int, outcome: Outcome) -> None:
        """Count one input."""
        self.inputs += 1
        self.accepted += outcome.accepted
        if outcome.seconds > self.slowest_s:
            self.slowest_s, self.slowest_seed = outcome.seconds, seed
        if outcome.finding is not None:
            self.findings.append(outcome.finding)


Job = tuple[Target, int]
"""A target and the seed of an input."""


def jobs(targets: Sequence[Target], first: int) -> Iterator[Job]:
    """Yield targets and seeds in endless rounds; each seed of a target once."""
    for number in count():
        for target in targets:
            begin = first + number * target.share
            yield from ((target, seed) for seed in range(begin, begin + target.share))


def tallies_of(
    targets: Sequence[Target], *, first: int, workers: int, inputs: int | None = None, seconds: float | None = None
) -> dict[str, Tally]:
    """Return the outcomes of all inputs by the names of their targets.

    first: the first seed of each target.
    inputs, seconds: limits; None for no limit.
    """
    tallies = {target.name: Tally() for target in targets}
    ends_at = None if seconds is None else time.monotonic() + seconds

    def started(number: int, skipped: int) -> _Worker:
        own = islice(islice(jobs(targets, first), inputs), number, None, workers)
        return _Worker(number, lambda: islice(own, skipped, None), skipped, ends_at)

    running = [started(number, 0) for number in range(workers)]
    try:
        while running:
            ready = wait([one.answers for one in running], timeout=_POLL_S)
            for worker in [one for one in running if one.answers in ready]:
                for target, seed, outcome in worker.received():
                    tallies[target.name].count(seed, outcome)
                if worker.has_ended:
                    running.remove(worker)
                    if worker.has_failed:
                        # Another worker resumes after the input that killed this one.
                        running.append(started(worker.number, worker.begun))
            for worker in running:
                worker.end_if_it_hangs()
    finally:
        for worker in running:
            worker.kill()
            worker.clean_up()
    return tallies


class _Worker:
    """A process that reads its share of the inputs one by one."""

    def __init__(self, number: int, own: Callable[[], Iterator[Job]], skipped: int, ends_at: float | None) -> None:
        self.number = number
        self.begun = skipped
        """Number of inputs of this share with a known outcome."""
        self.has_ended = self.has_failed = False
        # The current input is known without asking the worker: it reads the same inputs in the same order.
        self._expected = own()
        self._heard_at = time.monotonic()
        self.answers, answering = _FORK.Pipe(duplex=False)
        # The parent removes the folder, because a killed process cannot.
        self._folder = tempfile.TemporaryDirectory(prefix="pgversus-fuzz-", dir="/tmp")
        folder = Path(self._folder.name)
        self._process = _FORK.Process(target=_work, args=(self._expected, answering, ends_at, folder))
        self._process.start()
        answering.close()

    def received(self) -> Iterator[tuple[Target, int, Outcome]]:
        """Yield an outcome that has arrived, or, if the process has died, that of the input it was reading."""
        try:
            outcome = self.answers.recv()
        except EOFError:
            self.clean_up()
            self.has_ended = True
            code = self._process.exitcode
            job = next(self._expected, None)
            if code == 0 or job is None:
                return
            self.has_failed = True
            found = Finding(target=job[0].name, seed=job[1], what=f"the process that read it ended with {code}")
            outcome = Outcome(accepted=False, seconds=time.monotonic() - self._heard_at, finding=found)
        else:
            job = next(self._expected)
        self._heard_at = time.monotonic()
        self.begun += 1
        yield *job, outcome

    def end_if_it_hangs(self) -> None:
        """Kill a process that has been silent for too long; its end is then detected like any other."""
        if time.monotonic() - self._heard_at > _HANGS_S:
            self.kill()

    def kill(self) -> None:
        """End the process."""
        self._process.kill()

    def clean_up(self) -> None:
        """Wait for the end of the process and remove its files."""
        self._process.join()
        self._folder.cleanup()


def _work(own: Iterator[Job], answering: Connection, ends_at: float | None, private: Path) -> None:
    # The parent process handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with bounded_memory():
        folder = private / "input"
        # Accessible to the servers' user, who unpacks archives.
        private.chmod(0o755)
        folder.mkdir()
        folder.chmod(0o755)
        for target, seed in own:
            if ends_at is not None and time.monotonic() > ends_at:
                break
            answering.send(examine(target, seed, folder))
