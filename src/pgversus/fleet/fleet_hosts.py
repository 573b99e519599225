"""The hosts of a fleet as the engine sees them: available and lost hosts, their tasks, and the blocks that count.

The ledger decides which blocks count.
"""

import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, SimpleQueue

from distributed import Future

from pgversus.engine.events import BlockMeasured, ContextPrepared, Event, HostJoined, HostLost, TaskFinished
from pgversus.engine.hosts import KnownContext
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import BlockOrder
from pgversus.errors import PgversusError, StoreError
from pgversus.fleet.fleet import Fleet, no_hosts, reply_of
from pgversus.fleet.messages import (
    Begin,
    Done,
    Failed,
    Measure,
    Open,
    Opened,
    Prepare,
    Reply,
    Task,
)
from pgversus.lab.resume_checks import Fact, check_same_builds
from pgversus.lab.study_host import Ledger
from pgversus.lab.testbed import can_share_start
from pgversus.records.preparation import Preparation
from pgversus.store.leases import Lease, Outcome
from pgversus.study.study import Context
from pgversus.text.translation import N_

_OPENS, _WAITS = N_("opening the study"), N_("waiting")
_PREPARES, _PREPARES_IT = N_("preparing {context}"), N_("preparing the servers")
_MEASURES, _MEASURES_IT = N_("measuring block {block} of {context}"), N_("measuring block {block}")
_LOOK_S = 1.0
_PATIENCE_S = 600.0
# Time without any host after which the run ends with an error.
_REFUSED_S = 30.0
# The same if all hosts were refused: others may be restarting.
_BUSY_S = 60.0
# Time after which a host that was measuring for another run is tried again.
_MOST_LOSSES = 5
# Tasks in a row with which a host may be lost. A block that ends its worker would otherwise be repeated for ever.


@dataclass(slots=True)
class _Host:
    """A host and its current work."""

    identity: str
    is_open: bool = False
    """Whether it has opened the study and begun to measure it."""
    sent: Future[bytes] | None = None
    """Its current task."""
    leases: dict[tuple[int, int], Lease] = field(default_factory=dict)
    """Leases of the blocks that it measures, by context and number."""
    known: set[int] = field(default_factory=set)
    """Contexts that it is preparing and that another host has already prepared."""
    is_assigned: bool = False
    """Whether the engine gave it a task and has not learned of its end yet."""

    @property
    def is_free(self) -> bool:
        """Whether it can be given a task."""
        return self.is_open and self.sent is None and not self.is_assigned


