"""The hosts that prepare and measure the contexts of a study, one task at a time each: usually this one alone.

A host receives a task, then reports its results event by event. The same schedule therefore serves this host, whose
tasks run inside next_event(), and many hosts that work at the same time.
"""

from collections.abc import Generator, Sequence
from typing import Protocol

from pgversus.engine.block_runner import run_start
from pgversus.engine.events import ContextPrepared, Event, TaskFinished
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import BlockOrder, Clock, Testbed
from pgversus.errors import DatasetError, PgversusError, ServerError, StudyError, WorkloadError
from pgversus.records.preparation import Preparation
from pgversus.study.study import Context

THIS_HOST = "this host"
KnownContext = tuple[Context, Preparation | None]
"""A context, and its preparation by an earlier run or another host."""


class Hosts(Protocol):
    """The hosts of a study."""

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Let every host remove the data of other contexts before it prepares any of these."""

    def free(self) -> Sequence[str]:
        """Return the names of the hosts that have no task now, in order of preference."""

    def prepare(self, host: str, contexts: Sequence[KnownContext]) -> None:
        """Let a free host prepare these contexts, which can share a start."""

    def measure(self, host: str, orders: Sequence[BlockOrder], left_s: float) -> None:
        """Let a free host measure blocks of contexts that it has prepared, on one start. left_s: left of the budget."""

    def next_event(self) -> Event:
        """Return the next event of any task. Raise PgversusError if no host can continue."""

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return whether both contexts can be measured on one start of the same servers without harm to either."""

    def abandon(self) -> None:
        """End all tasks; what they have not reported is lost. Never fails."""


class ThisHost:
    """The only host of a study without a fleet: its tasks run in this process, step by step."""

    def __init__(self, testbed: Testbed, clock: Clock, progress: Progress) -> None:
        self._testbed = testbed
        self._clock = clock
        self._progress = progress
        self._task: Generator[Event, None, None] | None = None

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Free disk space for the data of these contexts."""
        self._testbed.begin_part(contexts)

    def free(self) -> Sequence[str]:
        """Return this host unless it has a task."""
        return () if self._task is not None else (THIS_HOST,)

    def prepare(self, host: str, contexts: Sequence[KnownContext]) -> None:
        """Begin to prepare contexts; next_event() does the work."""
        self._task = prepare_together(self._testbed, contexts, host)

    def measure(self, host: str, orders: Sequence[BlockOrder], left_s: float) -> None:
        """Begin to measure blocks; next_event() does the work."""
        self._task = run_start(orders, self._testbed, self._clock, self._progress, left_s, host)

    def next_event(self) -> Event:
        """Run the task until its next event; raise HostError if this host failed."""
        assert self._task is not None  # noqa: S101 - events are only awaited while there is a task
        event = next(self._task, None)
        if event is None:
            self._task = None
            return TaskFinished(host=THIS_HOST)
        return event

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return the answer of the testbed."""
        return self._testbed.can_share_start(one, other)

    def abandon(self) -> None:
        """Stop the servers of the task."""
        if self._task is not None:
            self._task.close()
            self._task = None


def prepare_together(testbed: Testbed, contexts: Sequence[KnownContext], host: str) -> Generator[Event, None, None]:
    """Yield the preparations of contexts that can share a start.

    A context that cannot be prepared does not stop the others. Raises HostError if the host failed.
    """
    with testbed.preparing():
        for context, known in contexts:
            found: Preparation | PgversusError
            try:
                found = testbed.prepare(context, known)
            except (DatasetError, ServerError, StudyError, WorkloadError) as error:
                found = error
            yield ContextPrepared(host=host, context=context.number, found=found)
