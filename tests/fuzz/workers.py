"""Worker processes that read inputs until time or number is over; one that dies or hangs is a finding."""

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
"""Without an end of an input, whatever else the host does. Processor time is bounded in the worker itself."""
_POLL_S = 1.0
_FORK = multiprocessing.get_context("fork")


@dataclass(slots=True)
class Tally:
    """What became of the inputs of one target."""

    inputs: int = 0
    accepted: int = 0
    slowest_s: float = 0.0
    slowest_seed: int = 0
    findings: list[Finding] = field(default_factory=list)

    def count(self, seed: int, outcome: Outcome) -> None:
        """Add one input."""
        self.inputs += 1
        self.accepted += outcome.accepted
        if outcome.seconds > self.slowest_s:
            self.slowest_s, self.slowest_seed = outcome.seconds, seed
        if outcome.finding is not None:
            self.findings.append(outcome.finding)


Job = tuple[Target, int]
"""A target, and the seed of an input."""


def jobs(targets: Sequence[Target], first: int) -> Iterator[Job]:
    """Yield targets and seeds, round by round without end; each seed of a target once."""
    for number in count():
        for target in targets:
            begin = first + number * target.share
            yield from ((target, seed) for seed in range(begin, begin + target.share))


def tallies_of(
    targets: Sequence[Target], *, first: int, workers: int, inputs: int | None = None, seconds: float | None = None
) -> dict[str, Tally]:
    """Return what became of all inputs, by the names of their targets.

    first: the seed with which each target begins.
    inputs, seconds: after which it ends; without an end for None.
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
                        # Another one goes on behind the input that killed it.
                        running.append(started(worker.number, worker.begun))
            for worker in running:
                worker.end_if_it_hangs()
    finally:
        for worker in running:
            worker.kill()
    return tallies


class _Worker:
    """A process that reads its part of the inputs, one by one."""

    def __init__(self, number: int, own: Callable[[], Iterator[Job]], skipped: int, ends_at: float | None) -> None:
        self.number = number
        self.begun = skipped
        """Inputs of this part whose end is known."""
        self.has_ended = self.has_failed = False
        # What it is doing is known here without asking it: the same inputs in the same order.
        self._expected = own()
        self._heard_at = time.monotonic()
        self.answers, answering = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_work, args=(self._expected, answering, ends_at))
        self._process.start()
        answering.close()

    def received(self) -> Iterator[tuple[Target, int, Outcome]]:
        """Yield the outcome that has come; where the process has died, that of the input that it was reading."""
        try:
            outcome = self.answers.recv()
        except EOFError:
            self._process.join()
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
        """Kill a process from which nothing is heard; its end is then noticed like any other."""
        if time.monotonic() - self._heard_at > _HANGS_S:
            self.kill()

    def kill(self) -> None:
        """End the process."""
        self._process.kill()


def _work(own: Iterator[Job], answering: Connection, ends_at: float | None) -> None:
    # Ctrl-C is for the process that has started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="pgversus-fuzz-", dir="/tmp") as name, bounded_memory():
        folder = Path(name) / "input"
        # For the servers' user, who unpacks archives.
        Path(name).chmod(0o755)
        folder.mkdir()
        folder.chmod(0o755)
        for target, seed in own:
            if ends_at is not None and time.monotonic() > ends_at:
                break
            answering.send(examine(target, seed, folder))