class FleetHosts:
    """The hosts of a fleet for one study."""

    def __init__(
        self,
        fleet: Fleet,
        opening: Open,
        begin: Begin,
        opened: dict[str, str],
        ledger: Ledger,
        progress: Progress,
    ) -> None:
        """opening, begin: what every host must do before its first task.

        opened: the identity of hosts that have opened the study of this run, by name; further hosts are added.
        """
        self._fleet = fleet
        self._opened = opened
        self._opening = opening
        self._begin = begin
        self._ledger = ledger
        self._progress = progress
        self._hosts: dict[str, _Host] = {}
        self._refused: dict[str, tuple[str, float]] = {}
        # The identity of hosts that cannot measure this study, and until when they cannot, by name.
        self._awaited: set[str] = set()
        # Hosts that have taken part and left: they may come back.
        self._losses: Counter[str] = Counter()
        # Tasks in a row with which a host was lost, by its name.
        self._replies: SimpleQueue[tuple[str, Future[bytes]]] = SimpleQueue()
        self._events: deque[Event] = deque()
        self._late: dict[str, dict[tuple[int, int], Lease]] = {}
        # Leases that have ended with a host whose reply may still come, by the key of its task.
        self._writing: set[int] = set()
        # Contexts whose load is known to write.
        self._part: Sequence[Context] = ()
        self._last_error: PgversusError | None = None
        self._looked = self._seen = time.monotonic()
        self._look()

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Record the contexts whose data hosts may keep."""
        self._part = tuple(contexts)

    def free(self) -> Sequence[str]:
        """Return the hosts without a task; if no host has a task, wait until one is free."""
        while True:
            free = [name for name, host in self._hosts.items() if host.is_free]
            if free or self._events or any(host.is_assigned for host in self._hosts.values()):
                return free
            self._wait()

    def prepare(self, host: str, contexts: Sequence[KnownContext]) -> None:
        """Send the contexts to a host."""
        for context, known in contexts:
            self._note_writing(context.number, known)
        self._hosts[host].known = {context.number for context, known in contexts if known is not None}
        run, number = self._begin.run, self._begin.number
        label = contexts[0][0].label
        self._progress.host(host, _PREPARES if label else _PREPARES_IT, context=label)
        task = Prepare(run=run, number=number, part=self._part, contexts=tuple(contexts))
        self._assign(host, task, f"{run}-{number}-prepare-{host}")

    def measure(self, host: str, orders: Sequence[BlockOrder], left_s: float) -> None:
        """Grant a host the leases of some blocks, then send them."""
        run, number, hosts = self._begin.run, self._begin.number, self._open_hosts
        leases = {
            (order.context.number, order.number): self._ledger.grant_lease(order.context.number, order.number, host)
            for order in orders
        }
        first = next(iter(leases.values()))
        label = orders[0].context.label
        self._progress.host(host, _MEASURES if label else _MEASURES_IT, context=label, block=first.block)
        self._hosts[host].leases = leases
        key = f"{run}-{number}-context-{first.context}-block-{first.block}-attempt-{first.attempt}"
        # The study counts wall time divided by the number of hosts; the host counts all of it.
        whole = tuple(replace(one, seconds=None if one.seconds is None else hosts * one.seconds) for one in orders)
        self._assign(host, Measure(run=run, number=number, orders=whole, left_s=hosts * left_s), key)

    def next_event(self) -> Event:
        """Wait for the next event; HostError if no host has been there for ten minutes, or none can continue."""
        while not self._events:
            self._wait()
        event = self._events.popleft()
        if isinstance(event, TaskFinished) and (host := self._hosts.get(event.host)):
            host.is_assigned = False
        return event

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return the answer according to the preparations so far."""
        return can_share_start(one, other, self._writing)

    def abandon(self) -> None:
        """Forget all tasks; hosts finish them, but their replies are ignored."""
        # If the results cannot be written, the run ends with that error anyway.
        with suppress(StoreError):
            for host in self._hosts.values():
                self._end_leases(host)
        # Busy hosts are added again, and begin the study when they have finished.
        self._hosts = {name: host for name, host in self._hosts.items() if host.is_open and host.sent is None}
        for host in self._hosts.values():
            host.is_assigned = False
        self._events.clear()

    @property
    def _open_hosts(self) -> int:
        """The number of hosts that share the time of the study, at least 1."""
        return max(1, sum(host.is_open for host in self._hosts.values()))

    def _assign(self, name: str, task: Task, key: str) -> None:
        host = self._hosts[name]
        host.is_assigned = True
        self._send(name, host, task, key)

    def _send(self, name: str, host: _Host, task: Task, key: str) -> None:
        host.sent = self._fleet.send(name, task, key)
        host.sent.add_done_callback(lambda future: self._replies.put((name, future)))

    def _wait(self) -> None:
        """Take the next reply, and update the hosts, which may join and leave."""
        try:
            name, future = self._replies.get(timeout=_LOOK_S)
        except Empty:
            pass
        else:
            self._take(name, future)
        if time.monotonic() - self._looked >= _LOOK_S:
            self._look()

    def _look(self) -> None:
        self._fleet.say_news()
        found = self._fleet.hosts()
        self._looked = time.monotonic()
        for name in [name for name, host in self._hosts.items() if found.get(name) != host.identity]:
            self._lose(name, "the host left the fleet")
        for name, identity in found.items():
            if name not in self._hosts and self._may_take_part(name, identity):
                self._awaited.discard(name)
                self._hosts[name] = host = _Host(identity=identity)
                is_open = self._opened.get(name) == identity
                self._progress.host(name, _OPENS)
                self._send(name, host, self._begin if is_open else self._opening, f"{self._begin.run}-begin-{name}")
        if self._hosts:
            self._seen = self._looked
        alone_s = self._looked - self._seen
        if self._last_error is not None and not self._awaited and alone_s > _REFUSED_S:
            raise self._last_error
        if alone_s > _PATIENCE_S:
            raise no_hosts()

    def _may_take_part(self, name: str, identity: str) -> bool:
        refused, until = self._refused.get(name, ("", 0.0))
        return (identity != refused or time.monotonic() >= until) and self._losses[name] < _MOST_LOSSES

    def _take(self, name: str, future: Future[bytes]) -> None:
        host = self._hosts.get(name)
        if host is None or host.sent is not future:
            self._keep_late(future)
            return
        reply = reply_of(future)
        if reply is None:
            self._lose(name, "the worker was lost during a task")
            return
        host.sent = None
        self._heed(name, host, reply)

    def _heed(self, name: str, host: _Host, reply: Reply) -> None:
        match reply:
            case Opened(facts=facts):
                self._open(name, host, facts["builds"])
            case Done(events=events) if error := _failure_of_host(events, host.known):
                self._refuse(name, host, error)
            case Done(events=events) if host.is_assigned:
                self._losses.pop(name, None)
                self._events += [self._measured_on(name, host, event) for event in events]
                self._end_leases(host, Outcome.UNMEASURED)
                self._events.append(TaskFinished(host=name))
                self._progress.host(name, _WAITS)
            case Done():
                host.is_open = True
                self._events.append(HostJoined(host=name))
                self._progress.host(name, _WAITS)
            case Failed(error=error, events=events):
                self._events += [self._measured_on(name, host, event) for event in events]
                self._refuse(name, host, error)
            case _:
                # The worker was restarted: it does not know the study.
                self._opened.pop(name, None)
                self._lose(name, "the worker was restarted")

    def _open(self, name: str, host: _Host, builds: Mapping[str, Fact]) -> None:
        """Begin the study on a host that has opened it, if it has the same servers as the others."""
        try:
            check_same_builds(self._opening.before or {}, builds, Path(name))
        except PgversusError as error:
            self._refuse(name, host, error)
            return
        self._opened[name] = host.identity
        self._send(name, host, self._begin, f"{self._begin.run}-begin-{name}")

    def _keep_late(self, future: Future[bytes]) -> None:
        """Store the blocks of a host that was believed lost; they are not used."""
        leases = self._late.pop(str(future.key), {})
        reply = reply_of(future) if leases else None
        for event in reply.events if isinstance(reply, Done | Failed) else ():
            if isinstance(event, BlockMeasured):
                self._ledger.keep_unused(leases[event.context, event.block.number], event.block)

    def _measured_on(self, name: str, host: _Host, event: Event) -> Event:
        """Return an event with the name of the host in its block, and end the lease of the block."""
        if isinstance(event, ContextPrepared) and isinstance(event.found, Preparation):
            self._note_writing(event.context, event.found)
        if not isinstance(event, BlockMeasured):
            return event
        lease = host.leases.pop((event.context, event.block.number))
        self._ledger.end_lease(lease, Outcome.MEASURED)
        # This many hosts measure at the same time.
        wall_s = event.block.wall_s / self._open_hosts
        return BlockMeasured(host=name, context=event.context, block=event.block._replace(host=name, wall_s=wall_s))

    def _note_writing(self, context: int, preparation: Preparation | None) -> None:
        if preparation is not None and preparation.writes:
            self._writing.add(context)

    def _refuse(self, name: str, host: _Host, error: PgversusError) -> None:
        """Exclude a host that cannot measure this study; only for a while if another run uses it."""
        self._progress.say(f"{name} was excluded: {error.summary}")
        until = time.monotonic() + _BUSY_S if error.slug == "fleet-host-busy" else math.inf
        self._refused[name] = host.identity, until
        self._last_error = error
        self._lose(name, "")

    def _note_loss(self, name: str) -> None:
        self._losses[name] += 1
        if self._losses[name] == _MOST_LOSSES:
            self._progress.say(f"{name} was excluded: it was lost in {_MOST_LOSSES} tasks in a row")

    def _lose(self, name: str, why: str) -> None:
        host = self._hosts.pop(name)
        if why and host.is_assigned:
            self._note_loss(name)
        self._progress.host(name, "")
        if why:
            self._progress.say(f"{name}: {why}")
            if host.is_open:
                self._awaited.add(name)
        if host.is_assigned:
            if host.sent is not None:
                self._late[str(host.sent.key)] = host.leases
            self._end_leases(host)
        if host.is_open:
            # Even without a task, since its preparations are lost.
            self._events.append(HostLost(host=name))

    def _end_leases(self, host: _Host, outcome: Outcome = Outcome.LOST) -> None:
        for lease in host.leases.values():
            self._ledger.end_lease(lease, outcome)
        host.leases = {}


def _failure_of_host(events: Sequence[Event], known: set[int]) -> PgversusError | None:
    """Return why a host cannot prepare a context that another has prepared, such as different data; None if it can."""
    found = [event for event in events if isinstance(event, ContextPrepared) and event.context in known]
    return next((event.found for event in found if isinstance(event.found, PgversusError)), None)
